"""Empirical Hessian and G-matrix: against finite differences, against large-sample limits, and route against route.

Statistical tests: fixed seeds; entries are compared at 5 standard errors, a false-alarm rate below 2e-4 for all 300.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mixtures
import overlaps as ov
from mixtures import classes
from overlaps.interface.errors import InputError
from overlaps.spectra.batch import Batch
from overlaps.spectra.eigenpairs import eigenpairs
from overlaps.spectra.empirical import NetworkMatrix, gradient_matrix, hessian
from problems import problem as committee

DATA = Path(__file__).parent / "data"


def softmax(k: int = 3, variance: float = 0.3, **data: Any) -> ov.Problem:
    return classes(k, variance, **data)


def xor(activation: str = "relu", loss: Any = "logistic") -> ov.Problem:
    return mixtures.xor(3, 0.25, readout=[1.2, -0.9, 0.5], activation=activation, loss=loss)


def user_loss() -> ov.Loss:
    def value(lam, nu, c, v):
        return np.log(np.cosh(np.sum(v * lam * lam) - c))

    def gradient(lam, nu, c, v):
        t = np.tanh(np.sum(v * lam * lam) - c)
        return 2 * v * lam * t, lam * lam * t

    return ov.Loss(value, gradient)


PROBLEMS = {
    "softmax": softmax(),
    "relu, logistic": xor(),
    "tanh, logistic": xor("tanh"),
    "erf, square": xor("erf", "square"),
    "user": xor("linear", user_loss()),
    "teacher": committee("tanh", 2, 3, readout=[0.8, -1.1], train_readout=True),
    "teacher, fixed readout": committee("erf", 2, 1, spectrum=ov.PowerLaw(2, 1.0)),
}
KINDS = {"hessian": hessian, "gradient": gradient_matrix}


def loss_of_samples(problem: ov.Problem, point: ov.Start, batch: Batch, theta: np.ndarray) -> np.ndarray:
    """Loss of every sample at parameters (w_0, w_1, …, v), by the compiled loss alone."""
    assert point.size is not None and point.teacher is not None
    K, N = problem.student.units, point.size
    w, v = theta[: K * N].reshape(K, N), theta[K * N :].copy() if theta.size > K * N else point.v
    lam, nu = batch.inputs @ w.T, batch.inputs @ point.teacher.T / np.sqrt(N)
    value = problem.value
    return np.array([value(a, b, int(c), v, point.u) for a, b, c in zip(lam, nu, batch.labels, strict=True)])


def differences(function: Any, theta: np.ndarray, step: float) -> np.ndarray:
    """Central differences of fourth order, the parameter last."""
    columns = []
    for e in np.eye(theta.size) * step:
        near, far = function(theta + e) - function(theta - e), function(theta + 2 * e) - function(theta - 2 * e)
        columns.append((8 * near - far) / (12 * step))
    return np.stack(columns, axis=-1)


def parameters(problem: ov.Problem, point: ov.Start) -> np.ndarray:
    assert point.student is not None and point.size is not None
    w = point.student.ravel() / np.sqrt(point.size)
    return np.concatenate([w, point.v]) if problem.student.train_readout else w


@pytest.mark.parametrize("name", PROBLEMS)
def test_against_finite_differences(name: str) -> None:
    problem = PROBLEMS[name]
    point = ov.draw(problem, size=5, seed=3)
    batch = Batch.draw(problem, point, 7, seed=4)
    theta = parameters(problem, point)
    rows = differences(lambda x: loss_of_samples(problem, point, batch, x), theta, 1e-3)
    G = gradient_matrix(problem, point, batch)
    outer, size = rows.T @ rows / len(batch), 1e-9 * max(1, abs(rows).max() ** 2)
    assert np.allclose(G.whole.dense(), outer, rtol=0, atol=size)
    if problem.student.train_readout:
        K = G.units
        assert np.allclose([G.cross(i) for i in range(K)], outer[: 5 * K, 5 * K :].reshape(K, 5, K), rtol=0, atol=size)
        assert np.allclose(G.block("v").dense(), outer[5 * K :, 5 * K :], rtol=0, atol=size)

    def mean_gradient(x: np.ndarray) -> np.ndarray:
        return differences(lambda y: np.array(loss_of_samples(problem, point, batch, y).mean()), x, 1e-3)

    H = hessian(problem, point, batch)
    second = differences(mean_gradient, theta, 1e-3)
    # a user's loss is differenced by the library too, and ReLU is of second order only where no kink is crossed
    assert np.allclose(H.whole.dense(), second, rtol=0, atol=1e-7 * max(1, abs(second).max()))
    assert abs(H.whole.dense()).max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("samples", [6, 60])
def test_operators_blocks_and_the_whole_agree(name: str, kind: str, samples: int) -> None:
    """Products, dense blocks, the family and the whole are one matrix; few samples take the factored route."""
    problem = PROBLEMS[name]
    point = ov.draw(problem, size=8, seed=1)
    batch = Batch.draw(problem, point, samples, seed=2)
    M: NetworkMatrix = KINDS[kind](problem, point, batch)
    K, N = M.units, 8
    whole = M.whole.dense()
    assert M.whole.dimension == K * N + K * problem.student.train_readout
    assert np.allclose(M.whole @ np.eye(len(whole)), whole, rtol=0, atol=1e-14)
    V = np.random.default_rng(0).standard_normal((K, N, 3))
    for i in range(K):
        at = slice(i * N, (i + 1) * N)
        for j in range(K):
            part = M.block(i, j)
            direct = batch.inputs.T @ (M.weights(i, j)[:, None] * batch.inputs) / samples
            assert np.allclose(part.dense(), direct, rtol=0, atol=1e-14)
            assert np.allclose(part @ V[i], direct @ V[i], rtol=0, atol=1e-13)
            assert np.allclose(whole[at, j * N : (j + 1) * N], direct, rtol=0, atol=1e-14)
        assert np.allclose(M.blocks[i].dense(), M.block(i).dense(), rtol=0, atol=1e-14)
        if problem.student.train_readout:
            assert np.allclose(M.cross(i), whole[at, K * N :], rtol=0, atol=1e-14)
    some = np.array([K - 1, 0])
    together = M.blocks.products(V[some], some)
    assert np.allclose(together, [M.block(int(i)) @ V[i] for i in some], rtol=0, atol=1e-13)
    if problem.student.train_readout:
        assert np.allclose(M.block("v").dense(), whole[K * N :, K * N :], rtol=0, atol=1e-15)


def test_gram_route_and_direct_route_agree() -> None:
    """Fewer samples than parameters: eigenpairs through the samples' Gram matrix are those of the dense matrix."""
    problem = softmax(4)
    point = ov.draw(problem, size=300, seed=1)
    batch = Batch.draw(problem, point, 40, seed=2)
    G = gradient_matrix(problem, point, batch)
    for operator in (G.block(1), G.whole):
        pairs = eigenpairs(operator, 5)
        assert "Gram" in pairs.method
        values, vectors = np.linalg.eigh(operator.dense())
        assert np.allclose(pairs.values, values[::-1][:5], rtol=1e-10)
        assert np.allclose(abs(np.sum(pairs.vectors * vectors[:, ::-1][:, :5], axis=0)), 1, rtol=0, atol=1e-9)
    many = gradient_matrix(problem, point, Batch.draw(problem, point, 2000, seed=2)).block(1)
    assert many.factor is None


