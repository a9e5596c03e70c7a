"""Steps that use a part of the samples: draws, loops written out, equality in law, and theory against runs.

Levels are 10⁻³ for each comparison, by exact relabelling between simulations and by `compare` against theory, with
fixed seeds; theories with an error in them have to be rejected at the same level.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import overlaps as ov
from full_batches import LEVEL, committee, p_of_kernels, paper, small_start, three_classes
from overlaps.full_batch import batches, paths
from overlaps.full_batch.batches import Batches
from overlaps.full_batch.data_matrices import ExplicitDataMatrix
from overlaps.full_batch.descent import descend
from overlaps.full_batch.mean_field_kernels import solve_recursion
from overlaps.full_batch.mean_field_theory import stratified
from overlaps.full_batch.paths import Points
from overlaps.full_batch.task import FullBatchTask

BOTH = pytest.mark.parametrize("replacement", [False, True], ids=["without", "with"])


def without_batches(problem: ov.Problem) -> ov.Problem:
    return replace(problem, algorithm=replace(problem.algorithm, batch=None, replacement=False))


@pytest.mark.parametrize("activation", ["softplus", "linear"])
def test_the_whole_batch_is_the_full_batch_bit_for_bit(activation: str) -> None:
    loss = "square" if activation == "linear" else "logistic"
    full, whole = (paper(activation, loss, steps=5, rate=0.5, batch=batch) for batch in (None, 1.0))
    start = ov.draw(full, 40, seed=1)
    for scale in (
        lambda p: ov.solve(p, start, accuracy=0.05).data,
        lambda p: ov.sample(p, start, runs=5, seed=1, kernels=True).data,
        lambda p: ov.train(p, start, runs=5, seed=1, kernels=True).data,
        lambda p: ov.full_batch.alternative(p, start, runs=3, progress=False).data,
    ):
        assert scale(whole).equals(scale(full))


@BOTH
def test_draws(replacement: bool) -> None:
    """As many as asked, all alike: the frequency of each sample and of each pair, to 4.5 standard errors (1e-3 in all).

    Of a pair the mean of s s' is (1 − 1/n)/(1 − 1/m) without replacement and 1 − 1/n with.
    """
    n, m, runs = 3, 8, 20_000
    s = Batches(n, m, replacement).draw(np.random.default_rng(0), runs)
    np.testing.assert_allclose(s.sum(1), m)
    counts = s * n / m
    np.testing.assert_allclose(counts, np.rint(counts))
    assert counts.max() == (3 if replacement else 1)
    pair = 1 - 1 / n if replacement else (1 - 1 / n) / (1 - 1 / m)
    products = s[:, :, None] * s[:, None, :]
    error = products.std(0) / np.sqrt(runs)
    assert (np.abs(products.mean(0) - pair)[~np.eye(m, dtype=bool)] < 4.5 * error[~np.eye(m, dtype=bool)]).all()
    assert (np.abs(s.mean(0) - 1) < 4.5 * s.std(0) / np.sqrt(runs)).all()


@BOTH
@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_multipliers_of_the_limit(share: float, replacement: bool) -> None:
    limit = Batches(share, 1.0, replacement)
    s = limit.limit((np.arange(200_000) + 0.5) / 200_000)
    np.testing.assert_allclose([s.mean(), (s**2).mean()], [1.0, limit.second_moment], rtol=2e-3)
    counts = np.arange(4)
    law = stats.poisson(share) if replacement else stats.bernoulli(share)
    np.testing.assert_allclose([np.mean(s == k / share) for k in counts], law.pmf(counts), atol=1e-5)
    # a large batch of many samples has the same law of a single sample
    finite = Batches(round(share * 4000), 4000, replacement).draw(np.random.default_rng(1), 50)
    frequencies = [np.mean(np.isclose(finite, k / share)) for k in counts]
    np.testing.assert_allclose(frequencies, law.pmf(counts), atol=4.5 * np.sqrt(0.25 / finite.size))


@BOTH
def test_micro_is_the_loop_written_out(replacement: bool) -> None:
    """The gradient is the mean over the samples drawn, each as often as it was; the training error is over all."""
    problem = paper(steps=8, rate=0.7, ratio=0.8, momentum=0.4, batch=0.3, replacement=replacement)
    size, runs, algorithm = 20, 3, problem.algorithm
    start = ov.draw(problem, size, seed=4)
    task = FullBatchTask(problem, start)
    matrix = ExplicitDataMatrix(task, runs, np.random.default_rng(5))
    ours = descend(task, matrix, runs, np.random.default_rng(6), kernels=True)
    draws, rng = Batches(8, 25, replacement), np.random.default_rng(6)  # 0.3 of 25 samples
    counts = np.rint(np.array([draws.draw(rng, runs) for _ in range(task.T)]) * 8 / 25).astype(int)
    y = np.repeat([0.0, 1.0], task.counts)
    assert start.student is not None and y.size == 25
    for run, X in enumerate(matrix.X):
        theta, u, duals = start.student[0] / np.sqrt(size), np.zeros(size), []
        for l in range(task.T):
            p = X.T @ theta
            f = np.logaddexp(0.0, p)
            delta = (expit(f) - y) * expit(p)
            np.testing.assert_allclose(ours.loss[run, l], np.mean(np.logaddexp(0.0, f) - y * f), atol=1e-12)
            np.testing.assert_allclose(ours.Q[run, l, 0, 0, 0], theta @ theta, atol=1e-12)
            batch = np.repeat(np.arange(25), counts[l, run])
            assert batch.size == 8 and (replacement or np.unique(batch).size == 8)
            u = 0.4 * u + 0.6 * np.mean(delta[batch] * X[:, batch], axis=1)
            theta = theta - algorithm.rate * u
            duals.append(counts[l, run] * 25 / 8 * delta)
        own = np.array(duals)[:, : task.counts[0]]
        np.testing.assert_allclose(ours.V_omega[run, 0, :, :, 0, 0], own @ own.T / 25, atol=1e-12)


LAWS: dict[str, tuple[Any, int]] = {
    "half": (lambda: paper(steps=6, rate=0.7, momentum=0.5, batch=0.5), 60),
    "few of few": (lambda: paper(steps=8, rate=0.7, method="gd", ratio=0.5, batch=0.2, replacement=True), 6),
    "softmax": (lambda: three_classes(steps=4, rate=0.5, method="gd", batch=0.3), 60),
}


@pytest.mark.parametrize("name", LAWS)
def test_micro_and_meso_are_equal_in_law(name: str) -> None:
    make, size = LAWS[name]
    problem = make()
    start = ov.draw(problem, size)
    meso, micro = (scale(problem, start, runs=200, seed=1, kernels=True) for scale in (ov.sample, ov.train))
    verdict = ov.compare(meso, micro, level=LEVEL, resolve=0.5)
    assert verdict.verdict == "agrees", verdict
    assert p_of_kernels(meso, micro) > LEVEL


THEORIES: dict[str, tuple[Any, int]] = {
    "half": (lambda: paper(steps=8, rate=1.0, method="gd", batch=0.5), 800),
    "a tenth": (lambda: paper(steps=8, rate=0.5, method="gd", batch=0.1), 1200),
    "half, with replacement": (
        lambda: paper(steps=8, rate=1.0, method="gd", ratio=2.0, batch=0.5, replacement=True), 800
    ),
    "a tenth, with replacement": (
        lambda: paper(steps=8, rate=0.3, momentum=0.5, ratio=2.0, batch=0.1, replacement=True), 1200
    ),
    "relu": (lambda: paper("relu", "square", steps=8, rate=0.5, ratio=0.4, batch=0.1), 800),
    "softmax": (lambda: three_classes(steps=6, rate=0.7, method="gd", ratio=0.5, batch=0.5), 800),
    "teacher": (lambda: committee(steps=6, rate=0.5, decay=0.05, ratio=0.5, batch=0.1), 600),
    "linear": (lambda: paper("linear", "square", steps=8, rate=0.4, method="gd", ratio=0.5, batch=0.5), 1600),
    "linear, a tenth": (
        lambda: paper("linear", "square", steps=8, rate=0.1, method="gd", ratio=0.5, batch=0.1, replacement=True), 1600
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", THEORIES)
def test_the_theory_agrees_with_runs_and_that_of_the_full_batch_does_not(name: str) -> None:
    make, size = THEORIES[name]
    problem, runs = make(), 60
    start = ov.draw(problem, size, seed=2)
    macro = ov.solve(problem, start, accuracy=1e-2)
    meso = ov.sample(problem, start, runs=runs, seed=3, kernels=True)
    verdict = ov.compare(macro, meso, level=LEVEL, resolve=0.2, finite_size=False)
    assert verdict.verdict == "agrees", verdict
    # kernels of two times: six standard errors at some hundred points, rate 1e-6, beside the errors of the theory
    for kernel in ("V_theta", "V_omega"):
        error = meso.data[kernel].std("run", ddof=1) / np.sqrt(runs)
        difference = np.abs(macro.data[kernel] - meso.data[kernel].mean("run")) - macro.accuracy(kernel)
        assert float((difference - 6 * error - 1e-9).max()) < 0
    ignored = ov.solve(without_batches(problem), start, accuracy=1e-2)
    assert ov.compare(ignored, meso, level=LEVEL, finite_size=False).verdict == "disagrees"


@pytest.mark.parametrize("name", ["half", "a tenth", "a tenth, with replacement"])
def test_theories_with_an_error_are_rejected(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise of a gradient that is not divided by the batch; steps that do not remember which samples were used."""
    make, size = THEORIES[name]
    problem = make()
    start = ov.draw(problem, size, seed=2)
    meso = ov.sample(problem, start, runs=60, seed=3)
    with monkeypatch.context() as patch:
        patch.setattr(batches.Batches, "second_moment", property(lambda self: 1.0))
        wrong = ov.solve(problem, start, accuracy=1e-2)
    assert ov.compare(wrong, meso, level=LEVEL, finite_size=False).verdict == "disagrees"
    with monkeypatch.context() as patch:
        patch.setattr(paths.Paths, "draw_batch", lambda self, columns: None)
        wrong = ov.solve(problem, start, accuracy=1e-2)
    assert ov.compare(wrong, meso, level=LEVEL, finite_size=False).verdict == "disagrees"


