"""Wrong formulas that the claims must notice."""

from __future__ import annotations

import numpy as np

import overlaps as ov

from ..ledger import Patch
from . import class_claims, concentration_claims, formula_claims, noise_claims, printed, start_claims, xor_claims
from .paper import PAPER


@PAPER.control("eq-2.1", "overlaps of SGD larger by a tenth")
@PAPER.control("eq-5.6", "overlaps of SGD larger by a tenth")
def eq_2_1(patch: Patch) -> None:
    def wrong(right, *args):
        mean, error = right(*args)
        return 1.1 * mean, error

    patch(formula_claims, "descents", wrong)


@PAPER.control("eq-5.18", "a decay larger by a tenth")
def eq_5_18(patch: Patch) -> None:
    patch(printed, "eq518", lambda right, R, decay, time: right(R, 1.1 * decay, time))


@PAPER.control("lemmas-3.1-3.3", "the signs of Lemma 3.3 as printed")
def lemmas_3_1_3_3(patch: Patch) -> None:
    patch(printed, "lemma33", lambda right, *args: printed.printed33(*args))


@PAPER.control("corollary-5.12", "distances that fall with a power of lambda less by a tenth")
def corollary_5_12(patch: Patch) -> None:
    patch(formula_claims, "power", lambda right, x, y: right(x, np.asarray(y) ** 0.9))


@PAPER.control("energy", "exp(m_ab) for exp(m_ba), as printed")
def energy(patch: Patch) -> None:
    patch(ov.laws, "softmax_energy", lambda right, m, Q, p, decay: right(m.T, Q, p, decay))


@PAPER.control("theorem-2.3", "errors that fall with a power of lambda less by a fifth; they fall faster than said")
def theorem_2_3(patch: Patch) -> None:
    patch(class_claims, "power", lambda right, x, y: right(x, np.asarray(y) ** 0.8))


@PAPER.control("theorem-2.4", "errors that fall with a power of lambda less by a tenth")
def theorem_2_4(patch: Patch) -> None:
    patch(class_claims, "power", lambda right, x, y: right(x, np.asarray(y) ** 0.9))


@PAPER.control("theorem-2.5", "errors that fall more slowly than 1/lambda")
def theorem_2_5(patch: Patch) -> None:
    patch(class_claims, "power", lambda right, x, y: right(x, np.asarray(y) ** 0.4))


@PAPER.control("sampled-blocks", "errors that fall as 1/lambda")
def sampled_blocks(patch: Patch) -> None:
    patch(class_claims, "power", lambda right, x, y: right(x, np.asarray(y) ** 2))


@PAPER.control("figure-2.1", "alignments larger by .2, which decide")
def figure_2_1(patch: Patch) -> None:
    patch(class_claims, "ten_classes", lambda right, *args: np.minimum(right(*args) + 0.2, 1.0))


@PAPER.control("figure-2.1-samples", "alignments larger by a tenth")
def figure_2_1_samples(patch: Patch) -> None:
    patch(class_claims, "ten_classes", lambda right, *args: np.minimum(1.1 * right(*args), 1.0))


@PAPER.control("train-vs-test", "training samples 1.8 times as far, which is no more of the same size")
def train_vs_test(patch: Patch) -> None:
    def wrong(right, quick):
        gaps = right(quick)
        return gaps._replace(train=1.8 * gaps.train)

    patch(class_claims, "gaps_of_sources", wrong)


@PAPER.control("train-nearer", "training samples farther by a tenth")
def train_nearer(patch: Patch) -> None:
    def wrong(right, quick):
        gaps = right(quick)
        return gaps._replace(train=1.1 * gaps.train)

    patch(class_claims, "gaps_of_sources", wrong)


@PAPER.control("theorem-2.6", "errors that fall with a small power of lambda")
@PAPER.control("theorem-2.7", "errors that fall with a small power of lambda")
def theorem_2_6(patch: Patch) -> None:
    patch(xor_claims, "power", lambda right, x, y: right(x, np.asarray(y) ** 0.3))


@PAPER.control("eq-7.11", "outliers larger by a tenth")
def eq_7_11(patch: Patch) -> None:
    patch(ov.laws, "xor_outliers", lambda right, *args: 1.1 * right(*args))


@PAPER.control("initial-readout-outlier", "the outlier of one unit more")
def initial_readout_outlier(patch: Patch) -> None:
    patch(ov.laws, "xor_initial_outlier", lambda right, units, variance: right(units + 1, variance))


