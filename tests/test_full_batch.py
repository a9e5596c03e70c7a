"""Full-batch training: micro against loops written out here, and what a trajectory of steps tells."""

from __future__ import annotations

import matplotlib

matplotlib.use("Agg")
import numpy as np
import pytest
from scipy.special import expit

import overlaps as ov
from full_batches import PAIR, USER, committee, explicit_descent, paper, small_start, textbook, three_classes
from overlaps.full_batch.data_matrices import ExplicitDataMatrix
from overlaps.full_batch.descent import descend
from overlaps.full_batch.initial_weights import with_weights
from overlaps.full_batch.task import FullBatchTask


def descent_by_hand(X, theta, algorithm, gradient, fixed):
    """Q, A, loss, points and duals of the textbook's algorithm on X (N, m); gradient(p) gives δ (m, K) and losses."""
    m, losses, duals = X.shape[1], [], []

    def full(x):
        delta, loss = gradient(X.T @ x)
        losses.append(loss.mean())
        duals.append(delta)
        return X @ delta / m + algorithm.decay * x

    points = textbook(algorithm.method, algorithm.steps, algorithm.rate, algorithm.momentum, full, theta)
    full(points[-1])
    Q = np.einsum("lni,lnj->lij", points, points)
    return Q, np.einsum("lni,fn->lif", points, fixed), np.array(losses), points, np.array(duals)


def softplus_logistic(p, y):
    f = np.logaddexp(0.0, p[:, 0])
    return ((expit(f) - y) * expit(p[:, 0]))[:, None], np.logaddexp(0.0, f) - y * f


def cross_entropy(p, y):
    weight = np.exp(p - p.max(1, keepdims=True))
    weight /= weight.sum(1, keepdims=True)
    at = np.arange(len(p))
    loss = -np.log(weight[at, y])
    weight[at, y] -= 1
    return weight, loss


def relu_hinge(p, y):
    sign, f = 2 * y - 1, np.maximum(p[:, 0], 0)
    return (-sign * (sign * f < 1) * (p[:, 0] > 0))[:, None].astype(float), np.maximum(0, 1 - sign * f)


def log_cosh_of_labels(p, y):
    return np.tanh(p - y[:, None]), np.log(np.cosh(p[:, 0] - y))


@pytest.mark.parametrize(
    ("problem", "by_hand"),
    [
        (paper(momentum=0.7, steps=12, ratio=0.8), softplus_logistic),
        (paper(method="nesterov", momentum=0.5, decay=0.2, steps=12), softplus_logistic),
        (three_classes(method="heavy-ball", momentum=0.4, steps=10, ratio=0.6), cross_entropy),
        (paper("relu", "hinge", method="gd", steps=12), relu_hinge),
        (paper(loss=USER, method="gd", decay=0.1, steps=12), log_cosh_of_labels),
    ],
    ids=["softplus", "nesterov", "softmax", "hinge", "user"],
)
def test_micro_is_the_loop_written_out(problem, by_hand):
    size, runs = 23, 3
    start = ov.draw(problem, size, seed=4, scale=0.7)
    task = FullBatchTask(problem, start)
    matrix = ExplicitDataMatrix(task, runs, np.random.default_rng(5))
    ours = descend(task, matrix, runs, np.random.default_rng(6), kernels=True)
    assert start.student is not None and start.means is not None
    spread = np.repeat(task.covariances, problem.data.dimensions(size), axis=1)
    y, component = np.repeat(task.labels, task.counts), np.repeat(np.arange(len(spread)), task.counts)
    assert y.size == problem.algorithm.samples(size)
    for run in range(runs):
        Q, m, loss, points, duals = descent_by_hand(
            matrix.X[run], start.student.T / np.sqrt(size), problem.algorithm, lambda p: by_hand(p, y), start.means
        )
        np.testing.assert_allclose(ours.Q[run].sum(1), Q, atol=1e-10)
        np.testing.assert_allclose(ours.A[run].sum(1), m, atol=1e-10)
        np.testing.assert_allclose(ours.loss[run], loss, atol=1e-10)
        for c, variances in enumerate(spread):
            V = np.einsum("lni,n,Lnj->lLij", points, variances, points)
            np.testing.assert_allclose(ours.V_theta[run, c], V, atol=1e-10)
            own = duals[:, component == c]
            V = np.einsum("lni,Lnj->lLij", own, own) / y.size
            np.testing.assert_allclose(ours.V_omega[run, c], V, atol=1e-10)


