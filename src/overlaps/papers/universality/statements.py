"""Statements of the paper that have no claim, and why."""

from __future__ import annotations

from .paper import PAPER

EQUATIONS = ("eqs. (1) to (26)", "eqs. (S1) to (S48)")  # that are numbered in print

PAPER.no_claim(
    "eqs. (1) to (3), (13) to (15)",
    "the model and its matrices",
    "definitions",
)

PAPER.no_claim(
    "eqs. (4), (S47) and (S48)",
    "the equation of the readout and the error",
    "solved and compared within `eqs-S41-S48`",
)

PAPER.no_claim(
    "eqs. (7), (8) and (12)",
    "centred fields have mean zero; a, b and c of the nonlinearity",
    "definitions; `property-II.3` measures the fields",
)

PAPER.no_claim(
    "eqs. (S1) to (S5)",
    "expansion of a joint density in a small covariance",
    "steps to (S6), which `lemma-II.1` measures",
)

PAPER.no_claim(
    "eqs. (S7) to (S36)",
    "the proof of property II.3 and the way to (S37)",
    "results are judged: `property-II.3`, `eq-S37`, `eq-S39`",
)

PAPER.no_claim(
    "section III B",
    "equal starts give no difference at first",
    "by construction",
)

PAPER.no_claim(
    "section IV",
    "10 of 20 mixtures are kept, whose normal runs agree with the equations",
    "a choice that cannot be repeated without their seeds; figures and tables show one of the kind next to all",
)

PAPER.no_claim(
    "section IV A",
    "errors do not explode, for trained parameters are bounded",
    "a remark; `un-standardised` measures how distances grow",
)

PAPER.no_claim(
    "section V, figure S1",
    "sample means of functions of a mixture are normal about the same mean",
    "drawn as figS1; that means are the same is lemma V.3, which fails",
)

PAPER.no_claim(
    "eq. (17)",
    "means are scalars or vectors, and standardisation is overall or by coordinate",
    "readings that the text leaves open; with scalar means and one label all coordinates move together, "
    "which no figure shows",
)

PAPER.no_claim(
    "section VI",
    "a similar universality may hold for other distributions",
    "a conjecture",
)

PAPER.no_claim(
    "eqs. (19) and (20)",
    "inputs that are standardised, and M of a matrix as the mean over its entries",
    "definitions, by which `standardised` and the claims about tables measure",
)