@BOTH
def test_the_exact_theory_of_linear_problems_is_that_of_drawn_batches(replacement: bool) -> None:
    """Gaussian noise in place of multipliers; five standard errors over sets of points at a hundred numbers (1e-4)."""
    problem = paper(
        "linear", "square", steps=6, rate=0.4, method="gd", ratio=0.5, batch=0.4, replacement=replacement
    )  # fmt: skip
    start = ov.Start.from_overlaps(problem, [[0.5]], m=[[0.2, -0.1]])
    exact = ov.solve(problem, start)
    assert exact.data.attrs["averages"] == "exact moments, 28 points" and exact.accuracy("Q") < 1e-8
    task = FullBatchTask(problem, start)
    assert task.batches is not None
    found = []
    for seed in range(12):
        h = np.random.default_rng(seed).standard_normal((20_000, task.D))
        points = Points(h, multipliers=task.batches.limit(stratified(len(h), task.T, seed)))
        found.append(solve_recursion(task, points, followed=50))
    for name, ours in (("V_omega", exact.data["V_omega"].values[0, ..., 0, 0]), ("Q", exact.data["Q"].values[0])):
        drawn = np.array([getattr(kernels, name).reshape(ours.shape) for kernels in found])
        error = drawn.std(0, ddof=1) / np.sqrt(len(drawn)) + 1e-9
        assert (np.abs(drawn.mean(0) - ours) / error).max() < stats.t.isf(1e-6, 11)


