"""Full-batch training: the algorithm as kernels, what is refused, and micro against loops written out here."""

from __future__ import annotations

from dataclasses import replace

import matplotlib

matplotlib.use("Agg")
import numpy as np
import pytest
from scipy.special import expit

import overlaps as ov
from full_batches import PAIR, USER, committee, paper, small_start, three_classes
from overlaps.dmft.descent import descend
from overlaps.dmft.matrices import Formed
from overlaps.dmft.setting import Setting
from overlaps.dmft.weights import with_weights


def textbook(method: str, steps: int, rate: float, s: float, gradient, theta: np.ndarray) -> np.ndarray:
    """The points at which the algorithm of a textbook takes its gradients, (steps + 1, ...)."""
    out, before, u = [theta], theta, np.zeros_like(theta)
    y_before = theta
    for _ in range(steps):
        q = gradient(theta)
        if method == "gd":
            after = theta - rate * q
        elif method == "ema-momentum":
            u = s * u + (1 - s) * q
            after = theta - rate * u
        elif method == "heavy-ball":
            after = theta - rate * q + s * (theta - before)
        else:
            y = theta - rate * q
            after = y + s * (y - y_before)
            y_before = y
        before, theta = theta, after
        out.append(theta)
    return np.array(out)


def by_kernels(algorithm: ov.FullBatch, gradient, theta: np.ndarray) -> np.ndarray:
    first, history = algorithm.kernels
    out, q = [theta], []
    for l in range(1, algorithm.steps + 1):
        q.append(gradient(out[-1]))
        out.append(first[l] * theta - np.tensordot(history[:l, l], np.array(q), 1))
    return np.array(out)


@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize(
    ("method", "s"), [("gd", 0.0), ("ema-momentum", 0.0), ("ema-momentum", 0.9), ("heavy-ball", 0.6), ("nesterov", 0.8)]
)
def test_kernels_are_the_algorithms_of_textbooks(method, s, decay):
    rng = np.random.default_rng(3)
    H, b, theta = rng.standard_normal((6, 6)), rng.standard_normal(6), rng.standard_normal(6)
    H = H @ H.T / 6
    algorithm = ov.FullBatch(20, 0.2, method, momentum=s, decay=decay)
    plain = by_kernels(algorithm, lambda x: H @ x - b, theta)
    damped = textbook(method, 20, 0.2, s, lambda x: H @ x - b + decay * x, theta)
    np.testing.assert_allclose(plain, damped, atol=1e-12)


