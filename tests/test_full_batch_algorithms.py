"""Full-batch algorithms as kernels, against those of textbooks, and what is refused of them."""

from __future__ import annotations

from dataclasses import replace

import matplotlib

matplotlib.use("Agg")
import numpy as np
import pytest

import overlaps as ov
from full_batches import USER, committee, paper, textbook, three_classes


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
    with pytest.raises(ov.InputError, match="FullBatch needs Gaussian inputs or labelled rows, got HiddenManifold"):
        ov.Problem(data=ov.HiddenManifold(latent_ratio=0.5), teacher=net, student=net, algorithm=algorithm)
    with pytest.raises(ov.InputError, match="FullBatch needs Gaussian inputs or labelled rows, got Samples"):
        data = ov.Samples(np.random.default_rng(0).standard_normal((40, 5)))
        ov.Problem(data=data, teacher=net, student=net, algorithm=algorithm)
    with pytest.raises(ov.InputError, match="train_readout: FullBatch trains the first layer"):
        student = ov.Committee(2, "relu", train_readout=True)
        ov.Problem(data=mixture, student=student, loss="logistic", algorithm=algorithm)
    with pytest.raises(ov.InputError, match=r"gradient: expected a function gradient\(lam, nu, c, v\), got None"):
        ov.Loss(USER.value)
    classes = ov.GaussianClasses(np.zeros((2, 2)), [np.diag([1.0, 2.0]), [[1.0, 0.5], [0.5, 1.0]]])
    with pytest.raises(ov.InputError, match="covariances: FullBatch needs covariances that commute"):
        ov.Problem(data=classes, student=net, loss="logistic", algorithm=algorithm)
    with pytest.raises(ov.InputError, match="teacher: the hinge loss fits the labels"):
        ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, loss="hinge", algorithm=algorithm)
    with pytest.raises(ov.InputError, match="labels: expected 0 and 1, or -1 and 1, for the hinge loss"):
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
    spread = np.repeat(data.component_eigenvalues, data.dimensions(8), axis=1)
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
