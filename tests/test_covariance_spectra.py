"""Spectra of inputs whose components have covariances of their own, against samples and against Silverstein's law."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.stats import norm

import overlaps as ov
from overlaps.spectra.given_fields import given_fields

Array = NDArray[np.float64]
LEVEL = 1e-6  # false alarms of a test here
SIZE = 60


def covariance(rng: np.random.Generator, size: int, power: float) -> Array:
    """Eigenvalues k^-power in a random basis, of trace N."""
    basis = np.linalg.qr(rng.standard_normal((size, size)))[0]
    values = np.arange(1.0, size + 1) ** -power
    return (basis * (values * size / values.sum())) @ basis.T


@cache
def classes(size: int = SIZE, length: float = 3.0) -> ov.GaussianClasses:
    """Three classes whose covariances do not commute."""
    rng = np.random.default_rng(0)
    means = length * rng.standard_normal((3, size)) / np.sqrt(size)
    return ov.GaussianClasses(means, [covariance(rng, size, x) for x in (0.5, 0.2, 0.8)], weights=[0.3, 0.3, 0.4])


def softmax(data: Any = None) -> ov.Problem:
    return ov.Problem(data=data or classes(), student=ov.Softmax(3), loss="cross-entropy", algorithm=ov.OnlineSGD(1.0))


def network() -> ov.Problem:
    """A two-layer network of labels 2, −1 and 0, whose Hessian has weights of both signs."""
    data = replace(classes(), labels=[2, -1, 0], digest="")
    student = ov.Committee(2, "erf", readout=[1.0, -0.7], train_readout=True)
    return ov.Problem(data=data, student=student, loss="square", algorithm=ov.OnlineSGD(1.0))


def largest_z(problem: ov.Problem, start: ov.Start, kind: Any, i: int, j: int, matrix: Array) -> tuple[float, float]:
    """Largest z-score of aᵀ matrix b against samples, over twelve pairs of directions; and the bound at LEVEL."""
    batch = ov.spectra.Batch.draw(problem, start, 100_000, seed=5)
    made = ov.spectra.hessian if kind == "hessian" else ov.spectra.gradient_matrix
    f = made(problem, start, batch).weights(i, j)
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 12, SIZE))
    off = problem.data.matrices - np.tensordot(problem.data.components.weights, problem.data.matrices, 1)
    # where the means and the covariances of the classes matter most
    a[:3], a[3:6] = start.means, np.linalg.eigh(off)[1][:, :, -1]
    b[:6] = a[:6]
    each = f[:, None] * (batch.inputs @ a.T) * (batch.inputs @ b.T)
    error = each.std(0, ddof=1) / np.sqrt(len(each))
    z = (each.mean(0) - np.einsum("ki,ij,kj->k", a, matrix, b)) / error
    return float(np.abs(z).max()), float(norm.isf(LEVEL / (2 * z.size)))


@pytest.mark.parametrize("kind", ["hessian", "gradient"])
@pytest.mark.parametrize("make", [softmax, network])
def test_population_is_the_mean_of_samples(make: Any, kind: Any) -> None:
    """Every block; and a population with covariances averaged over the classes is told apart."""
    problem = make()
    start = ov.draw(problem, SIZE, seed=1, scale=2.0)  # so large that classes have weights of their own
    found = ov.spectra.population(problem, start, kind)
    for i, j in ((0, 0), (0, 1)):
        z, bound = largest_z(problem, start, kind, i, j, found.block(i, j).dense())
        assert z < bound, (i, j)
    mean = np.tensordot(problem.data.components.weights, problem.data.matrices, 1)
    averaged = ov.GaussianClasses(
        problem.data.means, [mean] * 3, problem.data.weights, problem.data.components.labels.tolist()
    )
    wrong = ov.spectra.population(replace(problem, data=averaged), start, kind)
    z, bound = largest_z(problem, start, kind, 0, 0, wrong.block(0).dense())
    assert z > bound


def test_other_blocks_of_a_network() -> None:
    """(w, v) and (v, v) against samples."""
    problem = network()
    start = ov.draw(problem, SIZE, seed=2)
    found = ov.spectra.population(problem, start)
    batch = ov.spectra.Batch.draw(problem, start, 40_000, seed=3)
    measured = ov.spectra.hessian(problem, start, batch)
    np.testing.assert_allclose(found.readout, measured.readout, atol=0.02)
    np.testing.assert_allclose(found.cross(0), measured.cross(0), atol=0.06)
    np.testing.assert_allclose(ov.spectra.readout_block(problem, start), found.readout, atol=1e-4)
    assert found.block("v").dense().shape == (2, 2)


def test_isotropic_covariances_give_what_the_span_does() -> None:
    """Identity matrices, as matrices and as one variance: the same population, and the same samples up to 1/N."""
    means = np.eye(3, SIZE)
    matrices = ov.GaussianClasses(means, 0.2 * np.array([np.eye(SIZE)] * 3))
    plain = ov.GaussianMixture(means=means, variance=0.2)
    start = ov.draw(softmax(plain), SIZE, seed=3)
    assert start.student is not None
    same = ov.Start.from_weights(softmax(matrices), start.student)
    one, other = (ov.spectra.population(softmax(data), at) for data, at in ((plain, start), (matrices, same)))
    np.testing.assert_allclose(one.block(0).dense(), other.block(0).dense(), atol=1e-8)
    assert other.alignment_of_student(0, 3) == pytest.approx(one.alignment_of_student(0, 3), abs=1e-6)
    a, b = (ov.spectra.predicted_outliers(softmax(data), at, 400) for data, at in ((plain, start), (matrices, same)))
    assert b.high == pytest.approx(a.high, rel=4 / SIZE)
    assert b.high_margin == pytest.approx(a.high_margin, rel=0.15)
    assert len(a.values) == len(b.values)
    np.testing.assert_allclose(b.values, a.values, rtol=4 / SIZE)
    np.testing.assert_allclose(b.lengths, a.lengths, rtol=0.1)


def test_edge_of_constant_weights_is_that_of_silverstein() -> None:
    """The Hessian of a linear unit is the sample covariance: its edge is the least z(m) = −1/m + Σ ω/(1 + ω m)/n."""
    data = ov.GaussianInputs(spectrum=ov.PowerLaw(levels=SIZE, exponent=0.5))
    net = ov.Committee(1, "linear")
    problem = ov.Problem(data=data, teacher=net, student=net, algorithm=ov.OnlineSGD(0.1))
    start = ov.draw(problem, SIZE, seed=0)
    n = 150
    found = ov.spectra.predicted_outliers(problem, start, n)
    omega = np.linalg.eigvalsh(given_fields(problem, start).noise[0])

    def z(logarithm: float) -> float:
        m = -np.exp(logarithm)
        return -1 / m + np.sum(omega / (1 + omega * m)) / n

    last = np.log(1 / omega[-1])
    edge = minimize_scalar(z, bounds=(last - 6, last - 1e-6), method="bounded", options={"xatol": 1e-10})
    assert found.high == pytest.approx(edge.fun, rel=3e-6)
    assert found.high < np.linalg.eigvalsh(ov.spectra.population(problem, start).block(0).dense())[-1] * 2


@pytest.mark.parametrize("samples", [150, 600])
def test_edges_and_outliers_of_samples(samples: int) -> None:
    """Means over 24 sets of samples; eigenvalues are biased by 1/N, so 4 % are allowed besides their scatter."""
    problem, sets = softmax(classes(length=6.0)), 24
    start = ov.draw(problem, SIZE, seed=1, scale=0.4)
    expected = ov.spectra.predicted_outliers(problem, start, samples)
    assert start.student is not None
    first, caught, beyond = np.empty((sets, 3)), np.empty(sets), 0
    for seed in range(sets):
        batch = ov.spectra.Batch.draw(problem, start, samples, seed=seed)
        pairs = ov.spectra.eigenpairs(ov.spectra.hessian(problem, start, batch).block(0), 4)
        first[seed] = pairs.values[:3]
        caught[seed] = float((pairs.vectors[:, 0] @ expected.directions[:, 0]) ** 2)
        beyond += int(pairs.values[len(expected.values)] > expected.high + expected.high_margin)
    for j, value in enumerate(expected.values[:2]):
        error = first[:, j].std(ddof=1) / np.sqrt(sets)
        assert abs(first[:, j].mean() - value) < 0.04 * value + norm.isf(LEVEL) * error, (j, value, first.mean(0))
    assert abs(caught.mean() - expected.lengths[0]) < 0.05 + norm.isf(LEVEL) * caught.std(ddof=1) / np.sqrt(sets)
    assert beyond == 0
    assert len(expected.values) >= 1


def test_what_is_seen_of_few_samples() -> None:
    problem = softmax(classes(length=6.0))
    start = ov.draw(problem, SIZE, seed=1, scale=0.4)
    seen = ov.spectra.visibility(problem, start, 600, 2)
    assert seen.visible == len(ov.spectra.predicted_outliers(problem, start, 600).values[:2])
    assert seen.needed is None or ov.spectra.visibility(problem, start, seen.needed, 2).visible == 2


def test_weights_of_both_signs() -> None:
    """Below the bulk of a network whose Hessian has negative weights: the edge of samples is where it is predicted."""
    problem = network()
    start = ov.draw(problem, SIZE, seed=4, scale=1.5)
    expected = ov.spectra.predicted_outliers(problem, start, 400)
    batch = ov.spectra.Batch.draw(problem, start, 400, seed=0)
    values = ov.spectra.hessian(problem, start, batch).block(0).spectrum()
    assert expected.low < 0 < expected.high
    inside = values[(values > expected.low - expected.low_margin) & (values < expected.high + expected.high_margin)]
    assert len(inside) >= SIZE - len(expected.values) - 1
    assert values.min() == pytest.approx(min(expected.low, *expected.values), rel=0.4)


def test_refusals() -> None:
    problem = softmax()
    assert "any covariances" in repr(ov.spectra.population(problem, ov.draw(problem, SIZE)))
    block = ov.spectra.population(problem, ov.draw(problem, SIZE)).block(0)
    assert "PopulationBlock(N = 60, " in repr(block) and " to " in repr(block)
    np.testing.assert_allclose(block.operator().dense(), block.dense())
    with pytest.raises(ov.InputError, match="direction: expected"):
        block.alignment(np.ones(3), 1)