def test_kernels_of_ones_own():
    steps, T = 6, 7
    gd = ov.FullBatch(steps, 0.3, decay=0.1)
    own = ov.FullBatch(steps, 0.3, (np.ones(T), np.triu(np.ones((T, T)), 1)), decay=0.1)
    for mine, theirs in zip(own.kernels, gd.kernels, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    # of steps that shrink, and a pull to the start: θ(l+1) = θ(l) − η_l q(l) + κ (θ(0) − θ(l))
    rates, kappa = 1 / (1 + np.arange(steps)), 0.2
    weights = np.zeros((T, T))
    for mu in range(steps):
        weights[mu, mu + 1 :] = rates[mu] * (1 - kappa) ** np.arange(steps - mu)
    theta, b = np.array([1.0, -2.0]), np.array([0.5, 0.1])
    points = [theta]
    for l in range(steps):
        points.append(points[-1] - 0.3 * rates[l] * (points[-1] - b) + kappa * (theta - points[-1]))
    algorithm = ov.FullBatch(steps, 0.3, (np.ones(T), weights))
    np.testing.assert_allclose(by_kernels(algorithm, lambda x: x - b, theta), points, atol=1e-13)
    assert "own kernels" in repr(algorithm)


@pytest.mark.parametrize(
    "problem",
    [
        paper(),
        paper(method="gd", ratio=0.25, decay=0.1),
        paper(method="heavy-ball", momentum=0.5),
        paper(method="nesterov", momentum=0.9, steps=3),
        paper(method=(np.ones(4), np.triu(np.full((4, 4), 0.7), 1)), steps=3),
        paper("relu", "hinge"),
        three_classes(),
        committee(),
    ],
    ids=lambda p: f"{p.algorithm.method if isinstance(p.algorithm.method, str) else 'own'}-{p.loss}",
)
def test_a_problem_reads_back_as_written(problem):
    again = ov.Problem.from_toml(problem.to_toml())
    assert again == problem and hash(again.algorithm) == hash(problem.algorithm)
    for one, other in zip(again.algorithm.kernels, problem.algorithm.kernels, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_spec_names_what_is_wrong():
    text = paper(steps=3).to_toml()
    with pytest.raises(ov.InputError, match=r"spec\.algorithm: ratio: expected a number above 0"):
        ov.Problem.from_toml(text.replace("rate = 0.2", "rate = 0.2\nratio = -1.0"))
    with pytest.raises(ov.InputError, match=r"spec\.algorithm: method: Λ is not causal"):
        ov.Problem.from_toml(
            text.replace(
                'method = "ema-momentum"',
                "method = [[1, 1, 1, 1], [[0, 1, 1, 1],[1, 0, 1, 1],[0, 0, 0, 1],[0, 0, 0, 0]]]",
            )
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(steps=0), "steps: expected"),
        (dict(steps=2.5), "steps: expected a whole number"),
        (dict(rate=0.0), "rate: expected a number above 0"),
        (dict(rate=np.nan), "rate: expected"),
        (dict(ratio=0.0), "ratio: expected a number above 0"),
        (dict(ratio=-2.0), "ratio: expected a number above 0"),
        (dict(decay=-0.1), "decay: expected"),
        (dict(method="adam"), "method: unknown 'adam'|method"),
        (dict(method="heavy-ball", momentum=1.0), "momentum: expected a number below 1"),
        (dict(momentum=0.5), "momentum: has no effect here"),
        (dict(method=(np.ones(4), np.zeros((4, 4))), momentum=0.5), "momentum: has no effect here"),
        (dict(method=7), "method: expected a name or two kernels"),
        (dict(method=(np.ones(3), np.zeros((4, 4)))), "method: λ"),
        (dict(method=(np.ones(4), np.zeros((3, 4)))), "method: Λ"),
        (
            dict(method=(np.ones(4), np.tril(np.ones((4, 4)), -1))),
            r"not causal: step 0 would use the gradient of step 1",
        ),
        (dict(method=(np.ones(4), np.eye(4))), r"not causal: step 0 would use the gradient of step 0"),
        (dict(method=(np.full(4, 0.5), np.zeros((4, 4)))), r"expected λ\[0\] = 1"),
        (dict(method=(np.ones(4), np.full((4, 4), np.nan))), "method: Λ"),
    ],
)
def test_algorithms_that_are_refused(arguments, message):
    with pytest.raises(ov.InputError, match=message):
        ov.FullBatch(**{"steps": 3, "rate": 0.1, **arguments})


def test_problems_that_are_refused():
    algorithm, net = ov.FullBatch(3, 0.1), ov.Committee(1, "relu")
    mixture = ov.GaussianMixture(means=2)
    with pytest.raises(ov.InputError, match="FullBatch needs Gaussian inputs, got HiddenManifold"):
        ov.Problem(data=ov.HiddenManifold(latent_ratio=0.5), teacher=net, student=net, algorithm=algorithm)
    with pytest.raises(ov.InputError, match="FullBatch needs Gaussian inputs, got Samples"):
        data = ov.Samples(np.random.default_rng(0).standard_normal((40, 5)))
        ov.Problem(data=data, teacher=net, student=net, algorithm=algorithm)
    with pytest.raises(ov.InputError, match="train_readout: FullBatch trains the first layer"):
        student = ov.Committee(2, "relu", train_readout=True)
        ov.Problem(data=mixture, student=student, loss="logistic", algorithm=algorithm)
    with pytest.raises(ov.InputError, match=r"gradient: expected a function gradient\(lam, nu, c, v\), got None"):
        ov.Loss(USER.value)
    by_level = ov.GaussianMixture(means=2, variance=[[1, 2], [2, 1]], spectrum=ov.Spectrum([1.0, 0.5]))
    with pytest.raises(ov.InputError, match="variance: one per component and level is for FullBatch"):
        ov.Problem(data=by_level, student=net, loss="logistic", algorithm=ov.OnlineSGD(0.1))
    with pytest.raises(ov.InputError, match="teacher: the hinge loss fits the labels"):
        ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, loss="hinge", algorithm=algorithm)
    with pytest.raises(ov.InputError, match="labels: expected labels from 0 to 1 for the hinge loss"):
        ov.Problem(data=ov.GaussianMixture(means=3), student=net, loss="hinge", algorithm=algorithm)