def test_micro_with_a_teacher_is_the_loop_written_out():
    problem = committee(method="heavy-ball", momentum=0.5, steps=12, ratio=0.7, rate=0.4)
    size, runs = 24, 2
    start, task, matrix, ours = explicit_descent(problem, size, runs)
    noise = 0.3 * np.random.default_rng(6).standard_normal((runs, task.samples))
    v, B = np.array([1.0, -0.7]), start.teacher / np.sqrt(size)
    half = np.arange(size) < 12
    for run in range(runs):
        X = matrix.X[run]
        y = np.tanh(B @ X).sum(0) + noise[run]

        def gradient(p, y=y):
            t = np.tanh(p)
            return (t @ v - y)[:, None] * v * (1 - t**2), (t @ v - y) ** 2 / 2

        Q, R, loss, _, _ = descent_by_hand(X, start.student.T / np.sqrt(size), problem.algorithm, gradient, B)
        np.testing.assert_allclose(ours.Q[run].sum(1), Q, atol=1e-10)
        np.testing.assert_allclose(ours.A[run].sum(1), R, atol=1e-10)
        np.testing.assert_allclose(ours.loss[run], loss, atol=1e-10)
        # the levels: the second half of the coordinates has the smaller variance
        only = np.where(half, B, 0.0)
        first = descent_by_hand(X, start.student.T / np.sqrt(size), problem.algorithm, gradient, only)[1]
        np.testing.assert_allclose(ours.A[run, :, 0], first, atol=1e-10)


def test_matrices_have_the_law_of_the_data():
    """Samples of each component: how many, and their first two moments, to five standard errors (rate 1e-4)."""
    problem, size, runs = three_classes(ratio=0.3), 40, 500
    task = FullBatchTask(problem, ov.draw(problem, size))
    counts = task.counts
    assert counts is not None and counts.tolist() == [66, 40, 27] and counts.sum() == round(40 / 0.3)
    X, low = ExplicitDataMatrix(task, runs, np.random.default_rng(0)).X, 0
    means = problem.data.mean_vectors(size)
    variances = np.repeat([[1.0, 0.3], [0.5, 1.5], [2.0, 1.0]], [24, 16], axis=1)
    for c, count in enumerate(counts):
        part = X[:, :, low : low + count]
        n = runs * count
        assert np.abs((part.mean((0, 2)) - means[c]) / np.sqrt(variances[c] / n)).max() < 5
        assert np.abs(part.var((0, 2)) / variances[c] - 1).max() < 5 * np.sqrt(2 / n)
        low += count


def test_error_with_unequal_covariances_is_that_of_fresh_samples():
    problem = three_classes(steps=3, rate=1.0)
    start = ov.draw(problem, 30, seed=2)
    run = ov.train(problem, start, [0], runs=2, seed=1)
    W, rng, n = start.student, np.random.default_rng(0), 400_000
    assert W is not None and start.means is not None
    parts = []
    for c, (weight, variances) in enumerate(zip([0.5, 0.3, 0.2], [[1.0, 0.3], [0.5, 1.5], [2.0, 1.0]], strict=True)):
        spread = np.sqrt(np.repeat(variances, [18, 12]))
        root = np.linalg.cholesky((W * spread) @ (W * spread).T / 30)
        lam = W @ start.means[c] / np.sqrt(30) + rng.standard_normal((n, 3)) @ root.T
        loss = np.log(np.exp(lam).sum(1)) - lam[:, c]
        parts.append((weight * loss.mean(), weight * loss.std() / np.sqrt(n)))
    mean, error = sum(p[0] for p in parts), np.sqrt(sum(p[1] ** 2 for p in parts))
    assert abs(float(run.data["error"][0, 0]) - mean) < 4.5 * error


