"""Population Hessian and G-matrix against reference blocks, samples, integration by parts and each other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import overlaps as ov
from gaussian import hermite_grid
from mixtures import classes, xor
from overlaps.papers.outliers import printed
from overlaps.spectra import PopulationBlock, population, readout_block
from overlaps.spectra.batch import Batch
from overlaps.spectra.span import span

DATA = Path(__file__).parent / "data"
KINDS = "hessian", "gradient"


def softmax_problem(means=3, variance=0.1, weights=None) -> ov.Problem:
    return classes(means if isinstance(means, int) else len(means), variance, means=means, weights=weights)


def gmm_blocks() -> tuple[ov.Problem, ov.Start, dict]:
    given = dict(np.load(DATA / "gmm_blocks_small.npz"))
    problem = softmax_problem(given["mus"], 1 / float(given["lam"]), given["p"])
    return problem, ov.Start.from_weights(problem, given["x"] * np.sqrt(6)), given


def xor_problem(units: int, readout, loss="logistic", activation="relu", variance=0.25) -> ov.Problem:
    return xor(units, variance, readout=readout, activation=activation, loss=loss)


def norm(A: np.ndarray) -> float:
    return float(np.linalg.norm(A, 2))


def softmax_of(h: np.ndarray) -> np.ndarray:
    e = np.exp(h - h.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("kind, key", [("hessian", "H"), ("gradient", "G")])
def test_reference_blocks_of_softmax(kind, key) -> None:
    """Blocks integrated elsewhere with quasi-random points in all six dimensions, good to some 2e-5."""
    problem, point, given = gmm_blocks()
    matrix = population(problem, point, kind)
    assert matrix.accuracy < 1e-6
    for i in range(3):
        for j in range(3):
            assert norm(matrix.block(i, j).dense() - given[key][i, j]) < 5e-5


@pytest.mark.parametrize("kind, key", [("hessian", "H"), ("gradient", "G")])
def test_reference_blocks_of_xor(kind, key) -> None:
    given = np.load(DATA / "xor_blocks_small.npz")
    problem = xor_problem(3, given["v"].tolist(), variance=1 / float(given["lam"]))
    means = problem.data.mean_vectors(6)
    # the reference has its means along the first two axes, as mean_vectors has, which is checked here
    assert np.array_equal(means[::2], np.eye(2, 6))
    matrix = population(problem, ov.Start.from_weights(problem, given["W"] * np.sqrt(6)), kind)
    assert norm(matrix.readout - given[key + "vv"]) < 5e-5
    assert norm(matrix.block(0).dense() - given[key + "WiWi"]) < 5e-5
    assert norm(matrix.block("v").dense() - matrix.readout) < 1e-15


def test_integration_by_parts() -> None:
    """Lemmas 3.1 to 3.3 are another route to every block; as printed they are off by as much as the blocks."""
    problem, point, given = gmm_blocks()
    x, mus, lam = given["x"], given["mus"], float(given["lam"])
    Z, W = hermite_grid(3, 24)
    root = np.linalg.cholesky(x @ x.T / lam)
    nodes = printed.Nodes(
        np.concatenate([p * W for p in given["p"]]),
        np.repeat(np.arange(3), len(W)),
        np.concatenate([softmax_of(x @ mu + Z @ root.T) for mu in mus]),
    )
    H, G = population(problem, point), population(problem, point, "gradient")
    for b in range(3):
        for c in range(3):
            expected = H.block(b, c).dense()
            if b == c:
                assert norm(printed.lemma32(nodes, x, mus, lam, b) - expected) < 1e-6
            else:
                assert norm(printed.lemma31(nodes, x, mus, lam, b, c) - expected) < 1e-6
                assert norm(printed.printed31(nodes, x, mus, lam, b, c) - expected) > 1.9 * norm(expected)
            expected = G.block(b, c).dense()
            assert norm(printed.lemma33(nodes, x, mus, lam, b, c) - expected) < 1e-6
            assert norm(printed.printed33(nodes, x, mus, lam, b, c) - expected) > 0.1 * norm(expected)


def committee_weights(W, v, X, labels, activation, loss, kind):
    """Derivatives by hand: weights of blocks (w, w), (w, v), (v, v), each (n, K, K)."""
    h = X @ W.T / np.sqrt(W.shape[1])
    if activation == "relu":
        g, dg, ddg = np.maximum(h, 0), 1.0 * (h > 0), 0 * h
    else:
        g, dg, ddg = np.tanh(h), 1 / np.cosh(h) ** 2, -2 * np.tanh(h) / np.cosh(h) ** 2
    f = g @ v
    p = 1 / (1 + np.exp(-f))
    slope, bend = (p - labels, p * (1 - p)) if loss == "logistic" else (f - labels, np.ones_like(f))
    delta, gamma = v * dg * slope[:, None], g * slope[:, None]
    if kind == "gradient":
        return [np.einsum("ni,nj->nij", a, b) for a, b in ((delta, delta), (delta, gamma), (gamma, gamma))]
    K = len(v)
    ll = np.einsum("n,ni,nj->nij", bend, v * dg, v * dg)
    ll[:, range(K), range(K)] += slope[:, None] * v * ddg
    lv = np.einsum("n,ni,nj->nij", bend, v * dg, g)
    lv[:, range(K), range(K)] += slope[:, None] * dg
    return [ll, lv, np.einsum("n,ni,nj->nij", bend, g, g)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("activation, loss", [("relu", "logistic"), ("tanh", "logistic"), ("tanh", "square")])
def test_committee_against_samples(kind, activation, loss) -> None:
    """All blocks of two units at N = 7 in the metric of their error: 2e5 samples, |z| < 5.5 for 200 entries (1e-5)."""
    problem = xor_problem(2, [1.2, -0.8], loss, activation)
    point = ov.draw(problem, 7, seed=3)
    matrix = population(problem, point, kind)
    batch = Batch.draw(problem, point, 200_000, seed=4)
    X = batch.inputs
    ll, lv, vv = committee_weights(point.student, point.v, X, batch.labels, activation, loss, kind)

    def compare(samples, expected) -> None:
        error = samples.std(0) / np.sqrt(len(X)) + 1e-4 * np.abs(expected).max()
        assert np.abs((samples.mean(0) - expected) / error).max() < 5.5

    for i, j in ((0, 0), (0, 1), (1, 1)):
        block = matrix.block(i, j).dense()
        for a in range(7):
            compare(ll[:, i, j, None] * X[:, a : a + 1] * X, block[a])
    for i in range(2):
        for j in range(2):
            compare(lv[:, i, j, None] * X, matrix.cross(i)[:, j])
    compare(vv, matrix.readout)
    assert np.abs(readout_block(problem, point, kind) - matrix.readout).max() < 2e-6 * np.abs(matrix.readout).max()


def test_variances_that_differ_and_a_teacher() -> None:
    """Components of different noise, a teacher and an eigenvalue that is not one: the bulk and a block by samples."""
    data = ov.GaussianMixture(
        means=2, weights=[0.3, 0.7], variance=[0.5, 0.1], labels=[0, 0], spectrum=ov.Spectrum([2.0], [1.0])
    )
    problem = ov.Problem(
        data=data, teacher=ov.Committee(1, "tanh"), student=ov.Committee(2, "tanh"), algorithm=ov.OnlineSGD(1.0)
    )
    point = ov.draw(problem, 8, seed=1)
    block = population(problem, point, "gradient").block(0, 1)
    X = Batch.draw(problem, point, 200_000, seed=5).inputs
    h, nu = X @ point.student.T / np.sqrt(8), X @ point.teacher.T / np.sqrt(8)
    delta = (np.tanh(h).sum(1) - np.tanh(nu).sum(1))[:, None] / np.cosh(h) ** 2
    f = delta[:, 0] * delta[:, 1]
    dense = block.dense()
    for a in range(8):
        samples = f[:, None] * X[:, a : a + 1] * X
        error = samples.std(0) / np.sqrt(len(X))
        assert np.abs((samples.mean(0) - dense[a]) / error).max() < 5
    assert block.values.size == 5
    assert block.basis.shape == (8, 5)


@pytest.mark.parametrize("kind", KINDS)
def test_overlaps_and_weights_agree(kind) -> None:
    """Eigenvalues, bulk and alignments need no weights; and do not change when the weights are rotated."""
    problem = softmax_problem(3)
    point = ov.draw(problem, 30, seed=2)
    # the means stay as they are, what is orthogonal to them is turned
    turn = np.eye(30)
    turn[3:, 3:] = np.linalg.qr(np.random.default_rng(0).standard_normal((27, 27)))[0]
    rotated = ov.Start.from_weights(problem, point.student @ turn)
    bare = ov.Start.from_overlaps(problem, Q=point.Q, m=point.m)
    matrices = [population(problem, p, kind) for p in (point, rotated, bare)]
    for matrix in matrices[1:]:
        for i, j in ((0, 0), (1, 2)):
            np.testing.assert_allclose(matrix.block(i, j).values, matrices[0].block(i, j).values, rtol=1e-9)
            np.testing.assert_allclose(matrix.block(i, j).bulk, matrices[0].block(i, j).bulk, rtol=1e-9)
        for count in (1, 3):
            expected = matrices[0].alignment_of_student(1, count)
            np.testing.assert_allclose(matrix.alignment_of_student(1, count), expected, rtol=1e-9)
    block = matrices[0].block(1)
    np.testing.assert_allclose(
        np.linalg.norm(block.vectors[:, :3].T @ point.student[1]) / np.linalg.norm(point.student[1]),
        matrices[0].alignment_of_student(1, 3),
    )
    overlap = np.linalg.norm(block.vectors[:, :2].T @ point.means[0])
    np.testing.assert_allclose(matrices[2].alignment_of_mean(0, 1, 2), overlap)
    # eigenpairs: the dense matrix does what is said, and everything else is bulk
    dense = block.dense()
    assert norm(dense @ block.vectors - block.vectors * block.values) < 1e-14
    spectrum = np.sort(np.concatenate([block.values, np.full(24, block.bulk)]))
    np.testing.assert_allclose(np.linalg.eigvalsh(dense), spectrum, atol=1e-14)
    np.testing.assert_allclose(block.operator() @ point.means.T, dense @ point.means.T, atol=1e-14)


def test_students_within_the_span_of_means() -> None:
    """Directions that depend on each other are found: the span has three dimensions, and the averages do not change."""
    problem = softmax_problem(3)
    means = problem.data.mean_vectors(20)
    student = np.sqrt(20) * np.array([[1.0, -0.5, -0.5], [-0.5, 1, -0.5], [-0.5, -0.5, 1]]) @ means
    point = ov.Start.from_weights(problem, student)
    inside = span(problem, point)
    assert inside.rank == 3
    np.testing.assert_allclose(inside.students @ inside.basis.T * np.sqrt(20), student, atol=1e-12)
    H = population(problem, point).block(0)
    nearby = population(problem, ov.Start.from_weights(problem, student + 1e-3 * np.eye(3, 20, 5))).block(0)
    assert norm(H.dense() - nearby.dense()) < 1e-4
    assert H.alignment(inside.students[0], 3) == pytest.approx(1, abs=1e-12)


def test_leading_order_is_first_order_in_the_noise() -> None:
    """|block − leading| falls as the noise: by ten, within 30%, from λ = 100 to 1000."""
    apart = []
    for variance in (1e-2, 1e-3):
        problem = softmax_problem(3, variance)
        point = ov.draw(problem, 40, seed=0)
        matrix = population(problem, point)
        apart.append(norm(matrix.block(0, 1).dense() - matrix.leading(0, 1).dense()))
    assert 7 < apart[0] / apart[1] < 13


def test_trained_xor_against_samples() -> None:
    """After training at λ = 10: H_vv and H_ww of four units against 40 N samples, as eigenvalues.

    5% of the largest: the sampling error of a mean over 8000 with weights spread as these is 1 to 2%.
    """
    problem = xor_problem(4, [1.0, -1.0] * 2, variance=0.1)
    start, steps, size = ov.draw(problem, 200, seed=1), 8_000, 200
    w, v = start.student / np.sqrt(size), start.v.copy()
    train = Batch.draw(problem, start, steps, seed=3)
    for x, y in zip(train.inputs, train.labels, strict=True):
        h = w @ x
        g = np.maximum(h, 0)
        slope = 1 / (1 + np.exp(-v @ g)) - y
        v, w = v - (slope * g + 0.02 * v) / size, w - (np.outer(slope * v * (h > 0), x) + 0.02 * w) / size
    student = np.sqrt(size) * w
    point = ov.Start.from_weights(problem, student, student_readout=v)
    batch = Batch.draw(problem, point, 8_000, seed=2)
    for kind in KINDS:
        matrix = population(problem, point, kind)
        ll, _, vv = committee_weights(student, point.v, batch.inputs, batch.labels, "relu", "logistic", kind)
        values = np.linalg.eigvalsh(vv.mean(0))[::-1]
        assert np.abs(values - np.sort(matrix.block("v").values)[::-1]).max() < 0.05 * values[0]
        i = int(np.abs(point.v).argmax())
        emp = np.linalg.eigvalsh((batch.inputs.T * ll[:, i, i]) @ batch.inputs / len(batch))[::-1]
        assert np.abs(emp[:2] - matrix.block(i).values[:2]).max() < 0.1 * emp[0]


def test_blocks_of_the_readout_are_accurate_or_refused() -> None:
    """Large weights of two ReLU units, as exact as `population`; of six, no rule within the budget is accurate."""
    two, six = xor_problem(2, [1.0, -1.0]), xor_problem(6, [1.0, -1.0, 0.5, -0.5, 2.0, 1.0])
    point = ov.draw(two, 150, scale=20.0)
    limit = population(two, point)
    assert limit.readout is not None and limit.accuracy < 1e-5
    assert np.abs(readout_block(two, point) - limit.readout).max() < 1e-4 * np.abs(limit.readout).max()
    with pytest.raises(ov.NumericalError, match=r"block \(v, v\): averages .* still change .* ov.spectra.hessian"):
        readout_block(six, ov.draw(six, 150, scale=1000.0))


def test_names_of_blocks() -> None:
    matrix = population(xor_problem(2, [1.0, -1.0]), ov.draw(xor_problem(2, [1.0, -1.0]), 12))
    assert matrix.readout is not None
    np.testing.assert_array_equal(matrix.block("v", "v").core, matrix.readout)
    for i, j in ((1, "v"), ("v", 1)):
        with pytest.raises(ov.InputError, match=r"use cross\(1\)"):
            matrix.block(i, j)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ov.InputError, match="numbers of students, or 'v' for the readout"):
        matrix.block("w")  # pyright: ignore[reportArgumentType]
    assert repr(matrix).startswith("PopulationMatrix(hessian, 2 units, N = 12")
    one = population(xor_problem(1, [1.0]), ov.draw(xor_problem(1, [1.0]), 12))
    assert "hessian, 1 unit, " in repr(one)


def test_refusals() -> None:
    problem = softmax_problem(3)
    point = ov.draw(problem, 12)
    bare = ov.Start.from_overlaps(problem, Q=np.eye(3))
    levels = ov.GaussianMixture(means=3, spectrum=ov.PowerLaw(levels=3, exponent=1.0))
    tilted = ov.Problem(data=levels, student=ov.Softmax(3), loss="cross-entropy", algorithm=ov.OnlineSGD(1.0))
    matrix = population(problem, bare)
    with pytest.raises(ov.InputError, match="not isotropic need weights, this start has overlaps only"):
        population(tilted, ov.Start.from_overlaps(tilted, Q=np.full((3, 3, 3), np.eye(3)) / 3, size=60))
    with pytest.raises(ov.InputError, match="unknown kind 'hesian'; did you mean 'hessian'"):
        population(problem, point, "hesian")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ov.InputError, match="no second layer"):
        matrix.block("v")
    with pytest.raises(ov.InputError, match="no second layer"):
        readout_block(problem, point)
    with pytest.raises(ov.InputError, match="block: expected at most 2, got 3"):
        matrix.block(3)
    with pytest.raises(ov.InputError, match="need weights, this start has overlaps only"):
        matrix.block(0).dense()
    with pytest.raises(ov.InputError, match="not zero"):
        PopulationBlock(np.eye(2), 0.0, None, None).alignment([0.0, 0.0], 1)
    noisy = ov.Problem(
        data=ov.GaussianInputs(), teacher=ov.Committee(1), student=ov.Committee(1), algorithm=ov.OnlineSGD(1.0),
        label_noise=0.1,
    )  # fmt: skip
    with pytest.raises(ov.InputError, match="labels without noise"):
        population(noisy, ov.draw(noisy, 10), "gradient")
    with pytest.raises(ov.InputError, match="no means"):
        population(noisy, ov.draw(noisy, 10)).leading(0)
    two = population(xor_problem(2, [1.0, -1.0]), ov.Start.from_overlaps(xor_problem(2, [1.0, -1.0]), Q=np.eye(2)))
    with pytest.raises(ov.InputError, match="overlaps only"):
        two.cross(0)


def test_accuracy_is_relative() -> None:
    """A loss a thousand times as large has entries 10⁶ times as large, known as well as before."""

    def accuracy(factor: float) -> float:
        def value(lam, nu, c, v):
            return factor * np.log(np.cosh(np.sum(v * lam) - np.sum(nu)))

        def gradient(lam, nu, c, v):
            t = factor * np.tanh(np.sum(v * lam) - np.sum(nu))
            return v * t, lam * t

        network, rate = ov.Committee(units=1, readout=0.7), ov.OnlineSGD(rate=0.5)
        loss = ov.Loss(value, gradient, name="log-cosh")
        p = ov.Problem(data=ov.GaussianInputs(), teacher=network, student=network, loss=loss, algorithm=rate)
        return population(p, ov.draw(p, size=20, seed=0, scale=0.5), "gradient").accuracy

    assert accuracy(1000.0) == pytest.approx(accuracy(1.0), rel=1e-3)
