"""Wrong formulas that the claims must notice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import overlaps as ov

from ..controls import inner
from ..estimates import Estimate
from ..ledger import Patch
from . import deep_claims, gradient_claims, lemma_claims, printed, score_claims, setups, spread_claims
from .paper import PAPER


@PAPER.control("setup-3", "classes ranked by 1/alignment in the concordance")
def setup_3(patch: Patch) -> None:
    def wrong(right, *args):
        data = right(*args)["digits"]
        names = ("similarity", "alignment", "elasticity")
        values = np.abs([data[name].values for name in names])  # (3, run, epoch, set, unseen)
        values[1] = 1 / values[1]
        found = np.zeros(values.shape[1:-1])
        for at in np.ndindex(found.shape):
            found[at] = ov.giant_step.kendall_w(values[(slice(None), *at)]).W
        return {"digits": data.assign(concordance=(data["concordance"].dims, found))}

    patch(deep_claims, "pairs", wrong)


@PAPER.control("setup-4", "the power of a hundred classes, which decides")
def setup_4(patch: Patch) -> None:
    patch(deep_claims, "power", lambda right, classes, runs: right(100, runs))


@PAPER.control("theorem-H.5", "the corrected product larger by a tenth")
@PAPER.control("theorem-H.10", "the corrected product larger by a tenth")
def theorem_h_5(patch: Patch) -> None:
    patch(ov.giant_step, "hermite_product", lambda right, *args: 1.1 * right(*args))


@PAPER.control("eq-49", "the variance in its exponent, which then holds")
def eq_49(patch: Patch) -> None:
    patch(printed, "eq_49", lambda right, t, variance: np.exp(t**2 * variance / 2))


@PAPER.control("eqs-69-70", "the corrected moment larger by a tenth")
def eqs_69_70(patch: Patch) -> None:
    patch(ov.giant_step, "sphere_moment", lambda right, *args: 1.1 * right(*args))


@PAPER.control("eq-71", "half the variance in (65)")
def eq_71(patch: Patch) -> None:
    patch(printed, "eq_65", lambda right, n, mean, variance, **more: right(n, mean, variance / 2, **more))


@PAPER.control("eq-72", "2 for w, which then holds")
def eq_72(patch: Patch) -> None:
    patch(printed, "eq_72", lambda right, k, width, w: right(k, width, 2.0))


@PAPER.control("unseen-generator", "|nu|^2 for |nu|^4, which then holds")
def unseen_generator(patch: Patch) -> None:
    patch(printed, "unseen_points", lambda right, z, nu: z - np.outer(z @ nu, nu) / (nu @ nu) + nu)


@PAPER.control("rotations", "no rotation, which then holds")
def rotations(patch: Patch) -> None:
    patch(printed, "rotation", lambda right, M, epsilon: np.eye(len(M)))


def runs_anew(patch: Patch) -> None:
    """Steps are trained again, and not taken from what has been remembered of right ones."""
    patch(ov.giant_step, "train", lambda right, *args, **more: inner("giant_step.simulation").train(*args, **more))


def short_means(patch: Patch) -> None:
    """The truncated Gaussian standardised within its classes, around means of length one."""

    def wrong(right, data, rng, samples, inputs):
        X, y = right(data, rng, samples, inputs)
        if data.kind == "truncated":
            mean = data.mean(inputs)
            X = (X - y[:, None] * mean) / np.sqrt(data.variance(inputs)) + y[:, None] * mean / np.linalg.norm(mean)
        return X, y

    patch(inner("data.two_classes").TwoClasses, "draw", wrong)


@PAPER.control("proposition-3.1", "one for c_1 in the rank-one part")
def proposition_3_1(patch: Patch) -> None:
    def wrong(right, *args):
        first, second = right(*args)
        return first / ov.giant_step.hermite_coefficients("tanh", 1).c[1], second

    runs_anew(patch)
    patch(inner("giant_step.simulation"), "rank_one", wrong)


@PAPER.control("proposition-3.1-data-2", "coordinates of variance one around means of length one, for which it holds")
def proposition_3_1_data_2(patch: Patch) -> None:
    runs_anew(patch)
    short_means(patch)


@PAPER.control("learning-rate", "an exponent of .3, which then holds")
def learning_rate(patch: Patch) -> None:
    patch(gradient_claims, "Fraction", lambda right, *args: right(3, 10) if len(args) == 1 else right(*args))


@PAPER.control("windows", "b larger by a half in F_l")
def windows(patch: Patch) -> None:
    patch(gradient_claims, "feature_errors", lambda right, *args: right(*args, factors=(1.5,)))


@PAPER.control("lemma-3.3", "b for beta, which then holds")
def lemma_3_3(patch: Patch) -> None:
    patch(gradient_claims, "feature_errors", lambda right, *args, factors: right(*args, factors=(1.0, 1.0)))


@PAPER.control("growth", "labels without their signs in the gradient")
@PAPER.control("together", "labels without their signs in the gradient")
def growth(patch: Patch) -> None:
    runs_anew(patch)
    patch(inner("giant_step.simulation"), "raw_gradient", lambda right, X, y, *rest: right(X, np.abs(y), *rest))
    patch(score_claims, "setup1", lambda right, *args: setups.setup1.__wrapped__(*args))


@PAPER.control("linear-similarity", "unseen classes a tenth farther")
def linear_similarity(patch: Patch) -> None:
    patch(ov.giant_step, "scaled", lambda right, v, e: right(1.1 * np.asarray(v), e))


@PAPER.control("recall-phases", "features without their signs")
def recall_phases(patch: Patch) -> None:
    runs_anew(patch)
    patch(inner("giant_step.simulation"), "recalls", lambda right, F, sides: right(np.abs(F), sides))
    patch(score_claims, "setup1", lambda right, *args: setups.setup1.__wrapped__(*args))


@PAPER.control("recall-rotations", "gains without their sign")
def recall_rotations(patch: Patch) -> None:
    def wrong(right, data):
        mean, error = right(data)
        return np.abs(mean), error

    patch(score_claims, "gain", wrong)


@PAPER.control("theorem-4.2-first-term", "scores of theory larger by a tenth")
@PAPER.control("eq-79", "scores of theory larger by a tenth")
@PAPER.control("finite-order", "scores of theory larger by a tenth")
@PAPER.control("regression", "scores of theory larger by a tenth")
def theorem_4_2_first_term(patch: Patch) -> None:
    def wrong(right, *args, **more):
        scores = right(*args, **more)
        return replace(scores, data=1.1 * scores.data)

    patch(ov.giant_step, "solve", wrong)


class WithoutScatter:
    """Averages of a slope, of which the square is that of the mean."""

    def __init__(self, line: Any) -> None:
        self.line, self.slope = line, line.slope

    def mean(self, mean, sd, of=None):
        return self.line.mean(mean, sd) if of is None else of(self.line.mean(mean, sd))


@PAPER.control("eq-79", "no noise of the gradient")
def no_noise(patch: Patch) -> None:
    def wrong(right, *args):
        g, slope = right(*args)
        return g, WithoutScatter(slope)

    patch(inner("giant_step.neurons"), "lines", wrong)
    patch(ov.giant_step, "solve", lambda right, *args, **more: inner("giant_step.prediction").solve(*args, **more))


@PAPER.control("note-4.4", "labels without their sign")
def note_4_4(patch: Patch) -> None:
    patch(ov.giant_step, "gradient", lambda right, X, y, *rest: right(X, np.abs(y), *rest))


@PAPER.control("growth-in-spread", "alignments of the classes in the order of falling spread, in theory and runs")
@PAPER.control("identical-conditions", "alignments of the classes in the order of falling spread, and no jump at e = 0")
def growth_in_spread(patch: Patch) -> None:
    def without_jump(right, *args):
        runs, theory = right(*args)
        return runs | {"elasticity": Estimate(1.0, runs["elasticity"].error)}, theory

    patch(spread_claims, "at_zero", without_jump)

    def wrong(right, *args):
        scores = right(*args)
        theory, measured = (d | {"alignment": d["alignment"][..., ::-1]} for d in (scores.theory, scores.measured))
        return scores._replace(theory=theory, measured=measured)

    patch(spread_claims, "spread_scores", wrong)


@PAPER.control("lemmas-E.3-E.4", "norms of centred inputs, which do not grow")
def lemmas_e(patch: Patch) -> None:
    patch(
        spread_claims,
        "input_norms",
        lambda right, sizes, runs: [each / n**0.5 for each, n in zip(right(sizes, runs), sizes, strict=True)],
    )


@PAPER.control("lemma-F.1", "coordinates of variance one around means of length one, for which it holds")
@PAPER.control("lemma-G.1", "coordinates of variance one around means of length one, for which it holds")
def lemmas_f1_g1(patch: Patch) -> None:
    short_means(patch)
    patch(lemma_claims, "powers", lambda right, *args: right.__wrapped__(*args))


@PAPER.control("lemma-3.2", "Data 2, for which it does not hold")
def lemma_32(patch: Patch) -> None:
    patch(lemma_claims, "powers", lambda right, kind, quick: right("truncated", quick))