@PAPER.control("rank-deficiency", "one set more")
def rank_deficiency(patch: Patch) -> None:
    patch(xor_claims, "sets", lambda right, v, m: right(v, m) % 4 + 1)


@PAPER.control("hidden-classes", "a probability of sub-optimal ends that is less by a tenth")
def sub_optimal_ends(patch: Patch) -> None:
    def wrong(right, units):
        fewer = 0.9 * right(units)[:-1]
        return np.append(fewer, 1 - fewer.sum())

    patch(ov.laws, "hidden_classes", wrong)


@PAPER.control("hidden-classes", "the law of three units more")
def hidden_classes(patch: Patch) -> None:
    patch(ov.laws, "hidden_classes", lambda right, units: right(units + 3))


@PAPER.control("beta-transition", "growth larger by a tenth")
def beta_transition(patch: Patch) -> None:
    patch(xor_claims, "growth", lambda right, *args: 1.1 * right(*args))


@PAPER.control("noisy-transition", "a noise larger by a twentieth")
def noisy_transition(patch: Patch) -> None:
    patch(ov.laws, "xor_transition", lambda right, variance: right(1.05 * variance))


@PAPER.control("fixed-point", "sums larger by one per cent")
def fixed_point(patch: Patch) -> None:
    patch(ov.laws, "xor_norm", lambda right, decay: 1.01 * right(decay))


@PAPER.control("stopping-rule", "outputs on the wrong side")
def stopping_rule(patch: Patch) -> None:
    patch(xor_claims, "margins", lambda right, run: -right(run))


@PAPER.control("theorem-2.5-others", "products of order one with all of them")
def theorem_2_5_others(patch: Patch) -> None:
    patch(start_claims, "lower_products", lambda right, k, kind: right(k, kind) + 0.1)


@PAPER.control("start-not-spiked", "a largest eigenvalue that is next to the second")
def start_not_spiked(patch: Patch) -> None:
    patch(start_claims, "spike", lambda right, *args: 1 + 0.01 * right(*args))


@PAPER.control("theorem-6.1", "expectations larger by a tenth")
def theorem61(patch: Patch) -> None:
    patch(concentration_claims, "exact", lambda right, *args: 1.1 * right(*args))


@PAPER.control("lemma-8.1", "expectations larger by a tenth")
def lemma81(patch: Patch) -> None:
    patch(concentration_claims, "exact", lambda right, *args: 1.1 * right(*args))


@PAPER.control("lemmas-4.4-4.5", "residuals larger by a tenth")
def lemmas44_45(patch: Patch) -> None:
    def wrong(right, point):
        blocks, residual, out = right(point)
        return blocks, 1.1 * residual, out

    patch(concentration_claims, "limits", wrong)


@PAPER.control("proposition-5.15", "a decay of R_perp of beta in place of 2 beta")
def proposition515(patch: Patch) -> None:
    def wrong(right, lam, decay, *rest):
        found = right(lam, decay, *rest)
        return found | {"R": found["R"] + decay * concentration_claims.PERP}

    patch(concentration_claims, "proposition515", wrong)


@PAPER.control("proposition-5.18", "outputs that count 1.1 times")
def proposition518(patch: Patch) -> None:
    patch(printed, "proposition518", lambda right, v, *rest: right(1.1 * v, *rest))


@PAPER.control(
    "corollary-5.20", "distances that fall with a power of lambda less by a fifth; they fall faster than said"
)
def corollary520(patch: Patch) -> None:
    patch(concentration_claims, "path_distance", lambda right, lam: right(lam) ** 0.8)


@PAPER.control("eq-5.10", "a variance of the logits larger by a tenth")
def eq510(patch: Patch) -> None:
    patch(noise_claims, "corrected_loss", lambda right, m, Q, lam: right(m, Q, lam / 1.1))


@PAPER.control("eq-5.14", "products of the residuals larger by a tenth")
def eq514(patch: Patch) -> None:
    patch(noise_claims, "residual_products", lambda right, *args: 1.1 * right(*args))


@PAPER.control("proposition-5.1", "R_perp in place of the distance, which is its root")
def proposition51(patch: Patch) -> None:
    patch(noise_claims, "ends", lambda right, *args: (right(*args)[0] ** 2, right(*args)[1]))


@PAPER.control("theorem-6.2", "a tenth of the weight on one sample")
def theorem62(patch: Patch) -> None:
    def wrong(right, W, y, Y, kind):
        return 0.9 * right(W, y, Y, kind) + 0.1 * right(W, y[:1], Y[:1], kind)

    patch(concentration_claims, "sampled_xor", wrong)
