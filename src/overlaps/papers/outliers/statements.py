"""Statements of the paper that have no claim, and why."""

from __future__ import annotations

from .paper import PAPER

EQUATIONS = (
    "eqs. (2.1) to (2.6)",
    "eqs. (3.1) to (3.19)",
    "eqs. (4.1) to (4.18)",
    "eqs. (5.1) to (5.26)",
    "eqs. (6.1) to (6.23)",
    "eqs. (7.1) to (7.22)",
    "eq. (8.1)",
)  # that are numbered in print

PAPER.no_claim(
    "lemmas 4.1 to 4.3",
    "averages of ReLU networks are near those without noise, with unnamed constants",
    "steps to lemmas 4.4 and 4.5, which are judged by their powers of lambda",
)

PAPER.no_claim(
    "eq. (4.11)",
    "blocks W_i W_i of the Hessian of the XOR network",
    "it is (7.11) with the factor that is missing there, `eq-7.11`",
)

PAPER.no_claim(
    "proposition 5.2",
    "weights of the XOR network stay bounded, and come near the span of the means with a length bounded from below",
    "`theorem-2.6`, `theorem-2.7` and `fixed-point` measure this where it is used",
)

PAPER.no_claim(
    "definitions 5.3 and 5.4, theorem 5.5, lemma 5.6",
    "when summary statistics converge to an ordinary differential equation",
    "cited; that they do is a test of the library, chain against solved equations",
)

PAPER.no_claim(
    "theorem 5.7, eq. (5.5)",
    "the equation of m",
    "`eq-2.1` and `eq-5.6` use it as printed, and it agrees with SGD there",
)

PAPER.no_claim(
    "lemma 5.8, eqs. (5.8), (5.9), (5.11) to (5.13), (5.15)",
    "summary statistics are localizable; their slopes; the corrector",
    "conditions of the cited theorem; the corrector (5.15) enters (5.6), which `eq-5.6` judges",
)

PAPER.no_claim(
    "lemmas 5.9 and 5.19",
    "trajectories stay in a ball for all times",
    "no number is given for its radius; every trajectory solved here is bounded",
)

PAPER.no_claim(
    "proposition 5.10, lemma 5.11",
    "drifts with noise are within O(1/lambda) of those without",
    "`corollary-5.12` measures trajectories, which follow from it",
)

PAPER.no_claim(
    "proposition 5.14",
    "x^c has a positive product with its mean and negative ones with the others, all alike for equal weights",
    "`theorem-2.5` measures it through the eigenvectors",
)

PAPER.no_claim(
    "lemma 5.16, corollary 5.17",
    "A_i and B_ij for large lambda",
    "steps to proposition 5.18 and corollary 5.20, which are judged",
)

PAPER.no_claim(
    "observation 5.21, lemma 5.22",
    "all units specialise with probability one for beta < 1/8",
    "`beta-transition` and `fixed-point` judge the fixed points",
)

PAPER.no_claim(
    "section 7",
    "the proofs of theorems 2.3 to 2.7 from sections 3 to 6",
    "the theorems are judged, and (7.3), (7.4) and (7.11) where they are used",
)

PAPER.no_claim(
    "figures 2.2 to 2.4, 9.1 to 9.6",
    "spectra and alignments along training, of test and of training samples",
    "drawn; what the text says of them is in `theorem-2.5`, `train-vs-test` and `rank-deficiency`",
)

PAPER.no_claim(
    "eqs. (2.2) to (2.6), (8.1)",
    "empirical matrices, the two mixtures and their losses",
    "definitions, by which the library trains and computes",
)

PAPER.no_claim(
    "eqs. (3.1) to (3.5), (4.1) to (4.4)",
    "gradients and second derivatives of the two losses",
    "definitions; the library's matrices are tested against differences of the loss",
)

PAPER.no_claim(
    "eqs. (3.6) to (3.19)",
    "averages of the blocks by Gaussian integration by parts",
    "steps to lemmas 3.1 to 3.3, which `lemmas-3.1-3.3` judges",
)

PAPER.no_claim(
    "eqs. (4.5) to (4.9), (4.12) to (4.15), (4.18)",
    "blocks of the XOR network are near those without noise, with unnamed constants",
    "steps to lemmas 4.4 and 4.5, which are judged by their powers of lambda",
)

PAPER.no_claim(
    "eqs. (5.1) to (5.4)",
    "when summary statistics converge to a differential equation",
    "cited; that they do is a test of the library, chain against solved equations",
)

PAPER.no_claim(
    "eqs. (5.7), (5.16), (5.17) and (5.19)",
    "averages of the softmax, the equation of m without noise and its fixed points",
    "`eq-2.1`, `corollary-5.12` and `energy` judge what follows",
)

PAPER.no_claim(
    "eqs. (5.20) to (5.26)",
    "summary statistics of the XOR network, their drift and its bounds",
    "definitions, and steps to propositions 5.15 and 5.18, which are judged",
)

PAPER.no_claim(
    "eqs. (6.3) to (6.13), (6.16) to (6.23)",
    "nets and tails of sums behind theorems 6.1 and 6.2",
    "steps of proofs whose results are judged, `theorem-6.1` and `theorem-6.2`",
)

PAPER.no_claim(
    "eqs. (7.1), (7.2), (7.5) to (7.10), (7.12) to (7.22)",
    "blocks as sums over means, with errors that are bounded",
    "steps of the proofs of theorems 2.3 to 2.7, which are judged",
)
