"""Predicted bulk edges, outliers and alignments against closed forms and simulated matrices."""

from __future__ import annotations

import numpy as np
import pytest

import overlaps as ov
from mixtures import classes
from overlaps.spectra.batch import Batch
from overlaps.spectra.outliers import bbp, bulk_edge, count_outliers, mp_edge, predicted_outliers, visibility
from overlaps.spectra.weighted import weight_law


def softmax_problem(k=3, variance=0.1, weights=None) -> ov.Problem:
    return classes(k, variance, decay=0.0, weights=weights)


def origin(problem: ov.Problem, size: int) -> ov.Start:
    return ov.Start.from_weights(problem, np.zeros((problem.student.units, size)))


def aligned(problem: ov.Problem, size: int, own: float, rest: float, common: float = 0.0) -> ov.Start:
    """Students own μ_a − own/(k−1) Σ_{b≠a} μ_b plus noise with overlaps rest I + common 11ᵀ, as training makes them."""
    k = problem.student.units
    means = problem.data.mean_vectors(size)
    m = own * (np.eye(k) * k - 1) / (k - 1)
    noise = np.linalg.qr(np.random.default_rng(7).standard_normal((size - k, k)))[0].T
    root = np.linalg.cholesky(rest * np.eye(k) + common)
    rows = m @ means + np.concatenate([np.zeros((k, k)), root @ noise], axis=1)
    return ov.Start.from_weights(problem, np.sqrt(size) * rows)


def softmax_weights(point: ov.Start, batch: Batch, i: int, j: int, kind: str) -> np.ndarray:
    h = batch.inputs @ point.student.T / np.sqrt(point.size)
    pi = np.exp(h - h.max(axis=1, keepdims=True))
    pi /= pi.sum(axis=1, keepdims=True)
    if kind == "hessian":
        return pi[:, i] * ((i == j) - pi[:, j])
    return (pi[:, i] - (batch.labels == i)) * (pi[:, j] - (batch.labels == j))


def simulate(problem, point, samples, seed, block=(0, 0), kind="hessian"):
    batch = Batch.draw(problem, point, samples, seed=seed)
    f = softmax_weights(point, batch, *block, kind)
    return np.linalg.eigh((batch.inputs.T * f) @ batch.inputs / samples)


def test_closed_forms() -> None:
    """Constant weights: Marchenko-Pastur edges, and outliers where the closed map has them, however many there are."""
    problem = softmax_problem(4, 0.2, [0.4, 0.3, 0.2, 0.1])
    point, samples, c = origin(problem, 500), 2000, 3 / 16
    shown = predicted_outliers(problem, point, samples)
    ratio = (500 - 4) / samples
    assert shown.high == pytest.approx(c * mp_edge(0.2, ratio), rel=1e-9)
    assert shown.low == pytest.approx(c * 0.2 * (1 - ratio**0.5) ** 2, rel=1e-9)
    # ℓ = p/s = 2, 1.5, 1, 0.5 against √γ = 0.498: all four show, the last barely
    expected = [bbp(spike, ratio) for spike in (2.0, 1.5, 1.0, 0.5)]
    np.testing.assert_allclose(shown.values, [c * 0.2 * one.value for one in expected], rtol=1e-9)
    np.testing.assert_allclose(shown.lengths, [one.overlap for one in expected], rtol=1e-7)
    for mean in range(4):
        assert shown.alignment(shown.span.means[mean], 4) ** 2 == pytest.approx(expected[mean].overlap, rel=1e-7)
    assert bulk_edge(problem, point, samples) == shown.high
    assert predicted_outliers(problem, point, 1900).values.size == 3
    assert bbp(0.4, 0.25) == (mp_edge(1.0, 0.25), 0.0)
    # ten equal outliers, as at the origin of the figures of the paper (k = 10, λ = 10, n = 4 N)
    ten = predicted_outliers(softmax_problem(10), origin(softmax_problem(10), 1000), 4000)
    np.testing.assert_allclose(ten.values, np.full(10, 0.009 * bbp(1.0, 0.2475).value), rtol=1e-9)
    assert np.linalg.norm(ten.directions.T @ ten.directions - np.eye(10)) < 1e-9