def test_covariances_that_are_refused():
    rng = np.random.default_rng(0)
    a, b = (x @ x.T for x in rng.standard_normal((2, 5, 5)))
    means = rng.standard_normal((2, 5))
    with pytest.raises(ov.InputError, match="components 0 and 1 do not commute"):
        ov.GaussianMixture.from_covariances(means, [a, b])
    with pytest.raises(ov.InputError, match="symmetric"):
        ov.GaussianMixture.from_covariances(means, [a + np.triu(b, 1), a])
    with pytest.raises(ov.InputError, match="negative eigenvalue"):
        ov.GaussianMixture.from_covariances(means, [a, -a])
    with pytest.raises(ov.InputError, match="expected numbers, got matrices"):
        ov.GaussianMixture(means=means, variance=[a, b])
    with pytest.raises(ov.InputError, match="variance"):
        ov.GaussianMixture(means=2, variance=[[1, 2, 3], [1, 2, 3]], spectrum=ov.Spectrum([1.0, 0.5]))
    with pytest.raises(ov.InputError, match="variance: expected none below zero"):
        ov.GaussianMixture(means=2, variance=[[1, -2], [1, 2]], spectrum=ov.Spectrum([1.0, 0.5]))


def test_covariances_that_commute_become_levels():
    """The mixture has the covariances asked for, up to a rotation: those of all pairs of projections."""
    rng = np.random.default_rng(1)
    basis = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    values = np.array([[1.0, 1, 1, 2, 2, 0, 0, 0.5], [3.0, 3, 3, 1, 1, 2, 2, 0]])
    matrices = [basis @ np.diag(v) @ basis.T for v in values]
    means = rng.standard_normal((2, 8))
    data = ov.GaussianMixture.from_covariances(means, matrices, weights=[0.3, 0.7], labels=[1, 0])
    assert data.fractions.size == 4
    spread = np.repeat(data.covariances, data.dimensions(8), axis=1)
    vectors = data.mean_vectors(8)
    np.testing.assert_allclose(vectors @ vectors.T, means @ means.T, atol=1e-12)
    for c, matrix in enumerate(matrices):
        ours, theirs = (vectors * spread[c]) @ vectors.T, means @ matrix @ means.T
        np.testing.assert_allclose(ours, theirs, atol=1e-12)
        np.testing.assert_allclose(np.sort(spread[c]), np.sort(values[c]), atol=1e-12)
    np.testing.assert_allclose(np.sort(spread[0] * spread[1]), np.sort(values[0] * values[1]), atol=1e-12)
    problem = paper(data=data, steps=2)
    assert ov.Problem.from_toml(problem.to_toml()) == problem


