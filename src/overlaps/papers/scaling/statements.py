"""Statements of the paper that have no claim, and why."""

from __future__ import annotations

from .paper import PAPER

EQUATIONS = ("eqs. (1) to (122)",)  # that are numbered in print

PAPER.no_claim(
    "eqs. (4), (24), (92) and (93)",
    "the differential equations of the order parameters",
    "they are what `solve` solves; the tests hold it against training and the exact chain at every size",
)

PAPER.no_claim(
    "section 3",
    "moments of order L follow from lower ones by Cayley and Hamilton's theorem",
    'an identity; `solve(..., system="moments")` rests on it',
)

PAPER.no_claim(
    "eqs. (7), (38), (46), (64) and (65)",
    "R and Q of first order at small rates",
    "parts of the error (8), which `finite-rate` and `eq88` measure",
)

PAPER.no_claim(
    "eqs. (8), (47) and (67)",
    "the error at small rates is a sum of exponentials over levels",
    "to this `eq6`, `finite-rate` and `eqs-71-78` compare; the sum itself is the solution of (60)",
)

PAPER.no_claim(
    "eqs. (30) to (37), (42) to (45)",
    "eigenvectors, inverses and solutions on the way to (6)",
    "steps of a proof whose result is judged, `eq6`; the two that are misprinted are in `eqs-25-41`",
)

PAPER.no_claim(
    "eqs. (50) to (53)",
    "the integral over levels, its power law and where it begins and ends",
    "`eq11`, `linear-transition` and `time-exponent-linear` judge them together",
)

PAPER.no_claim(
    "eqs. (54), (55) and (57)",
    "coefficients of the shifted characteristic polynomial, and b_k by a similarity",
    "another way to the numbers of (6), which `eq6` has by eigenvectors",
)

PAPER.no_claim(
    "figures 7 to 9",
    "sum, integral and corrections look alike for small rates",
    "what they show is in `bound` and `bound-late`",
)

PAPER.no_claim(
    "eqs. (59) to (63), (66), (68) to (70), (72), (73), (75) to (77)",
    "the Langevin equation without its noise, and its averages",
    "steps to (10), (71) and (78), which are judged",
)

PAPER.no_claim(
    "eqs. (80) and (81)",
    "a covariance that is not diagonal gives the same error in its eigenbasis",
    "a change of basis",
)

PAPER.no_claim(
    "eqs. (82), (86) and (87)",
    "training beyond the eigenbasis, block by block",
    "steps to (88), which `eq88` judges",
)

PAPER.no_claim(
    "section 5.1",
    "there may be more than one plateau",
    "cited from Biehl et al. (1996)",
)

PAPER.no_claim(
    "eq. (13), (97)",
    "fixed points of equal rows",
    "they are those of (95) and (98) there, judged as `eq95`, `eq98` and `plateau-heights`",
)

PAPER.no_claim(
    "eqs. (14), (100) to (113)",
    "matrices and eigenvectors of the linearised equations",
    "steps to (15), which is judged; factors that are missing are in `eqs-100-114`",
)

PAPER.no_claim(
    "figure 5",
    "plateaus of single runs for several M and L",
    "drawn; their escape times are judged by `escape-scaling` and `escape-drawn`",
)

PAPER.no_claim(
    "figure 6 (left) at K = M = 40",
    "late errors fall as a power of time",
    "3240 overlaps on each of 512 levels take hours; `time-exponent-erf` is measured at K = M = 2, on "
    "which the slow rate depends through (16) alone",
)

PAPER.no_claim(
    "eqs. (118) and (119)",
    "the linearised late phase and its eigenvectors",
    "`eq17` and `eqs-94-121-122` judge the sums that they make",
)

PAPER.no_claim(
    "eq. (120)",
    "the matrix F of order eta^2 in the late phase",
    "its fractions are lost in the text that is to be had; the solved equations have the term",
)

PAPER.no_claim(
    "figure 20",
    "(121) with solved perturbations agrees with (122) from time 1000 on",
    "`eqs-94-121-122` judges both where first order is all; that second order is as large at time 1000 is in `eq17`",
)

PAPER.no_claim(
    "appendix D",
    "numerics are limited to few levels by super-exponential moments",
    "true of moments; the library solves levels, up to ten thousand of them",
)

PAPER.no_claim(
    "eqs. (3), (20) to (23), (58)",
    "the step of SGD, the covariances of the averages, the error of one linear unit",
    "definitions, by which the library trains and solves",
)

PAPER.no_claim(
    "eqs. (5), (26) to (29)",
    "(4) and (24) for one linear unit, as matrices on moments",
    "the same equations; `eq6` has their solution, misprints of (25) are in `eqs-25-41`",
)

PAPER.no_claim(
    "eq. (10)",
    "the error with N_l of N directions trained, as a sum of exponentials over levels and what is left",
    "its parts are judged: the decay by `eq6`, what is left by `eqs-71-78`, their integral (11) by `eq11`",
)

PAPER.no_claim(
    "eqs. (39) and (40)",
    "R inserted in the equation of Q, and the inverse of A_1",
    "steps to (6), `eq6`",
)

PAPER.no_claim(
    "eq. (48)",
    "the formula of Euler and Maclaurin",
    "textbook; `eq49` and `bound` judge what it is used for",
)

PAPER.no_claim(
    "eqs. (89) and (90)",
    "averages I_2 and I_3 of the error function",
    "cited from Saad and Solla (1995); the library's own are tested against quadrature; (91) is judged, `eq91`",
)
