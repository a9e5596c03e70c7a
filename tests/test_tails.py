"""Inputs with heavy tails: the rule of theory against integrals, and training, chain and theory against SGD by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import erf, gammaln
from scipy.stats import kstest, norm, t

import overlaps as ov
from contracts.cases import p_value
from overlaps.data.tail_rule import tail_rule
from overlaps.online.micro import Weights
from overlaps.online.steps import blocked, direct

Array = NDArray[np.float64]
BUDGET = 5e-5  # chance of a false alarm of this file, were seeds free
LEVEL = BUDGET / 7


def problem(degrees: float, student: Any = "erf", teacher: Any = "erf", **rest: Any) -> ov.Problem:
    data = ov.StudentInputs(degrees, values=rest.pop("values", 12))
    algorithm = rest.pop("algorithm", ov.OnlineSGD(0.5))
    nets = {"teacher": ov.Committee(1, teacher), "student": ov.Committee(1, student)}
    return ov.Problem(data=data, algorithm=algorithm, **nets, **rest)


def by_hand(degrees: float | None, start: ov.Start, time: float, runs: int, batch: int = 1, seed: int = 0) -> Array:
    """Q and R at a time of runs of SGD written out, (runs, 2), on inputs of Student's t law, or Gaussian ones."""
    assert start.student is not None and start.teacher is not None
    rng = np.random.default_rng(seed)
    W, B = np.repeat(start.student, runs, axis=0), start.teacher[0]
    N = B.size
    for _ in range(int(time * N)):
        change = np.zeros_like(W)
        for _ in range(batch):
            x = rng.standard_normal((runs, N))
            if degrees is not None:
                x /= np.sqrt(rng.chisquare(degrees, runs) / (degrees - 2))[:, None]
            lam, nu = (W * x).sum(1) / np.sqrt(N), x @ B / np.sqrt(N)
            miss = erf(lam / np.sqrt(2)) - erf(nu / np.sqrt(2))
            change += (np.sqrt(2 / np.pi) * np.exp(-(lam**2) / 2) * miss)[:, None] * x / np.sqrt(N) / batch
        W -= 0.5 * change
    return np.stack([(W**2).sum(1), W @ B], axis=1) / N


def test_inputs_follow_students_law() -> None:
    """Coordinates of a training run, and of a batch of samples."""
    p = problem(5.0)
    start = ov.draw(p, 8, seed=0)

    class Inputs:
        times = None

        def variables(self, *_: Any) -> dict[str, tuple[str, ...]]:
            return {"nothing": ()}

        def begin(self, problem: Any, start: Any, redraw: Any, seed: int) -> Inputs:
            self.inputs = redraw(20_000)[0]
            return self

        def observe(self, W: Any, v: Any) -> dict[str, Any]:
            return {"nothing": np.zeros(())}

    seen = Inputs()
    ov.train(p, start, [1 / 8], runs=1, seed=5, observe=seen, progress=False)
    for X in (seen.inputs, ov.spectra.Batch.draw(p, start, 20_000, seed=1).inputs):
        scaled = X[:, 3] * np.sqrt(5 / 3)  # of variance one in place of ν/(ν − 2)
        assert kstest(scaled, t(5).cdf).pvalue > LEVEL
        assert kstest(scaled, norm(scale=np.sqrt(5 / 3)).cdf).pvalue <= LEVEL
        # one variance for the whole sample: coordinates are uncorrelated, but long ones come together
        together = np.corrcoef(np.log(X[:, 2] ** 2), np.log(X[:, 3] ** 2))[0, 1]
        assert together > norm.isf(LEVEL) / np.sqrt(len(X))


@pytest.mark.parametrize("batch", [1, 3])
def test_training_and_chain_are_sgd_by_hand(batch: int) -> None:
    """Equal in law at a small size; runs on Gaussian inputs are told apart."""
    p = problem(5.0, algorithm=ov.OnlineSGD(0.5, batch=batch))
    start, runs = ov.draw(p, 24, seed=3, scale=0.7), 300
    hand = by_hand(5.0, start, 2.0, runs, batch)
    for scale in (ov.train, ov.sample):
        found = scale(p, start, [2.0], runs=runs, seed=1, progress=False).data
        both = np.stack([found["Q"].values.ravel(), found["R"].values.ravel()], axis=1)
        assert p_value(both, hand, LEVEL) > LEVEL
        if batch == 1 and scale is ov.train:
            assert p_value(both, by_hand(None, start, 2.0, runs), LEVEL) <= LEVEL


def test_theory_is_the_limit_of_sgd_by_hand() -> None:
    """At 3.5 degrees, where E s² is infinite, extrapolated from two sizes; Gaussian theory is rejected."""
    p, sizes, runs = problem(3.5), (100, 200), 400
    means, errors, theory, stated = [], [], [], 0.0
    for size in sizes:
        start = ov.draw(p, size, seed=3, scale=0.7)
        hand = by_hand(3.5, start, 2.0, runs)
        solved = ov.solve(p, start, [2.0])
        theory.append(solved.data["R"].values.item())
        stated = solved.accuracy("R")
        means.append(hand[:, 1].mean() - theory[-1])
        errors.append(hand[:, 1].std() / np.sqrt(runs))
    left = 2 * means[1] - means[0]  # what does not vanish as 1/N
    allowed = norm.isf(LEVEL / 2) * np.hypot(2 * errors[1], errors[0]) + stated
    assert abs(left) < allowed
    gaussian = replace(p, data=ov.GaussianInputs())
    start = ov.draw(p, sizes[-1], seed=3, scale=0.7)
    assert abs(ov.solve(gaussian, start, [2.0]).data["R"].values.item() - theory[-1]) > 2 * allowed


