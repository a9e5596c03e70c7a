"""Formulas within a sentence, which papers state in plain letters, with the signs of mathematics.

>>> written("(K/pi)(pi/6 - K asin(1/(2K)))")
'(K/π)(π/6 − K asin(1/(2K)))'
>>> written("lambda = (2 eta/pi) K (2K-1)^-1/2 (2K+1)^-3/2, v_i^2/2, sqrt(n) and x^(1-s) at 1/2")
'λ = (2 η/π) K (2K−1)⁻¹⁄² (2K+1)⁻³⁄², v_i²/2, √n and x^(1−s) at ½'
>>> written("the G-matrix of CIFAR-5m is mean-field if l <= n")  # words keep their hyphens
'the G-matrix of CIFAR-5m is mean-field if l ≤ n'
"""

from __future__ import annotations

import re

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "eps": "ε", "epsilon": "ε", "eta": "η", "theta": "θ",
    "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ",
    "phi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ", "Sigma": "Σ", "Omega": "Ω",
}  # fmt: skip
RAISED = str.maketrans("0123456789-/T", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁄ᵀ")
LETTERS = re.compile(rf"(?<![A-Za-z])({'|'.join(sorted(GREEK, key=len, reverse=True))})(?![A-Za-z])")
POWER = re.compile(r"\^(-?[1357]/2(?!\d)|-?\d+(?![\d.])|T\b)")  # ^3/2 is a power, ^2/2 a division
ROOT = re.compile(r"\bsqrt(?:\((\w+)\)| (\w+)|(?=\())")
HALF = re.compile(r"(?<![\w.)^/])1/2(?![\w.(/])")
TERM = r"(?=\d|[A-Za-zΑ-ω(](?![A-Za-z]))"  # not a hyphen, which a word follows
MINUS = re.compile(rf"(?<= )-(?= )|(?<=[(^])-|(?<=[\d)])-{TERM}|(?<=[^A-Za-z][A-Za-zα-ω])-{TERM}")
SIGNS = {"<=": "≤", ">=": "≥", "->": "→", "+-": "±", "-+": "∓"}


def written(text: str) -> str:
    """A sentence with Greek letters, powers, roots, halves and minus signs as they are printed."""
    text = LETTERS.sub(lambda found: GREEK[found[1]], text)
    text = POWER.sub(lambda found: found[1].translate(RAISED), text)
    text = ROOT.sub(lambda found: f"√{found[1] or found[2] or ''}", text)
    for plain, sign in SIGNS.items():
        text = text.replace(plain, sign)
    return MINUS.sub("−", HALF.sub("½", text))
