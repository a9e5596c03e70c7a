"""Wrong formulas that the claims must notice."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

import overlaps as ov

from ..ledger import Patch
from . import assumption_claims, equation_claims, lemma_claims, mixture_claims, printed
from .paper import PAPER


@PAPER.control("property-II.3", "covariances larger by a tenth")
def property_ii_3(patch: Patch) -> None:
    patch(equation_claims, "covariances", lambda right, *args: 1.1 * right(*args))


@PAPER.control("eq-S42", "equations with c less by a tenth")
@PAPER.control("eqs-S41-S48", "equations with c less by a tenth")
def eq_s42(patch: Patch) -> None:
    patch(printed, "solve", lambda right, theory, *, c, t: right(theory, c=0.9 * c, t=t))


@PAPER.control("eq-S37", "t(rho) for each rho, which then holds")
def eq_s37(patch: Patch) -> None:
    patch(printed, "eq_s37", lambda right, at: at.t)


@PAPER.control("eq-S39", "no density, which then holds")
def eq_s39(patch: Patch) -> None:
    patch(printed, "density", lambda right, rho, ratio: np.ones_like(rho))


@PAPER.control("eq-S40", "a ratio less by a tenth")
def eq_s40(patch: Patch) -> None:
    patch(printed, "density", lambda right, rho, ratio: right(rho, 0.9 * ratio))


@PAPER.control("lemma-II.1", "averages larger by a tenth")
def lemma_ii_1(patch: Patch) -> None:
    patch(lemma_claims, "correlated", lambda right, *args: 1.1 * right(*args))


@PAPER.control("lemma-V.1", "(21) larger by a tenth")
def lemma_v_1(patch: Patch) -> None:
    patch(printed, "eq_21", lambda right, *args: 1.1 * right(*args))


@PAPER.control("lemma-V.3", "the means of a normal variable, which then holds")
def lemma_v_3(patch: Patch) -> None:
    patch(lemma_claims, "means", lambda right, f, centres, sd: np.full(len(centres), ov.gaussian_equivalent(f).a))


@PAPER.control("property-V.4", "covariances larger by a tenth")
def property_v_4(patch: Patch) -> None:
    patch(lemma_claims, "covariances", lambda right, *args: 1.1 * right(*args))


@PAPER.control("standardised", "overlaps of the equations larger by a tenth")
@PAPER.control("conditional", "overlaps of the equations larger by a tenth")
def standardised(patch: Patch) -> None:
    def wrong(right, self, latent):
        theory = right(self, latent)
        return replace(theory, data=theory.data.assign({name: 1.1 * theory.data[name] for name in ("Q", "R", "v")}))

    patch(mixture_claims.Ground, "solve", wrong)


@PAPER.control("un-standardised", "distances that do not grow, which then hold")
def un_standardised(patch: Patch) -> None:
    def wrong(right, values, axis):
        mean, error = right(values, axis)
        return np.broadcast_to(mean[:1], mean.shape), error

    patch(mixture_claims, "mean_error", wrong)


@PAPER.control("kl", "the reciprocal for a coordinate")
def kl(patch: Patch) -> None:
    def wrong(right, self, dimensions):
        found = right(self, dimensions)
        return SimpleNamespace(coordinate=1 / found.coordinate, joint=found.joint, upper=found.upper)

    patch(ov.LatentMixture, "divergence", wrong)


@PAPER.control("eq-18", "the root of the mean square, which then holds")
def eq_18(patch: Patch) -> None:
    patch(printed, "eq_18", lambda right, v, run: np.sqrt(np.mean((v - run) ** 2)))


@PAPER.control("eq-18", "distances of the library larger by a hundredth")
def eq_18_distances(patch: Patch) -> None:
    def wrong(right, *args):
        found = right(*args)
        return replace(found, rmse={name: 1.01 * value for name, value in found.rmse.items()})

    patch(ov, "tlog_rmse", wrong)


@PAPER.control("tables-alpha", "labels per sample for those per coordinate")
def tables_alpha(patch: Patch) -> None:
    patch(mixture_claims, "at_nine", lambda right, ground, label, *rest: right(ground, label and "sample", *rest))


@PAPER.control("tables-level", "a fifth of the printed numbers, which then hold")
def tables_level(patch: Patch) -> None:
    patch(printed, "table", lambda right, name: {key: values / 5 for key, values in right(name).items()})


@PAPER.control("tables-symmetry", "a symmetric table up to its rounding, which then holds")
def tables_symmetry(patch: Patch) -> None:
    def wrong(right, name):
        found = right(name)
        Q = (found["Q"] + found["Q"].swapaxes(1, 2)) / 2
        Q[::2, 0, 1] += 0.001
        Q[1::2, 1, 0] += 0.001
        return {**found, "Q": Q}

    patch(printed, "table", wrong)


@PAPER.control("assumption-II.2", "sums of products of one kind, which are none of different indices")
def assumption_ii2(patch: Patch) -> None:
    def wrong(right, *args):
        found = right(*args)
        return found | {"p = q = 1": found["p = q = 2, equal"]}

    patch(assumption_claims, "bounded_sums", wrong)


@PAPER.control("assumption-A.2", "overlaps that grow as the fifth root of N in training")
def assumption_a2(patch: Patch) -> None:
    patch(assumption_claims, "trained_sums", lambda right, size, *rest: size**0.2 * right(size, *rest))


@PAPER.control("eq-26", "averages of Gaussian fields larger by a fifth; a tenth is within what the statement says")
def eq_26(patch: Patch) -> None:
    patch(assumption_claims, "pair_mean", lambda right, *args: 1.2 * right(*args))


@PAPER.control("tables-less-correlated", "R on the diagonal of table II less by a tenth")
def tables_less_correlated(patch: Patch) -> None:
    def wrong(right, activation):
        found = right(activation)
        return found | {"R": found["R"] * (1 - 0.1 * np.eye(2))}

    patch(printed, "table", wrong)


@PAPER.control("fields-not-gaussian", "two in place of three squares in the cumulant")
def fields_not_gaussian(patch: Patch) -> None:
    patch(lemma_claims, "fourth_cumulants", lambda right, *args: right(*args) + 1)