@pytest.mark.parametrize("kind", ["hessian", "gradient"])
def test_edges_fluctuate_as_stated(kind) -> None:
    """150 pure-noise blocks with random weights: edge, width and spread give mean and spread of the largest eigenvalue.

    Tracy-Widom (mean −1.21, standard deviation 1.27) plus a normal variable; at N = 150 the limit law is a few tenths
    of a width off. The mean of 150 has an error of 0.15 widths. Passing the margin has a chance of 1e-3 each, of more
    than 3 in 150 of 2e-5.
    """
    problem, size, samples = softmax_problem(2, 1.0), 150, 450
    point = ov.Start.from_weights(problem, np.sqrt(size) * np.eye(2, size, 2))
    edge = weight_law(problem, point, samples, (0, 0), kind).edge
    tops = []
    for seed in range(150):
        batch = Batch.draw(problem, point, samples, seed=seed)
        f = softmax_weights(point, batch, 0, 0, kind)
        noise = batch.inputs[:, 4:]  # outside the span of means and students
        tops.append(np.linalg.eigvalsh((noise.T * f) @ noise / samples)[-1])
    apart = (np.array(tops) - edge.z) / edge.width
    assert abs(apart.mean() + 1.21) < 0.6
    assert apart.std() == pytest.approx(np.hypot(1.27, edge.spread / edge.width), rel=0.2)
    assert sum(count_outliers([top], edge.z, edge.margin) for top in tops) <= 3


def agree(samples: list, expected: float, slack: float) -> None:
    """The mean of eight samples within 4.5 standard errors (false alarms 0.3%) and a finite-size allowance."""
    error = np.std(samples, ddof=1) / np.sqrt(len(samples))
    assert abs(np.mean(samples) - expected) < 4.5 * error + slack


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("kind", ["hessian", "gradient"])
def test_outliers_against_simulation(kind, trained) -> None:
    """k = 3, λ = 10 at N = 400, n = 2, 5 and 10 N: outliers, edge, and what their vectors hold of all directions.

    Sums over the outliers are compared, since sampling splits those that are equal in the limit. Allowed beyond the
    sampling error: 2% for values, 3% for the edge, 0.02 for squared overlaps.
    """
    problem, size = softmax_problem(3, 0.1), 400
    point = aligned(problem, size, 1.2, 0.3) if trained else ov.draw(problem, size, seed=1)
    unit = np.concatenate([point.student / np.linalg.norm(point.student, axis=1)[:, None], point.means])
    for ratio in (2, 5, 10):
        samples = ratio * size
        shown = predicted_outliers(problem, point, samples, kind=kind)
        edge = weight_law(problem, point, samples, (0, 0), kind).edge
        clear = int((shown.values > shown.high + shown.high_margin).sum())
        assert clear >= 1 or ratio == 2  # the trained G-matrix needs more samples to show its mean
        runs = [simulate(problem, point, samples, seed, kind=kind) for seed in range(8)]
        agree([values[-1 - shown.values.size] for values, _ in runs], edge.z - 1.21 * edge.width, 0.03 * edge.z)
        if not clear:
            continue
        agree([values[-clear:].sum() for values, _ in runs], shown.values[:clear].sum(), 0.02 * shown.values[0])
        for a, direction in zip(unit, np.concatenate([shown.span.students, shown.span.means]), strict=True):
            expected = shown.alignment(direction, clear) ** 2
            agree([float(((a @ vectors[:, -clear:]) ** 2).sum()) for _, vectors in runs], expected, 0.02)


@pytest.mark.parametrize("kind, table", [("hessian", {10: 0.85, 50: 0.93}), ("gradient", {10: 0.81, 50: 0.88})])
def test_alignment_with_samples_of_the_paper(kind, table) -> None:
    """k = 10, λ = 10, β = 0.01, N = 500 at t = 50: ρ(w, E_10) against one sample, and values measured elsewhere.

    At N = 500 vectors at the edge of the bulk still hold a few per cent, so samples show somewhat more than the limit.
    """
    problem, size = softmax_problem(10), 500
    point = aligned(problem, size, 2.107, 0.245, 0.03)
    for ratio, measured in table.items():
        shown = predicted_outliers(problem, point, ratio * size, kind=kind)
        expected = shown.alignment_of_student(0, 10)
        assert expected == pytest.approx(measured, abs=0.03)
        if ratio == 10:
            _, vectors = simulate(problem, point, ratio * size, 0, kind=kind)
            top = vectors[:, -10:].T @ point.student[0]
            assert np.linalg.norm(top) / np.linalg.norm(point.student[0]) == pytest.approx(expected, abs=0.04)
    assert predicted_outliers(problem, point, 2 * size, kind="gradient").standing == 0


