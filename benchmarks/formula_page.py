"""The page on mutants of formulas, docs/formula_mutants.md, from what `benchmarks.formula_mutants` has recorded."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from .formula_files import TESTS, files

PAGE = Path(__file__).parents[1] / "docs" / "formula_mutants.md"

SAME = {
    "averages.frame.outside#3": "A third projection onto what is left after two changes rounding errors alone.",
    "averages.panels._field_cuts#12": "The sides −2, …, 2 are symmetric, and cuts are sorted before they are used.",
    "averages.relu_independent._fit#2": "Other places of a fit by least squares, as good: averages are off by 1e-8.",
    "data.gaussian_moments._block#27": "Intervals of 64 or 65 roundings: both are too short to be halved.",
    "full_batch.finite_size_fluctuations._Replica._together#3": "How many directions are followed at once.",
    "giant_step.giant.rank_one#0": "A second coefficient is computed, and the first is taken.",
    "laws.ridge._effective_decay#10": "Callers leave out eigenvalues of zero; in any other sum the number is lost.",
    "laws.secular._roots#52": "The wrong root of a parabola leaves the bracket, which is halved then.",
    "laws.secular.roots#1": "Two threads share what one does otherwise; each root is found by itself.",
    "online.implicit.Linearised._effect#3": "Another length of a difference, and the same derivative.",
    "online.implicit.Radau.__init__#7": "The first step near rest is shorter; later ones grow fourfold.",
    "online.implicit.Radau._stages#4": "Below 1e-3, which counts then, at all tolerances above 1e-19.",
    "online.strong_mixture._largest#0": "One iteration more of an eigenvalue that is wanted to a few per cent.",
    "spectra.covariance_law.CovarianceLaw.outliers#4": "The bracket of a root is longer, and the root the same.",
    "spectra.span.span#6": "Signs, by which to multiply and to divide is the same.",
}  # mutants that compute the same to the accuracy that is stated, by name: why; they are not run

HEAD = """# Mutants noticed by tests

Do the tests notice a mistake? A formula is made wrong in one place, by a changed operator, a number larger by one or a
lost minus, and the tests about its file are run until one fails. A mutant counts as noticed if that test passes on the
right code. Compiled functions are compiled anew with the mistake in them. `python -m benchmarks.formula_mutants` draws
the mutants with a fixed seed from all files that state a formula, at most six of a function, and writes this page;
[mutants noticed by claims](claim_mutants.md) asks the same of the claims of the papers. `--count` says how many are
drawn; a larger number has those of a smaller one among them.

"""


def page(mutants: dict[str, dict[str, Any]]) -> str:
    """Mutants by file, how many were noticed, and the ones that were not."""
    lines = ["| file | mutants | noticed | tests |", "|---|---|---|---|"]
    groups = Counter(_module(key) for key in mutants)
    hits = Counter(_module(key) for key, row in mutants.items() if row["test"])
    for name in sorted(groups):
        tests = ", ".join(f"`{Path(file).stem.removeprefix('test_')}`" for file in files(name) if file[:5] == "tests")
        lines.append(f"| `{name}` | {groups[name]} | {hits[name]} | {tests} |")
    noticed, first = sum(hits.values()), sum(bool(row["first"]) for row in mutants.values())
    same = sum(key in SAME for key in mutants)
    others = len(mutants) - same
    share = 100 * noticed / max(others, 1)
    lines += [
        f"| **all** | {len(mutants)} | {noticed} | |",
        "",
        f"Of {len(mutants)} mutants {same} compute the same as the formula. Of the {others} others {noticed} are",
        f"noticed, {share:.1f} %. When they were judged first, {first} were; because of the rest tests were written,",
        "added to those that are about a file, or given more time.",
        "",
    ]
    lost = sorted((key, row) for key, row in mutants.items() if not row["test"])
    alike = [f"- `{key.partition('#')[0]}`: {row['words']}. {SAME[key]}" for key, row in lost if key in SAME]
    real = [f"- `{key.partition('#')[0]}`: {row['words']}" for key, row in lost if key not in SAME]
    lines += ["These compute the same, to rounding or to the accuracy that is stated:", "", *alike, ""] if alike else []
    lines += ["Not noticed:", "", *real, ""] if real else []
    return HEAD + "\n".join(lines)


def _module(key: str) -> str:
    """The file of a mutant: the longest beginning of its name that is one."""
    parts = key.partition("#")[0].split(".")
    return next(name for at in range(len(parts), 0, -1) if (name := ".".join(parts[:at])) in TESTS)