@BOTH
def test_both_forms_are_equal(replacement: bool) -> None:
    problem = paper(steps=6, rate=0.7, batch=0.3, replacement=replacement)
    start = ov.Start.from_overlaps(problem, [[0.3]])
    stein, response = (ov.solve(problem, start, method=form, accuracy=1e-2) for form in ("stein", "response"))
    for name in (*stein.variables, "V_theta", "V_omega", "B_omega"):
        difference = float(np.abs(stein.data[name] - response.data[name]).max())
        assert difference <= stein.accuracy(name) + response.accuracy(name), name


def test_the_comparison_theorem_holds_with_batches() -> None:
    """Both processes draw batches; the law is that of the theorem for any duals that depend on fields before."""
    rate = ov.schedules.Steps([1.0], [0.8, 0.4])
    problem = ov.Problem(
        data=ov.GaussianMixture(gram=[[0.5]], labels=[3]),
        student=ov.Committee(1, "erf"),
        algorithm=ov.FullBatch(2, rate, ratio=2 / 3, batch=0.67),
    )
    start = ov.Start.from_weights(problem, student=[[1.0, 0.5]])
    found = ov.full_batch.check_theorem(problem, start, sigma=0.3, z=1.0, seed=3)
    assert found.verdict == "holds in law", found