@pytest.mark.parametrize("kind", ["hessian", "gradient"])
def test_blocks_of_two_classes(kind) -> None:
    """Off the diagonal weights are negative (Hessian) or of both signs (G-matrix): both edges and the outliers."""
    problem, size = softmax_problem(3, 0.1), 400
    point, samples = aligned(problem, size, 1.2, 0.3), 2000
    shown = predicted_outliers(problem, point, samples, block=(0, 1), kind=kind)
    below, above = int((shown.values < shown.low).sum()), int((shown.values > shown.high).sum())
    assert below + above == shown.values.size and below >= 1
    law = weight_law(problem, point, samples, (0, 1), kind)
    low, high = law.mirrored().edge, law.edge
    runs = [simulate(problem, point, samples, seed, (0, 1), kind)[0] for seed in range(8)]
    agree([values[:below].sum() for values in runs], np.sort(shown.values)[:below].sum(), 0.02 * abs(shown.values[0]))
    agree([values[below] for values in runs], -low.z + 1.21 * low.width, 0.03 * low.z)
    agree([values[-1 - above] for values in runs], high.z - 1.21 * high.width, 0.03 * abs(high.z))
    again = predicted_outliers(problem, point, samples, block=(1, 0), kind=kind)
    np.testing.assert_allclose(again.values, shown.values, rtol=1e-9)


def test_components_of_different_noise() -> None:
    """Noise of 0.1 and 0.6 in two classes: edges and outliers from the law of s f."""
    problem, size, samples = softmax_problem(2, [0.1, 0.6]), 300, 900
    point = aligned(problem, size, 0.8, 0.4)
    shown = predicted_outliers(problem, point, samples, kind="gradient")
    values = np.mean([simulate(problem, point, samples, seed, kind="gradient")[0] for seed in range(4)], axis=0)
    count = shown.values.size
    np.testing.assert_allclose(values[::-1][:count], shown.values, rtol=0.05)
    assert values[::-1][count] == pytest.approx(shown.high, rel=0.05)


def test_unbounded_weights() -> None:
    """Square loss: G-weights have no largest value, and the edge is that of the largest of n samples.

    Over 20 samples the largest eigenvalue scatters with the largest weight; its median is predicted to 15%.
    """
    problem = ov.Problem(
        data=ov.GaussianInputs(), teacher=ov.Committee(1, "linear"), student=ov.Committee(1, "linear"),
        algorithm=ov.OnlineSGD(0.1),
    )  # fmt: skip
    size, samples = 200, 800
    point = ov.Start.from_weights(problem, np.sqrt(size) * np.eye(1, size), np.sqrt(size) * np.eye(1, size, 1))
    shown = predicted_outliers(problem, point, samples, kind="gradient")
    tops = []
    for seed in range(20):
        X = Batch.draw(problem, point, samples, seed=seed).inputs
        noise = X[:, 2:]
        tops.append(np.linalg.eigvalsh((noise.T * (X[:, 0] - X[:, 1]) ** 2) @ noise / samples)[-1])
    assert np.median(tops) == pytest.approx(shown.high, rel=0.15)
    # the spike is u = (1, −1)/√2 with E[f u²] = 6 over a bulk of 2
    assert abs(shown.directions[:, 0] @ shown.span.students[0]) == pytest.approx(0.5**0.5, abs=1e-6)


def test_visibility() -> None:
    """At the origin an outlier shows if ℓ = p/s > √γ: n > (N − r)/ℓ²."""
    problem = softmax_problem(3, 0.5, [0.5, 0.3, 0.2])
    point = origin(problem, 603)
    for count, spike in ((1, 1.0), (2, 0.6), (3, 0.4)):
        seen = visibility(problem, point, 1000, count)
        assert seen.visible == min(count, 1)
        assert seen.needed == pytest.approx(600 / spike**2, rel=2e-3)
        np.testing.assert_allclose(seen.population[-1], 2 / 9 * 0.5 * (1 + spike), rtol=1e-9)
        assert visibility(problem, point, seen.needed, count).visible == count
    negative = visibility(problem, point, 1000, 2, block=(0, 1))
    assert negative.needed == pytest.approx(600 / 0.6**2, rel=2e-3)
    assert (negative.population < 0).all()
    trained = aligned(problem, 603, 1.2, 0.3)
    many = visibility(problem, trained, 1000, 3, kind="gradient")
    assert many.needed is not None
    shown = predicted_outliers(problem, trained, many.needed, kind="gradient")
    assert shown.standing == 3
    assert predicted_outliers(problem, trained, int(0.99 * many.needed), kind="gradient").standing == 2