def test_runs_that_are_refused():
    problem = paper(steps=4)
    start = ov.draw(problem, 20)
    for times, message in (([0.5], "whole steps"), ([5], "whole steps from 0 to 4"), ([2, 1], "increasing"), ([], "")):
        for scale in (ov.solve, ov.sample, ov.train):
            with pytest.raises(ov.InputError, match=f"times: .*{message}"):
                scale(problem, start, times)
    overlaps = ov.Start.from_overlaps(problem, [[0.01]])
    with pytest.raises(ov.InputError, match="start: meso needs a size"):
        ov.sample(problem, overlaps)
    with pytest.raises(ov.InputError, match="start: micro needs weights"):
        ov.train(problem, overlaps.at_size(problem, 20))
    rare = paper(data=ov.GaussianMixture(means=2, weights=[0.99, 0.01]), ratio=2.0)
    for scale in (ov.solve, ov.sample, ov.train):
        with pytest.raises(ov.InputError, match=r"ratio: 10 samples leave none of component 1, of weight 0\.01"):
            scale(rare, ov.draw(rare, 20))
    for wrong in (paper("relu"), paper(loss="hinge"), paper(loss=USER)):
        with pytest.raises(ov.InputError, match="method: responses are averages of derivatives"):
            ov.solve(wrong, ov.draw(wrong, 20), method="response")
    with pytest.raises(ov.InputError, match="method"):
        ov.solve(problem, start, method="quadrature")
    with pytest.raises(ov.InputError, match="system: full-batch training has one system"):
        ov.solve(problem, start, system="levels")
    with pytest.raises(ov.InputError, match="method: full-batch training has no diffusion"):
        ov.sample(problem, start, method="diffusion")
    with pytest.raises(ov.InputError, match="observe"):
        ov.train(problem, start, observe=object())  # type: ignore[arg-type]
    with pytest.raises(ov.InputError, match=r"runs: .* GB"):
        ov.sample(problem, start, runs=10**8)
    with pytest.raises(ov.InputError, match="size: a data matrix of 100000 x 100000 is 80 GB"):
        ov.train(problem, ov.draw(problem, 100_000))
    with pytest.raises(ov.InputError, match=r"steps: what a run of 5001 columns asks .* GB"):
        long = paper(steps=5000)
        ov.sample(long, ov.draw(long, 200_000))
    with pytest.raises(ov.InputError, match=r"steps: 9001 columns need .* GB"):
        ov.solve(paper("linear", "square", steps=9000), start)
    with pytest.raises(ov.InputError, match=r"steps: .*10000"):
        ov.FullBatch(10**5, 0.1)
    online = replace(problem, algorithm=ov.OnlineSGD(0.1))
    with pytest.raises(ov.InputError, match="kernels: those of two times belong to FullBatch"):
        ov.sample(online, start, [0.5], kernels=True)


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
    setting = Setting(problem, start)
    matrix = Formed(setting, runs, np.random.default_rng(5))
    ours = descend(setting, matrix, runs, np.random.default_rng(6), kernels=True)
    assert start.student is not None and start.means is not None
    spread = np.repeat(setting.covariances, problem.data.dimensions(size), axis=1)
    y, component = np.repeat(setting.labels, setting.counts), np.repeat(np.arange(len(spread)), setting.counts)
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
    start = ov.draw(problem, size, seed=4)
    setting = Setting(problem, start)
    matrix = Formed(setting, runs, np.random.default_rng(5))
    ours = descend(setting, matrix, runs, np.random.default_rng(6))
    assert start.student is not None and start.teacher is not None
    noise = 0.3 * np.random.default_rng(6).standard_normal((runs, setting.samples))
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
    setting = Setting(problem, ov.draw(problem, size))
    counts = setting.counts
    assert counts is not None and counts.tolist() == [66, 40, 27] and counts.sum() == round(40 / 0.3)
    X, low = Formed(setting, runs, np.random.default_rng(0)).X, 0
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
    r = problem.data.covariances
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
    setting = Setting(problem, ov.draw(problem, 10))
    assert setting.samples == 11 and setting.counts is not None and setting.counts.tolist() == [8, 3]
    np.testing.assert_allclose(setting.weights, [8 / 11, 3 / 11])
    np.testing.assert_allclose(setting.shares, [10 / 11])
    free = Setting(problem, ov.Start.from_overlaps(problem, [[1.0]]))
    np.testing.assert_allclose(free.weights, [0.7, 0.3])
    np.testing.assert_allclose(free.shares, [0.9])
