"""Full batches on classes whose covariances commute: as a mixture by levels, in the user's own coordinates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import overlaps as ov
from overlaps.data.eigenbasis import common_eigenbasis

LEVEL = 1e-6  # false alarms of the test of runs
SIZE, RUNS = 80, 240
RNG = np.random.default_rng(0)
BASIS = np.linalg.qr(RNG.standard_normal((SIZE, SIZE)))[0]
SPECTRA = np.where(np.arange(SIZE) < 30, [[0.1], [3.0]], [[0.2], [1.5]])
MEANS = np.array([[1.5], [-1.5]]) * BASIS[:, :30].sum(axis=1) / np.sqrt(30)  # where covariances differ most
COVARIANCES = np.array([(BASIS * spectrum) @ BASIS.T for spectrum in SPECTRA])


def problem(data: ov.GaussianClasses | ov.GaussianMixture) -> ov.Problem:
    algorithm = ov.FullBatch(steps=6, rate=0.8, ratio=0.5, method="heavy-ball", momentum=0.3)
    return ov.Problem(data=data, student=ov.Committee(1, "linear"), loss="logistic", algorithm=algorithm)


CLASSES = problem(ov.GaussianClasses(MEANS, COVARIANCES, weights=[0.4, 0.6], labels=[-1, 1]))
LEVELS = problem(ov.GaussianMixture.from_covariances(MEANS, COVARIANCES, weights=[0.4, 0.6], labels=[-1, 1]))


def test_theory_is_that_of_the_mixture_by_levels() -> None:
    """From weights that are turned to the eigenbasis, within which any basis of a level does."""
    W = np.random.default_rng(1).standard_normal((1, SIZE))
    theirs = ov.Start.from_weights(LEVELS, W @ ov.GaussianMixture.common_basis(COVARIANCES))
    one, other = ov.solve(CLASSES, ov.Start.from_weights(CLASSES, W)), ov.solve(LEVELS, theirs)
    for name in ("Q", "m", "error", "training_error"):
        np.testing.assert_allclose(one.data[name].values, other.data[name].values, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("scale", [1e-8, 1e8])
def test_levels_do_not_depend_on_the_unit_of_the_inputs(scale: float) -> None:
    """Equal eigenvalues are known by their relative difference: in other units there are as many, and no less."""
    basis, levels, sizes = common_eigenbasis(COVARIANCES)
    theirs, scaled, same = common_eigenbasis(scale * COVARIANCES)
    assert sizes.tolist() == same.tolist() == [50, 30]
    np.testing.assert_allclose(levels, [[0.2, 1.5], [0.1, 3.0]], rtol=1e-12)
    np.testing.assert_allclose(scaled, scale * levels, rtol=1e-12)
    for first, last in ((0, 50), (50, 80)):
        projections = [part[:, first:last] @ part[:, first:last].T for part in (basis, theirs)]
        np.testing.assert_allclose(*projections, atol=1e-10)


def test_runs_agree_with_theory_and_averaged_covariances_do_not() -> None:
    """Training errors at all steps; theory at this size is off by 1/N, for which 1 % is allowed besides the scatter."""
    start = ov.draw(CLASSES, SIZE, seed=1, scale=2.0)
    runs = ov.train(CLASSES, start, runs=RUNS, seed=2).data["training_error"].values
    error = runs.std(axis=0, ddof=1) / np.sqrt(RUNS)
    mean = np.tensordot(CLASSES.data.components.weights, COVARIANCES, 1)
    averaged = replace(CLASSES, data=ov.GaussianClasses(MEANS, [mean, mean], weights=[0.4, 0.6], labels=[-1, 1]))

    def excess(task: ov.Problem) -> float:
        assert start.student is not None
        theory = ov.solve(task, ov.Start.from_weights(task, start.student)).data["training_error"].values[0]
        apart = np.abs(runs.mean(axis=0) - theory)
        return float(np.max((apart - 0.01 * theory) / error))

    bound = float(norm.isf(LEVEL / (2 * runs.shape[1])))
    assert excess(CLASSES) < bound
    assert excess(averaged) > bound


def test_overlaps_alone_have_weights_in_the_same_coordinates() -> None:
    """Meso from overlaps alone has the means of the classes, turned as well: the overlaps at the start are given."""
    drawn = ov.draw(CLASSES, SIZE, seed=3)
    start = ov.Start.from_overlaps(CLASSES, drawn.Q, m=drawn.m, size=SIZE)
    run = ov.sample(CLASSES, start, runs=2, seed=0)
    np.testing.assert_allclose(run.data["m"].values[:, 0], drawn.m.sum(0)[None].repeat(2, axis=0), atol=1e-9)


def test_covariances_that_do_not_commute_are_refused() -> None:
    other = np.linalg.qr(RNG.standard_normal((SIZE, SIZE)))[0]
    data = ov.GaussianClasses(MEANS, [COVARIANCES[0], (other * SPECTRA[1]) @ other.T], labels=[-1, 1])
    with pytest.raises(ov.InputError, match=r"^covariances: FullBatch needs covariances that commute.*OnlineSGD"):
        problem(data)