def test_continuation_is_training_with_batches() -> None:
    """m Var at z² = −1 against runs of training, to 4.5 standard errors (1e-4 in all); that at z = 0 is not it."""
    problem, m, runs = paper("softplus", "square", steps=4, rate=0.4, method="gd", batch=0.3), 200, 1500
    start = small_start(problem, m)
    found = ov.full_batch.continued(problem, start, [2, 4], runs=runs, seed=1, progress=False)
    data = ov.sample(problem, start, [2, 4], runs=runs, seed=2, progress=False).data
    scores: dict[float, list[float]] = {-1.0: [], 0.0: []}
    for name in ("training_error", "Q", "m"):
        squares = m * (data[name] - data[name].mean("run")) ** 2
        for z2, kept in scores.items():
            at = found.sel(z2=z2)
            error = np.sqrt(at[f"variance_{name}_se"] ** 2 + squares.var("run", ddof=1) / runs)
            kept += np.ravel(np.abs(at[f"variance_{name}"] - squares.mean("run")) / error).tolist()
    assert max(scores[-1.0]) < 4.5 < max(scores[0.0])


def test_samples_are_counted(tmp_path: Any) -> None:
    problem = paper(steps=4, ratio=0.8, batch=0.3)
    start = ov.draw(problem, 20)  # 25 samples, 8 a step
    for result in (ov.solve(problem, start, [0, 2, 4], accuracy=0.1), ov.sample(problem, start, [0, 2, 4], runs=2)):
        assert result.data["samples"].dims == ("time",) and result.data["samples"].values.tolist() == [0, 16, 32]
        again = ov.load(result.save(tmp_path / "result.nc"))
        assert again.data["samples"].equals(result.data["samples"]) and again.problem == problem
    assert "on 8 of 25 samples" in ov.train(problem, start, runs=1).data.attrs["cost"]
    full = ov.sample(without_batches(problem), start, runs=1)
    assert full.data["samples"].values.tolist() == [0, 25, 50, 75, 100]
    limit = ov.solve(problem, ov.Start.from_overlaps(problem, [[0.1]]), accuracy=0.1)
    assert "samples" not in limit.data.coords  # there is no number of them
    assert repr(problem.algorithm).endswith("ratio 0.8, batch=0.3)")


def test_times_bound_the_work() -> None:
    long, short = (paper(steps=steps, batch=0.5) for steps in (40, 3))
    start = ov.draw(short, 30, seed=0, scale=0.3)
    for scale in (ov.sample, ov.train):
        a, b = scale(long, start, [0, 3], runs=3), scale(short, start, [0, 3], runs=3)
        np.testing.assert_array_equal(a.data["training_error"], b.data["training_error"])


def test_a_batch_of_nothing_in_a_component_runs() -> None:
    """One sample a step: whole families of samples are missing in it."""
    problem = three_classes(steps=5, batch=0.01)
    start = ov.draw(problem, 12)
    for scale in (ov.sample, ov.train):
        assert np.isfinite(scale(problem, start, runs=20).data["Q"]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(batch=0.0), "batch: expected a number above 0"),
        (dict(batch=-0.5), "batch: expected a number above 0"),
        (dict(batch=32), r"batch: expected a share of the samples, above 0 and at most 1, got 32; .* batch=n/m"),
        (dict(batch="half"), "batch: expected a number"),
        (dict(replacement=True), "replacement: has no effect on the full batch"),
        (dict(batch=0.5, replacement=1), "replacement: expected True or False"),
    ],
)
def test_batches_that_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ov.InputError, match=message):
        ov.FullBatch(steps=3, rate=0.1, **arguments)


def test_the_refinement_at_finite_size_refuses_batches() -> None:
    problem = paper(steps=2, batch=0.5)
    with pytest.raises(ov.InputError, match=r"batch: this theory follows the full batch.* use batch=None"):
        ov.full_batch.fluctuations(problem, ov.Start.from_overlaps(problem, [[0.1]]))