def test_label_noise_is_in_the_training_error_and_not_in_the_error():
    quiet, loud = (committee(noise=noise, steps=1, ratio=0.02) for noise in (0.0, 0.7))
    start = ov.draw(quiet, 60, seed=1)
    a, b = (ov.train(p, start, [0], runs=200, seed=1).data for p in (quiet, loud))
    np.testing.assert_allclose(a["error"], b["error"], rtol=1e-12)
    apart = (b["training_error"] - a["training_error"]).values[:, 0]
    assert abs(apart.mean() - 0.7**2 / 2) < 4.5 * apart.std(ddof=1) / np.sqrt(200)
    # training begins with the mean of the loss over the samples, which is the error, and the noise
    apart = a["training_error"].values[:, 0] - a["error"].values[:, 0]
    assert abs(apart.mean()) < 4.5 * apart.std(ddof=1) / np.sqrt(200)


def test_weights_that_have_the_overlaps():
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((3, 30)) / 5
    vectors[2] = vectors[0] + vectors[1]
    for problem in (three_classes(), committee(), paper(data=ov.GaussianMixture(means=vectors, labels=[0, 1, 1]))):
        start = ov.draw(problem, 30, seed=3)
        bare = start.at_size(problem, 30)
        assert bare.student is None
        again = with_weights(problem, bare)
        assert again.student is not None
        rebuilt = ov.Start.from_weights(problem, again.student, again.teacher)
        np.testing.assert_allclose(rebuilt.gram, start.gram, atol=1e-12)
        again.check_fits(problem)


def test_small_sizes():
    """One dimension, one sample, fewer dimensions than units, fewer than steps: all run."""
    single = paper(data=ov.GaussianMixture(gram=[[1.0]], labels=[1]), steps=6, ratio=1.0)
    many = paper(
        data=ov.GaussianInputs(), teacher=ov.Committee(1, "tanh"), student=ov.Committee(3, "tanh"), loss="square"
    )
    for problem, size in ((single, 1), (many, 2), (many, 1), (paper(steps=30, ratio=0.2), 2), (paper(ratio=4.0), 9)):
        start = ov.draw(problem, size, seed=1)
        for scale in (ov.sample, ov.train):
            data = scale(problem, start, runs=5).data
            for name in ("Q", "error", "training_error"):
                assert np.isfinite(data[name]).all()


def test_a_trajectory_of_steps(tmp_path):
    problem = three_classes(steps=5, ratio=0.5)
    start = ov.draw(problem, 30)
    macro = ov.solve(problem, start, levels=True)
    meso = ov.sample(problem, start, runs=40, kernels=True)
    assert "6 steps from 0 to 5" in repr(macro) and "samples" in repr(meso)
    assert macro.variables == ("Q", "m", "error", "training_error")
    for name in ("V_theta", "V_omega", "B_theta", "B_omega"):
        assert macro.data[name].dims == ("run", "component", "step", "step_", "student", "student_")
        assert macro.data[name].shape == (1, 3, 6, 6, 3, 3) and macro.accuracy(name) > 0
    assert meso.data["V_theta"].dims == macro.data["V_theta"].dims
    # kernels at equal times are what the other variables say
    r = problem.data.component_eigenvalues
    Q = np.einsum("cb,tbij->ctij", r, macro.data["Q_levels"].values[0])
    np.testing.assert_allclose(np.einsum("cttij->ctij", macro.data["V_theta"].values[0]), Q, rtol=1e-10)
    for result in (macro, meso):
        again = ov.load(result.save(tmp_path / "result.nc"))
        assert again.problem == problem and again.data.equals(result.data)
        assert again.data["time"].attrs["units"] == "steps"
        assert again.accuracy("training_error") == result.accuracy("training_error")
        assert ov.compare(ov.load(macro.save(tmp_path / "macro.nc")), meso).verdict in ("agrees", "underpowered")
        for name in ("error", "training_error", "Q"):
            assert again.plot(name).get_xlabel() == "time (steps)"
    assert macro.plot("training_error").get_ylabel() == "training error"
    table = ov.compare(macro, meso, finite_size=False).table
    assert "training_error" in table["variable"].values
    assert any("comparison theorem" in text for text in macro.citations())
    assert not any("Saad" in text for text in macro.citations())


