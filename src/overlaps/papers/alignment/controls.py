"""Wrong formulas that the claims must notice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import overlaps as ov

from ..ledger import Patch
from . import deep_claims, gradient_claims, lemma_claims, printed, recall_claims, score_claims, spread_claims
from .paper import PAPER

NOISE = np.linspace(0.99, 1.01, 8)  # of runs


@PAPER.control("setup-3", "half of the concordance")
def setup_3(patch: Patch) -> None:
    def wrong(right, *args):
        data = right(*args)["digits"]
        return {"digits": data.assign(concordance=data["concordance"] / 2)}

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


@PAPER.control("proposition-3.1", "gradients that stay away from rank one")
def proposition_3_1(patch: Patch) -> None:
    patch(gradient_claims, "gradient_errors", lambda right, kind, sizes, runs: [0.6 * NOISE for _ in sizes])


@PAPER.control("proposition-3.1-data-2", "gradients that come to rank one as 1/n, which then holds")
def proposition_3_1_data_2(patch: Patch) -> None:
    patch(gradient_claims, "gradient_errors", lambda right, kind, sizes, runs: [NOISE / n for n in sizes])


@PAPER.control("learning-rate", "an exponent of .3, which then holds")
def learning_rate(patch: Patch) -> None:
    patch(gradient_claims, "Fraction", lambda right, *args: right(3, 10) if len(args) == 1 else right(*args))


@PAPER.control("windows", "features of which a lower order will do")
def windows(patch: Patch) -> None:
    def wrong(right, task, orders, seed):
        return (1 + 0.01 * (seed % 3)) * float(task.count[0]) ** np.array([-0.2, -0.2])

    patch(gradient_claims, "feature_errors", wrong)


@PAPER.control("lemma-3.3", "b for beta, which then holds")
def lemma_3_3(patch: Patch) -> None:
    patch(gradient_claims, "feature_errors", lambda right, *args, factor: right(*args))


@PAPER.control("growth", "an alignment that falls")
@PAPER.control("together", "an alignment that falls")
def growth(patch: Patch) -> None:
    def wrong(right, *args):
        data = right(*args)
        return data.assign(alignment=-data["alignment"] + data["alignment"].max())

    patch(score_claims, "setup1", wrong)


@PAPER.control("linear-similarity", "unseen classes a tenth farther")
def linear_similarity(patch: Patch) -> None:
    patch(ov.giant_step, "scaled", lambda right, v, e: right(1.1 * np.asarray(v), e))


@PAPER.control("recall-phases", "the best gain at every scale")
def recall_phases(patch: Patch) -> None:
    def wrong(right, data):
        mean, error = right(data)
        return np.full_like(mean, mean.max()), error

    patch(recall_claims, "gain", wrong)


@PAPER.control("recall-rotations", "gains without their sign")
def recall_rotations(patch: Patch) -> None:
    def wrong(right, data):
        mean, error = right(data)
        return np.abs(mean), error

    patch(recall_claims, "gain", wrong)


@PAPER.control("theorem-4.2-first-term", "scores of theory larger by 15 %")
@PAPER.control("eq-79", "scores of theory larger by 15 %")
@PAPER.control("finite-order", "scores of theory larger by 15 %")
@PAPER.control("regression", "scores of theory larger by 15 %")
def theorem_4_2_first_term(patch: Patch) -> None:
    def wrong(right, *args, **more):
        scores = right(*args, **more)
        return replace(scores, data=1.15 * scores.data)

    patch(ov.giant_step, "solve", wrong)


@PAPER.control("note-4.4", "labels without their sign")
def note_4_4(patch: Patch) -> None:
    patch(ov.giant_step, "gradient", lambda right, X, y, *rest: right(X, np.abs(y), *rest))


@PAPER.control("growth-in-spread", "scores that grow as the spread, in theory and runs")
def growth_in_spread(patch: Patch) -> None:
    def wrong(right, *args):
        spreads, theory, measured = right(*args)
        return spreads, 1 / theory, 1 / measured

    patch(spread_claims, "spread_scores", wrong)


@PAPER.control("lemmas-E.3-E.4", "norms of centred inputs, which do not grow")
def lemmas_e(patch: Patch) -> None:
    patch(
        spread_claims,
        "input_norms",
        lambda right, sizes, runs: [each / n**0.5 for each, n in zip(right(sizes, runs), sizes, strict=True)],
    )


def like_data_3(right, kind, quick):
    """Data 2 with the sizes of Data 3."""
    return right("sphere", quick)


@PAPER.control("lemma-F.1", "Data 2 with the sizes of Data 3, for which it holds")
def lemma_f1(patch: Patch) -> None:
    patch(lemma_claims, "powers", like_data_3)


@PAPER.control("lemma-G.1", "Data 2 with the sizes of Data 3, for which it holds")
def lemma_g1(patch: Patch) -> None:
    patch(lemma_claims, "powers", like_data_3)


@PAPER.control("lemma-3.2", "Data 2, for which it does not hold")
def lemma_32(patch: Patch) -> None:
    patch(lemma_claims, "powers", lambda right, kind, quick: right("truncated", quick))