def test_blocks_are_the_same_steps() -> None:
    """Steps of 32 samples at once draw the variances in the order of single ones."""
    p = problem(5.0, values=4)
    start, found = ov.draw(p, 40, seed=0), []
    for way in (direct, blocked):
        run = Weights(p, start).copy_with(np.random.Generator(np.random.SFC64(3)))
        run.take_steps = way
        run.advance(100)
        found.append(run.W)
    np.testing.assert_allclose(found[0], found[1], atol=1e-12)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "arcsine": lambda s: np.arcsin(s / (1 + s)),
    "drift of erf": lambda s: s / np.sqrt(1 + 2 * s) / (1 + s),
    "noise of erf": lambda s: s / np.sqrt(1 + s),
    "length": np.sqrt,
}


@pytest.mark.parametrize("degrees", [2.5, 3.0, 3.7, 5.0, 20.0, 90.0])
def test_the_rule_is_the_integral(degrees: float) -> None:
    """Moments exactly, functions such as occur in the averages to an error that falls with the number of values."""

    def integral(f: Callable[[Any], Any]) -> float:
        top = 4 * np.sqrt(degrees / 2) + 8

        def density(z: float) -> float:
            return 2 * np.exp((degrees - 1) * np.log(z) - z * z - gammaln(degrees / 2))

        found = quad(
            lambda z: f((degrees - 2) / (2 * z * z)) * density(z), 0, top, points=[np.sqrt(degrees / 2)], limit=500
        )
        return float(found[0])

    for name, f in FUNCTIONS.items():
        exact = integral(f)
        errors = [abs(p @ f(s) - exact) for p, s in (tail_rule(degrees, n) for n in (4, 8, 16, 32))]
        assert errors[1] < 2e-3 and errors[3] < 1e-8, name
        assert errors[2] < 1e-5 and errors[3] < max(0.1 * errors[1], 1e-10), name
    for count in (3, 12, 60):
        p, s = tail_rule(degrees, count)
        assert (p > 0).all() and (np.diff(s) < 0).all()
        assert p.sum() == pytest.approx(1, abs=1e-14) and p @ s == pytest.approx(1, abs=1e-10)
        if degrees > 4:
            assert p @ s**2 == pytest.approx((degrees - 2) / (degrees - 4), rel=1e-10)


def test_tails_of_many_degrees_are_gaussian() -> None:
    """Weights are finite however many degrees there are, and moments those of the law."""
    for degrees in (400.0, 1e5, 1e6):
        p, s = tail_rule(degrees, 12)
        assert np.isfinite(p).all() and abs(p @ s - 1) < 1e-12
        assert p @ s**2 == pytest.approx((degrees - 2) / (degrees - 4), rel=1e-12)


@pytest.mark.parametrize("degrees", [2.6, 3.0, 5.0, 9.0])
def test_the_stated_accuracy_counts_the_values(degrees: float) -> None:
    """Against forty values: the error is within what is stated, which is at most a hundred times as much."""
    start = ov.draw(problem(degrees), 100, seed=1, scale=0.7)
    exact = ov.solve(problem(degrees, values=40), start, [1.0, 8.0])
    for values in (6, 8):
        few = ov.solve(problem(degrees, values=values), start, [1.0, 8.0])
        for name in ("Q", "R", "error"):
            off = float(np.abs(few.data[name] - exact.data[name]).max())
            assert 0.01 * few.accuracy(name) < off < few.accuracy(name), (name, values)
    with pytest.raises(ov.NumericalError, match=r"^macro: with 4 values of the variance .*use more values="):
        ov.solve(problem(degrees, values=4), start, [1.0, 8.0], accuracy=1e-9)


def test_averages_state_what_the_values_change() -> None:
    few, many = (ov.gaussian_averages(problem(3.0, values=n), [[1.0, 0.3], [0.3, 1.2]]) for n in (4, 40))
    for name in ("D", "S", "error"):
        off = np.abs(getattr(few, name) - getattr(many, name)).max()
        assert 0.01 * few.accuracy[name] < off < few.accuracy[name] and many.accuracy[name] < 1e-8


@pytest.mark.parametrize(
    ("student", "teacher", "power"),
    [("linear", "linear", 2), ("relu", "erf", 2), ("erf", "relu", 1.5), ("erf", "erf", 0.5)],
)
def test_noise_of_infinite_variance_is_refused(student: str, teacher: str, power: float) -> None:
    """The power of s with which s S(s C) grows is measured, and decides from which degrees on there is a limit."""
    C, p = np.array([[1.0, 0.3], [0.3, 1.2]]), problem(9.0, student, teacher)
    noise = replace(p, data=ov.GaussianInputs())
    S = [float(s * ov.gaussian_averages(noise, s * C).S[0, 0]) for s in (1e4, 1e6)]
    assert np.log(S[1] / S[0]) / np.log(100) == pytest.approx(power, abs=0.01)
    least = max(2 * power, 2.0)
    problem(least + 0.1, student, teacher)
    if least > 2:
        with pytest.raises(ov.InputError, match=rf"^degrees: .* use more than {least:g}, or a bounded activation"):
            problem(least, student, teacher)
        problem(least, student, teacher, algorithm=ov.GradientFlow(0.5))  # has no noise