def test_some_steps_are_those_of_all():
    problem = paper(steps=8, momentum=0.5)
    start = small_start(problem, 40)
    for scale in (ov.sample, ov.train):
        everything = scale(problem, start, runs=3, seed=2).data
        some = scale(problem, start, [0, 3, 8], runs=3, seed=2).data
        xr_all = everything.sel(time=[0, 3, 8])
        for name in ("Q", "m", "error", "training_error"):
            np.testing.assert_array_equal(some[name], xr_all[name])
        other = scale(problem, start, [0, 3, 8], runs=3, seed=3).data
        assert float(np.abs(other["Q"] - some["Q"]).max()) > 1e-3
    everything, some = ov.solve(problem, start).data, ov.solve(problem, start, [0, 3, 8]).data
    np.testing.assert_array_equal(some["Q"], everything["Q"].sel(time=[0, 3, 8]))


@pytest.mark.parametrize("scale", [ov.solve, ov.sample, ov.train])
def test_divergence_keeps_what_came_before(scale, tmp_path):
    for activation in ("linear", "softplus"):
        problem = paper(activation, "square", rate=20.0)
        start = small_start(problem, 40)
        with pytest.raises(ov.NumericalError, match=r"diverge.* at step \d+.*reduce rate \(now 20\)") as caught:
            scale(problem, start)
        error = caught.value
        assert error.quantity == "Q" and error.time is not None and 2 <= error.time < 25
        partial = error.partial
        assert partial is not None and partial.time[-1] == error.time - 1
        for name in partial.variables:
            assert np.isfinite(partial.data[name]).all()
        again = ov.load(partial.save(tmp_path / "partial.nc"))
        assert repr(again) and again.plot("training_error") is not None
        assert again.data.equals(partial.data)


def test_a_loss_that_is_not_finite_is_said_so():
    """A loss that is no number beyond some field: finite on the nodes of the quadrature at first."""

    def value(lam, nu, c, v):
        return np.sqrt(40.0 - lam[0]) - 6.0 if lam[0] < 40.0 else np.nan

    def gradient(lam, nu, c, v):
        return -0.5 / np.sqrt(40.0 - lam) if lam[0] < 40.0 else lam * np.nan, 0.0 * lam

    problem = paper(loss=ov.Loss(value, gradient), rate=50.0, steps=40)
    start = small_start(problem, 30)
    for scale in (ov.solve, ov.sample, ov.train):
        with pytest.raises(ov.NumericalError, match=r"not a finite number|not finite") as caught:
            scale(problem, start)
        if caught.value.partial is not None:
            for name in caught.value.partial.variables:
                assert np.isfinite(caught.value.partial.data[name]).all()


def test_two_classes_of_unequal_weights_share_out_the_samples():
    problem = paper(data=ov.GaussianMixture(gram=PAIR, weights=[0.7, 0.3], labels=[0, 1]), ratio=0.9)
    task = FullBatchTask(problem, ov.draw(problem, 10))
    assert task.samples == 11 and task.counts is not None and task.counts.tolist() == [8, 3]
    np.testing.assert_allclose(task.weights, [8 / 11, 3 / 11])
    np.testing.assert_allclose(task.shares, [10 / 11])
    free = FullBatchTask(problem, ov.Start.from_overlaps(problem, [[1.0]]))
    np.testing.assert_allclose(free.weights, [0.7, 0.3])
    np.testing.assert_allclose(free.shares, [0.9])
