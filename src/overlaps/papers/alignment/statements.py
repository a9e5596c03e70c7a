"""Statements of the paper that have no claim, and why."""

from __future__ import annotations

from .paper import PAPER

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
