"""Terminals that are not UTF-8: characters that they do not have are written in plain letters.

>>> "η = n^α, 2β ≥ |μ|² ± 10⁻¹ → √λ, Γ₀ × −1, Schrödinger, 漢".encode("ascii", "overlaps.plain").decode()
'eta = n^alpha, 2beta >= |mu|^2 +- 10^-1 -> sqrtlambda, Gamma_0 x -1, Schrodinger, ?'
>>> "β = 2² ± 1".encode("latin-1", "overlaps.plain").decode("latin-1")
'beta = 2² ± 1'
"""

from __future__ import annotations

import codecs
import io
import os
import sys
from unicodedata import combining, decomposition, name, normalize

PLAIN = "overlaps.plain"
SIGNS = {"−": "-", "–": "-", "—": "-", "×": "x", "·": ".", "±": "+-", "√": "sqrt", "∞": "inf", "→": "->", "⁄": "/"}
SIGNS |= {"≥": ">=", "≤": "<=", "≠": "!=", "≪": "<<", "≈": "~", "∝": "~", "′": "'", "⊥": "perp", "⟨": "<", "⟩": ">"}
RAISED = {"<super>": "^", "<sub>": "_"}


def adapt() -> None:
    """Let standard output and error write plain letters, unless they are UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            stream.reconfigure(errors=PLAIN)


def say(*lines: object) -> None:
    """Print lines at once; and nothing where nobody reads on, as after `head`: what a command writes does not wait."""
    try:
        print(*lines, sep="\n", flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _plain(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters in a row that could not be encoded, and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    written, mark = "", ""
    for character in error.object[error.start : error.end]:
        before, mark = mark, RAISED.get(decomposition(character).split(" ")[0], "")
        parts = character if character in SIGNS else normalize("NFKD", character)
        written += (mark if mark != before else "") + "".join(map(_letters, parts))
    return written, error.end


def _letters(part: str) -> str:
    """Letters for one character that cannot be decomposed further; accents are dropped."""
    words = name(part, "").split()
    if words[:1] == ["GREEK"] and "LETTER" in words:
        letter = words[-1].replace("LAMDA", "LAMBDA")
        return letter.capitalize() if "CAPITAL" in words else letter.lower()
    return "" if combining(part) else part if part.isascii() else SIGNS.get(part, "?")


codecs.register_error(PLAIN, _plain)
