"""Statements of the paper that have no claim, and why."""

from __future__ import annotations

from .paper import PAPER

EQUATIONS = ("eqs. (1) to (58)",)  # that are numbered in print

PAPER.no_claim(
    "eq. (4)",
    "training is the zero of a Gaussian process",
    "a reformulation",
)

PAPER.no_claim(
    "section 3.1",
    "results do not depend on the choice of triangular factors",
    "a factor differs by an orthogonal block, which standard normal variables do not see",
)

PAPER.no_claim(
    "section 3.2",
    "both processes are sequential and have unique solutions",
    "by construction; the library computes them in this order",
)

PAPER.no_claim(
    "section 3.3",
    "H is even in z, and so real at z = sqrt(-1)",
    "the sign of z is that of Gamma, whose law is even",
)

PAPER.no_claim(
    "eqs. (12) to (15)",
    "psi written as a sequence",
    "`iterations` and `theorem-1` compute it so",
)

PAPER.no_claim(
    "eqs. (16) to (19)",
    "mean-field equations for several components and submodels",
    "their special case of section 6 is judged, `eqs-28-32`, and solved for several components in the tests",
)

PAPER.no_claim(
    "assumption 1",
    "kernels exist and concentrate",
    "`theorem-2` measures the rate at which they do",
)

PAPER.no_claim(
    "lemma 1, eqs. (34) to (37)",
    "Stein's identity on a Banach space, and the interpolation",
    "`theorem-3` measures the inequality that follows, and its sign",
)

PAPER.no_claim(
    "eqs. (39) to (43)",
    "the structure of the Jacobian",
    "`theorem-4-conditions` has it, and shows that it is needed",
)

PAPER.no_claim(
    "appendix C, eqs. (52) to (54)",
    "bounds behind theorem 2",
    "their constants are not given; the theorem is judged",
)

PAPER.no_claim(
    "appendix D, theorem 5, corollaries 1 and 2",
    "Gordon's lemma for processes that leave the set with small probability",
    "no example and no constants are given; the inequality has the sign of theorem 3, which `theorem-3` judges",
)

PAPER.no_claim(
    "section 8",
    "with kernels that grow with m the limit may fail; Gaussian mixtures may be one of many",
    "conjectures",
)

PAPER.no_claim(
    "eqs. (1) to (3), (5) to (7)",
    "the data, the algorithms and the matrices of overlaps with their factors",
    "definitions, by which the library computes",
)

PAPER.no_claim(
    "eq. (20)",
    "the bound of theorem 2 on a Lipschitz function",
    "its rate is judged, `theorem-2`; its constants are not given",
)

PAPER.no_claim(
    "eqs. (24), (25) and (27)",
    "momentum as matrices, the gradient, and covariances of the fields of section 6",
    "definitions, and steps to (28) to (32), which `eqs-28-32` judges",
)

PAPER.no_claim(
    "eqs. (55) to (57)",
    "pairs, a vector field and paths in the set of definition 3",
    "definitions of appendix D; the inequality (58) is judged, `theorem-3`",
)