def standard_errors(X: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of every entry of the mean of weight x xᵀ."""
    square = (X**2).T @ (weights[:, None] ** 2 * X**2) / len(X)
    return np.sqrt(np.maximum(square - (X.T @ (weights[:, None] * X) / len(X)) ** 2, 0) / len(X))


@pytest.mark.parametrize("kind", KINDS)
def test_softmax_blocks_have_the_large_sample_limit(kind: str) -> None:
    """Reference blocks are means over 4e6 samples of an independent program; all 9 blocks of 6 x 6."""
    saved = np.load(DATA / "gmm_blocks_small.npz")
    problem = softmax(means=saved["mus"], variance=1 / float(saved["lam"]), weights=saved["p"])
    point = ov.Start.from_weights(problem, np.sqrt(6) * saved["x"])
    batch = Batch.draw(problem, point, 400_000, seed=5)
    M = KINDS[kind](problem, point, batch)
    wanted = saved[kind[0].upper()]
    for i in range(3):
        for j in range(3):
            error = standard_errors(batch.inputs, M.weights(i, j)) * np.sqrt(1.1)
            assert np.all(abs(M.block(i, j).dense() - wanted[i, j]) < 5 * error)


@pytest.mark.parametrize("kind", KINDS)
def test_xor_blocks_have_the_large_sample_limit(kind: str) -> None:
    """Reference blocks are means over samples as well; their error is taken to be no larger than ours."""
    saved = np.load(DATA / "xor_blocks_small.npz")
    means = np.array([np.eye(6)[0], -np.eye(6)[0], np.eye(6)[1], -np.eye(6)[1]])
    problem = ov.Problem(
        data=ov.GaussianMixture(means=means, labels=[1, 1, 0, 0], variance=1 / float(saved["lam"])),
        student=ov.Committee(3, "relu", saved["v"], train_readout=True),
        algorithm=ov.OnlineSGD(1.0),
        loss="logistic",
    )
    point = ov.Start.from_weights(problem, np.sqrt(6) * saved["W"])
    batch = Batch.draw(problem, point, 400_000, seed=6)
    M = KINDS[kind](problem, point, batch)
    letter, i = kind[0].upper(), int(saved["i"])
    error = standard_errors(batch.inputs, M.weights(i, i)) * np.sqrt(2)
    assert np.all(abs(M.block(i).dense() - saved[f"{letter}WiWi"]) < 5 * error)
    g = np.maximum(batch.inputs @ saved["W"].T, 0)
    output = 1 / (1 + np.exp(-g @ saved["v"]))
    weights = output * (1 - output) if kind == "hessian" else (output - batch.labels) ** 2
    assert np.all(abs(M.block("v").dense() - saved[f"{letter}vv"]) < 5 * np.sqrt(2) * standard_errors(g, weights))


def test_fresh_samples_have_the_law_of_the_inputs() -> None:
    """Shares, means and variances per component and level, each within 4.5 standard errors: false alarm below 1e-3."""
    data = ov.GaussianMixture(
        means=3, weights=[0.5, 0.3, 0.2], variance=[0.1, 0.4, 1.0], labels=[1, 0, 1], spectrum=ov.Spectrum([2.0, 0.5])
    )
    problem = ov.Problem(data=data, student=ov.Committee(2, "tanh"), algorithm=ov.OnlineSGD(0.1), loss="logistic")
    start = ov.draw(problem, size=12, seed=0)
    batch = Batch.draw(problem, start, 60_000, seed=1)
    assert batch.components is not None and start.means is not None
    for c, (p, s) in enumerate(zip([0.5, 0.3, 0.2], [0.1, 0.4, 1.0], strict=True)):
        mine = batch.components == c
        n = int(mine.sum())
        assert abs(n / 60_000 - p) < 4.5 * np.sqrt(p * (1 - p) / 60_000)
        assert np.all(batch.labels[mine] == [1, 0, 1][c])
        variance = s * np.repeat([2.0, 0.5], 6)
        X = batch.inputs[mine] - start.means[c]
        assert np.all(abs(X.mean(0)) < 4.5 * np.sqrt(variance / n))
        assert np.all(abs(X.var(0) / variance - 1) < 4.5 * np.sqrt(2 / n))
    again = Batch.draw(problem, start, 60_000, seed=1)
    assert np.array_equal(again.inputs, batch.inputs) and not np.array_equal(again.inputs[:9], batch.inputs[9:18])


def test_samples_of_a_data_set() -> None:
    rows = np.random.default_rng(0).standard_normal((50, 4))
    problem = ov.Problem(
        data=ov.Samples(rows), teacher=ov.Committee(1), student=ov.Committee(2), algorithm=ov.OnlineSGD(0.1)
    )
    batch = Batch.draw(problem, ov.draw(problem, size=4), 500, seed=0)
    assert isinstance(problem.data, ov.Samples)
    known = {row.tobytes() for row in problem.data.rows}
    assert {row.tobytes() for row in batch.inputs} <= known and batch.labels is None


def test_labels_are_needed_where_a_loss_reads_them() -> None:
    """A teacher gives targets without; label 0 for every sample is not made up."""
    inputs = np.random.default_rng(0).standard_normal((20, 6))
    assert repr(Batch(inputs)) == "Batch(20 samples of 6 inputs, no labels)" and len(Batch(inputs)) == 20
    for problem in (softmax(), xor()):
        for matrix in (hessian, gradient_matrix):
            refused(
                "labels: expected one for every sample.*Batch.draw", matrix, problem, ov.draw(problem, 6), Batch(inputs)
            )
    problem = committee()
    point = ov.draw(problem, 6)
    for matrix in (hessian, gradient_matrix):
        bare, labelled = (matrix(problem, point, Batch(inputs, labels)) for labels in (None, np.ones(20)))
        np.testing.assert_array_equal(bare.whole.dense(), labelled.whole.dense())


def test_means_are_those_of_the_start() -> None:
    """Samples of one component without noise are its mean as the start has it."""
    problem = ov.Problem(
        data=ov.GaussianMixture(means=3, variance=0.0), student=ov.Softmax(3), loss="cross-entropy",
        algorithm=ov.OnlineSGD(1.0),
    )  # fmt: skip
    start = ov.draw(problem, 5)
    assert start.means is not None
    moved = replace(start, means=start.means * (1 + 1e-10))
    batch = Batch.draw(problem, moved, 50)
    np.testing.assert_array_equal(batch.inputs, moved.means[batch.components])


def test_names_of_blocks() -> None:
    problem = xor()
    H = hessian(problem, ov.draw(problem, 6), Batch.draw(problem, ov.draw(problem, 6), 30))
    np.testing.assert_array_equal(H.block("v", "v").dense(), H.block("v").dense())
    refused(r"use cross\(0\)", H.block, 0, "v")
    refused(r"use cross\(1\)", H.block, "v", 1)


def refused(match: str, function: Any, *args: Any) -> None:
    with pytest.raises(InputError, match=match):
        function(*args)


def test_refusals() -> None:
    problem = softmax()
    point = ov.draw(problem, size=6)
    batch = Batch.draw(problem, point, 10)
    H = hessian(problem, point, batch)
    refused("no second layer", H.block, "v")
    refused("no second layer", H.cross, 0)
    refused("block: expected at most 2", H.block, 3)
    refused("block: expected numbers of students, or 'v'", H.block, "w")
    refused("block: expected a whole number", H.block, 0.5)
    refused("samples of 6 entries", hessian, problem, point, Batch(np.ones((3, 5)), [0, 1, 2]))
    refused("labels from 0 to 2", gradient_matrix, problem, point, Batch(np.ones((1, 6)), [3]))
    refused("labels: expected 0 and 1", hessian, xor(), ov.draw(xor(), 6), Batch(np.ones((1, 6)), [2]))
    refused("needs weights", hessian, problem, ov.Start.from_overlaps(problem, np.eye(3), size=6), batch)
    noisy = committee(label_noise=0.1)
    refused("label_noise", hessian, noisy, ov.draw(noisy, 6), Batch(np.ones((1, 6))))
    refused("use fewer", hessian, softmax(2000, means=2), ov.draw(softmax(2000, means=2), 2), Batch(np.ones((200, 2))))
    refused("labels: has entries that are not finite", Batch, np.ones((2, 3)), [0, np.nan])
    refused(r"components\[1\]: expected a whole number", Batch, np.ones((2, 3)), [0, 1], [0, 0.5])
    refused("shape", Batch, np.ones((2, 3)), [0])
    refused("at least one sample", Batch, np.ones((0, 3)))
    refused("not finite", Batch, [[np.nan]])
    refused("has none", Batch.draw, problem, ov.Start.from_overlaps(problem, np.eye(3)), 5)
    refused("use fewer", Batch.draw, problem, point, 10**9)
