"""Corners of full-batch training: kinks nobody declared, horizons nobody asked for, laws of other algorithms."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import overlaps as ov
from full_batches import paper
from overlaps.full_batch.data_matrices import OrthonormalBasis
from overlaps.full_batch.mean_field_theory import is_smooth


def ramp(x: float) -> float:
    return max(x, 0.0)


def ramp_slope(x: float) -> float:
    return 1.0 if x > 0 else 0.0


def bend(x: float) -> float:
    return x * abs(x) / 2


def bend_slope(x: float) -> float:
    return abs(x)


@pytest.mark.parametrize("name", ["erf", "tanh", "softplus", "linear"])
def test_smooth_activations_are_seen_to_be(name: str) -> None:
    assert ov.Committee(1, name).g.is_smooth


def test_kinks_nobody_declared_are_found() -> None:
    """A jump of the derivative makes responses wrong; a derivative that only bends does not."""
    hidden = ov.Activation("hidden", ramp, ramp_slope)
    assert not hidden.is_smooth and not hidden.kinks
    assert ov.Activation("bent", bend, bend_slope).is_smooth
    steep = ov.Activation(
        "steep", lambda x: float(np.tanh(50 * x)), lambda x: 50 / float(np.cosh(min(abs(50 * x), 300))) ** 2
    )
    assert steep.is_smooth
    problem = paper("relu", "square", steps=2, rate=0.5, ratio=2.0)
    assert isinstance(problem.student, ov.Committee)
    own = replace(problem, student=replace(problem.student, activation=hidden))
    assert not is_smooth(own)
    known, found = (ov.solve(p, ov.draw(p, 200, seed=1), accuracy=0.02).data["Q"].values for p in (problem, own))
    np.testing.assert_allclose(found, known, rtol=0.02)


def test_times_bound_the_work() -> None:
    """The first steps of a long training are those of a short one, at its cost."""
    long, short = paper(steps=9000), paper(steps=3)
    start = ov.draw(short, 30, seed=0, scale=0.3)
    for scale in (ov.solve, ov.sample, ov.train):
        a, b = scale(long, start, [0, 3]), scale(short, start, [0, 3])
        np.testing.assert_array_equal(a.data["training_error"], b.data["training_error"])


def test_other_algorithms_keep_their_laws() -> None:
    committee = ov.Problem(
        data=ov.GaussianInputs(),
        teacher=ov.Committee(2),
        student=ov.Committee(2),
        algorithm=ov.FullBatch(5, 0.5),
    )
    with pytest.raises(ov.InputError, match=r"this law is for one-pass SGD .* got FullBatch"):
        ov.laws.plateau(committee)
    with pytest.raises(ov.InputError, match=r"this law is for one-pass SGD .* got FullBatch"):
        ov.laws.decay_rates(committee)


def test_the_hinge_has_no_hessian() -> None:
    problem = ov.Problem(
        data=ov.GaussianMixture(2), student=ov.Committee(1, "linear"), loss="hinge", algorithm=ov.OnlineSGD(0.5)
    )
    start = ov.draw(problem, 30)
    with pytest.raises(ov.InputError, match="all curvature of the hinge loss is at its kink"):
        ov.spectra.population(problem, start)
    batch = ov.spectra.Batch.draw(problem, start, 50)
    with pytest.raises(ov.InputError, match="all curvature of the hinge loss is at its kink"):
        ov.spectra.hessian(problem, start, batch)


def test_frames_stay_orthonormal_over_nearly_dependent_columns() -> None:
    """One pass of Gram and Schmidt would lose orthogonality to rounding over the part that is new."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 1, 50))
    frame = OrthonormalBasis(1, 50, 12)
    for i in range(12):
        frame.extend(a + 1e-5**i * b + 1e-9 * rng.standard_normal((1, 50)))
    columns = frame.columns[0]
    columns = columns[:, np.linalg.norm(columns, axis=0) > 0]
    np.testing.assert_allclose(columns.T @ columns, np.eye(columns.shape[1]), atol=1e-12)


def test_scaling_of_full_batch_needs_no_times() -> None:
    found = ov.check_scaling(paper(steps=3), sizes=(20, 40, 80), runs=200, progress=False)
    assert "training_error" in repr(found)


def test_levels_of_covariances_that_are_equal_to_rounding() -> None:
    """Equal eigenvalues are one level, wherever rounding puts them; own weights turn to the same basis."""
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    matrices = [turn @ (0.123456785 * np.eye(12)) @ turn.T, turn @ np.diag([0.0] * 4 + [1.0] * 8) @ turn.T]
    matrices = [(m + m.T) / 2 for m in matrices]
    means = rng.standard_normal((2, 12))
    data = ov.GaussianMixture.from_covariances(means, matrices)
    assert data.dimensions(12).tolist() == [8, 4] and data.component_eigenvalues[1, 1] == 0
    basis = ov.GaussianMixture.common_basis(matrices)
    np.testing.assert_allclose(data.mean_vectors(12), means @ basis)
    np.testing.assert_allclose(basis.T @ matrices[1] @ basis, np.diag([1.0] * 8 + [0.0] * 4), atol=1e-12)
