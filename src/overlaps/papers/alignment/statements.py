"""Statements of the paper that have no claim, and why."""

from __future__ import annotations

from .paper import PAPER

EQUATIONS = ("eqs. (1) to (80)",)  # that are numbered in print

PAPER.no_claim(
    "eqs. (1) to (3)",
    "loss, gradient and its parts",
    "definitions, by which the library trains",
)

PAPER.no_claim(
    "lemmas E.1 and E.2",
    "the training sets are sub-Gaussian",
    "cited, and of truncated Gaussians true of centred ones; what fails for their means is in `lemmas-E.3-E.4`",
)

PAPER.no_claim(
    "lemmas F.3 and F.4, eqs. (16) to (33)",
    "bounds on the parts of the gradient, with unnamed constants",
    "steps to lemma F.1, which `lemma-F.1` measures by its powers of n",
)

PAPER.no_claim(
    "lemmas H.1, H.4, H.7 and H.9, corollaries H.8 and H.11",
    "averages of Hermite polynomials and powers of Gaussians",
    "cited or textbook; the library's own are tested against quadrature",
)

PAPER.no_claim(
    "fact H.2, eqs. (43) and (44)",
    "Hermite polynomials of neurons on the sphere are orthogonal",
    "the same as lemma H.1",
)

PAPER.no_claim(
    "eqs. (50) to (52), (62), (63)",
    "steps of the proofs of theorems H.5 and H.10",
    "the results are judged",
)

PAPER.no_claim(
    "eqs. (66) to (68), (73), (74)",
    "parts of theorem 4.2",
    "`theorem-4.2-first-term` and `finite-order` judge the sum",
)

PAPER.no_claim(
    "eqs. (75) to (78)",
    "parts of theorem 4.3",
    "`eq-79` judges the sum",
)

PAPER.no_claim(
    "section 5, Recall@1 grows with the similarity",
    "clusters of unseen classes near the training data are better",
    "`recall-phases` and `recall-rotations` judge it where numbers are said",
)

PAPER.no_claim(
    "figure K.5",
    "Recall@1 by inner product behaves alike",
    "drawn",
)

PAPER.no_claim(
    "table 2",
    "settings of the deep experiments",
    "settings",
)

PAPER.no_claim(
    "figures N.1 to N.17, tables 1, 3 and 4 on CARS196 and CUB200",
    "similarity, alignment and elasticity rise and fall together in training; correlations with Recall@1",
    "the images are not to be had here; `--data` draws them for who has them, and `setup-3` and `setup-4`"
    " are measured on digits",
)

PAPER.no_claim(
    "eq. (4)",
    "the gradient is near its part A, but for log(n)^2/n^(1/2)",
    "the bound of proposition 3.1, judged as `proposition-3.1` and `proposition-3.1-data-2`",
)

PAPER.no_claim(
    "eqs. (6), (7) and (80)",
    "the sums of theorems 4.2 and 4.3",
    "`theorem-4.2-first-term`, `finite-order` and `eq-79` judge them",
)

PAPER.no_claim(
    "eq. (8)",
    "labels are a Lipschitz function with noise",
    "an assumption; the labels here are those of the experiments",
)

PAPER.no_claim(
    "eqs. (9) to (12)",
    "norms of random matrices and vectors, with unnamed constants",
    "cited, and a bound on the samples of one batch",
)

PAPER.no_claim(
    "eqs. (13) to (15), (34) to (36)",
    "norms of the parts of the gradient, and how they are put together",
    "steps to lemma F.1 and proposition 3.1, which are judged by their powers of n",
)

PAPER.no_claim(
    "eqs. (37) to (42)",
    "powers of the fields after the step are near those of their largest part",
    "steps to lemma G.1, which `lemma-G.1` measures",
)

PAPER.no_claim(
    "eqs. (45) to (47), (53) to (60), (64), (65)",
    "averages of powers and Hermite polynomials of Gaussians",
    "textbook; the library's own are tested against quadrature",
)