def test_a_spike_below_the_bulk_never_shows() -> None:
    problem = softmax_problem(3, 0.2)
    assert visibility(problem, aligned(problem, 300, 1.2, 0.3), 1000, 6).needed is None


@pytest.mark.parametrize("classes, scale", [(2, 20.0), (3, 10.0)])
def test_edges_of_large_weights(classes: int, scale: float) -> None:
    """Weights far apart: few samples have probabilities away from 0 and 1, which coarse nodes miss (edges 70 % off).

    The mean largest eigenvalue of five samples, of standard error near width/2, within 3 widths: no false alarm in 1e8.
    """
    problem = softmax_problem(classes, 1.0)
    point = ov.draw(problem, 150, scale=scale)
    edge = weight_law(problem, point, 900, (0, 0), "hessian").edge
    top = np.mean([simulate(problem, point, 900, seed)[0][-1] for seed in range(5)])
    assert abs(top - (edge.z - 1.21 * edge.width)) < 3 * edge.width + 3 * edge.spread


def test_what_does_not_converge_is_refused() -> None:
    """Six ReLU units of huge weights: second derivatives sit near planes that no affordable rule resolves."""
    student = ov.Committee(6, "relu", train_readout=True)
    data = ov.GaussianMixture(means=3, variance=1.0, labels=[0, 1, 1])
    problem = ov.Problem(data=data, student=student, loss="logistic", algorithm=ov.OnlineSGD(1.0))
    point = ov.draw(problem, 150, scale=100.0)
    with pytest.raises(ov.NumericalError, match=r"block \(w_0, w_0\): averages .* still change .* use smaller weights"):
        predicted_outliers(problem, point, 900)


def test_fewer_samples_than_inputs() -> None:
    """n < N: zero is an eigenvalue, the lower edge; the upper one and the outliers are as ever."""
    problem = softmax_problem(3, 0.1)
    shown = predicted_outliers(problem, origin(problem, 403), 200)
    assert shown.low == 0.0
    assert shown.high == pytest.approx(2 / 9 * mp_edge(0.1, 2.0), rel=1e-9)
    np.testing.assert_allclose(shown.values, np.full(3, 2 / 90 * bbp(10 / 3, 2.0).value), rtol=1e-9)


def test_count_outliers() -> None:
    assert count_outliers([5.0, 3.0, 1.0], 2.5) == 2
    assert count_outliers([5.0, 3.0, 1.0], 2.5, margin=1.0) == 1
    assert count_outliers(np.zeros(4), 0.0) == 0


def test_refusals() -> None:
    problem = softmax_problem(3)
    point = ov.draw(problem, 40)
    with pytest.raises(ov.InputError, match=r"this start has none; use start\.at_size"):
        predicted_outliers(problem, ov.Start.from_overlaps(problem, Q=np.eye(3)), 100)
    with pytest.raises(ov.InputError, match="samples: expected at least 2, got 0"):
        predicted_outliers(problem, point, 0)
    with pytest.raises(ov.InputError, match="block: expected at most 2, got 3"):
        bulk_edge(problem, point, 100, block=(0, 3))
    with pytest.raises(ov.InputError, match=r"block: expected a list of students, a pair \(i, j\), got 0"):
        bulk_edge(problem, point, 100, block=0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ov.InputError, match="size above 6"):
        bulk_edge(problem, ov.draw(problem, 6), 100)
    with pytest.raises(ov.InputError, match="unknown kind"):
        bulk_edge(problem, point, 100, kind="fisher")  # pyright: ignore[reportArgumentType]
    still = softmax_problem(3, 0.0)
    with pytest.raises(ov.InputError, match="there is no bulk"):
        bulk_edge(still, ov.draw(still, 40), 100)
    with pytest.raises(ov.InputError, match="ratio: expected a number of at least 0"):
        mp_edge(1.0, -1.0)
    with pytest.raises(ov.InputError, match="not zero"):
        predicted_outliers(problem, point, 100).alignment(np.zeros(6), 1)
