"""Wrong formulas that the claims must notice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.stats import norm

import overlaps as ov

from ..controls import inner
from ..ledger import Patch
from . import limit_claims, loops, moment_claims, printed, refinement_claims
from .mean_field import Limit
from .paper import PAPER
from .refinement_claims import LEVEL


@PAPER.control(
    "claim-1", "variances two and a half times as large, as a quick measurement tells; a full one, an eighth"
)
def claim_1(patch: Patch) -> None:
    patch(ov.full_batch, "continued", lambda right, *args, **more: 2.5 * right(*args, **more))


@PAPER.control("relu-continuation", "variances larger by a tenth")
def relu_continuation(patch: Patch) -> None:
    patch(ov.full_batch, "continued", lambda right, *args, **more: 1.1 * right(*args, **more))


@PAPER.control("relu-remark", "soft ReLU in place of ReLU")
def relu_remark(patch: Patch) -> None:
    patch(refinement_claims, "single_iteration", lambda right, pair, *rest: right(("softplus", pair[1]), *rest))


@PAPER.control("iterations", "a deviation that falls as 1/m, which then holds")
def iterations(patch: Patch) -> None:
    def wrong(right, pair, m, *rest):
        ratio, spread, late = right(pair, m, *rest)
        return 1 + (ratio - 1) * 50 / m, spread, late

    patch(refinement_claims, "one_pass", wrong)


@PAPER.control("fluctuations", "variances larger by a tenth")
def fluctuations(patch: Patch) -> None:
    def wrong(right, *args):
        found = right(*args).copy()
        found["variance_training_error"] = 1.1 * found["variance_training_error"]
        return found

    patch(refinement_claims, "predicted", wrong)


@PAPER.control("theorem-1", "the alternative process at another z, by the statistics that check_theorem has of it")
def theorem_1(patch: Patch) -> None:
    def wrong(right, *args, **more):
        found = right(*args, **more)
        told_apart = norm.isf(LEVEL / (2 * found.features)) < found.control_z
        return replace(found, largest_z=found.control_z, verdict="fails" if told_apart else found.verdict)

    patch(ov.full_batch, "check_theorem", wrong)


@PAPER.control("theorem-1", "W not transposed in the fields of the alternative process")
def theorem_1_transposed(patch: Patch) -> None:
    theorem = inner("full_batch.comparison_theorem")

    def fields(right, process, theta):
        W, process.W = process.W, np.swapaxes(process.W, 2, 3)
        try:
            return right(process, theta)
        finally:
            process.W = W

    patch(theorem.Alternative, "fields", fields)
    patch(ov.full_batch, "check_theorem", lambda right, *args, **more: theorem.check_theorem(*args, **more))


@PAPER.control("eqs-28-32", "propagators larger by a tenth")
@PAPER.control("eq-33", "propagators larger by a tenth")
@PAPER.control("definition-2", "propagators larger by a tenth")
def eqs_28_32(patch: Patch) -> None:
    patch(Limit, "sources", lambda right, limit, alpha: 1.1 * right(limit, alpha))


@PAPER.control("eq-26", "both larger by a tenth")
def eq_26(patch: Patch) -> None:
    patch(printed, "eq_26", lambda right, *args, **more: 1.1 * right(*args, **more))


@PAPER.control("theorem-3", "(38) larger by a tenth")
def theorem_3(patch: Patch) -> None:
    patch(printed, "eq_38", lambda right, *args: 1.1 * right(*args))


@PAPER.control("proposition-1", "the other sign")
def proposition_1(patch: Patch) -> None:
    patch(printed, "eq_21", lambda right, *args: tuple(-x for x in right(*args)))


@PAPER.control("figure-1", "errors of training larger by a twentieth")
@PAPER.control("figure-2", "errors of training larger by a twentieth")
def figure_1(patch: Patch) -> None:
    def wrong(right, *args, **more):
        runs = right(*args, **more)
        return runs._replace(error=1.05 * runs.error)

    patch(loops, "train", wrong)


@PAPER.control("momentum-kernel", "the kernel of the heavy ball")
def momentum_kernel(patch: Patch) -> None:
    patch(printed, "momentum", lambda right, t, s, T: right(t, s, T) / (1 - s))


@PAPER.control("theorem-2", "a theory that is off by one per cent")
@PAPER.control("negligible", "a theory that is off by one per cent")
def theorem_2(patch: Patch) -> None:
    def wrong(right, *args):
        found = right(*args)
        return found._replace(error=0.99 * found.error)

    patch(limit_claims, "theory", wrong)


@PAPER.control("theorem-4-conditions", "z larger by a tenth in (9)")
def theorem4_conditions(patch: Patch) -> None:
    patch(moment_claims, "perturbed", lambda right, xi, sigma, z: right(xi, sigma, 1.1 * z))


@PAPER.control("claim-1-complex", "psi at z = .8 sqrt(-1)")
def claim1_complex(patch: Patch) -> None:
    patch(moment_claims, "linear_runs", lambda right, z, *rest: right(0.8 * z, *rest))
