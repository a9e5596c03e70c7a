"""Training on the rows of a data set: against a NumPy loop, against exact fourth moments, against Gaussian theory.

Three tests are statistical, each at LEVEL = 1e-4 with fixed seeds, so the false-alarm rate of this file is 3e-4.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import erf

import overlaps as ov
from overlaps.data.digits import PATH
from overlaps.online import micro
from overlaps.trajectory.points import points, relabelled

LEVEL = 1e-4
RNG = np.random.default_rng(0)
X = RNG.exponential(size=(200, 6)) @ RNG.standard_normal((6, 6))
DIGITS = ov.Samples(PATH)


def problem(data: Any = None, units: int = 2, rate: float = 0.5, activation: str = "erf", **change: Any) -> ov.Problem:
    return ov.Problem(
        data=ov.Samples(X) if data is None else data,
        teacher=ov.Committee(change.pop("teachers", units), activation, change.pop("teacher_readout", 1.0)),
        student=ov.Committee(units, activation, change.pop("readout", 1.0), change.pop("train_readout", False)),
        algorithm=ov.OnlineSGD(rate, change.pop("readout_rate", None), change.pop("decay", 0.0)),
        **change,
    )


# --- the data model --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("centre", [True, False])
def test_rows_have_the_spectrum_as_covariance(centre: bool) -> None:
    data = ov.Samples(X, centre=centre)
    assert data.rows.T @ data.rows / 200 == pytest.approx(np.diag(data.eigenvalues), abs=1e-12)
    assert np.mean(data.eigenvalues) == pytest.approx(1)
    assert np.allclose(data.rows.mean(0), 0, atol=1e-12) == centre
    # distances do not change but for the unit
    original = np.linalg.norm(X[1:] - X[:-1], axis=1)
    unit = np.sqrt(np.mean((X - X.mean(0) if centre else X) ** 2))
    assert np.linalg.norm(np.diff(data.rows, axis=0), axis=1) * unit == pytest.approx(original)
    assert data.spectrum == ov.Spectrum.from_data(X, centre) and data.spectrum.source in repr(data)
    assert data.fractions.tolist() == list(data.spectrum.fractions or ())
    assert data.dimensions(6).tolist() == [1] * 6


def test_equal_data_are_equal(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", X)
    np.savetxt(tmp_path / "a.csv", X, delimiter=",", fmt="%.17g")
    same = [ov.Samples(X), ov.Samples(X.tolist()), ov.Samples(tmp_path / "a.npy"), ov.Samples(str(tmp_path / "a.csv"))]
    assert len(set(same)) == 1 and all(a == same[0] for a in same)
    others = [ov.Samples(X, centre=False), ov.Samples(X[:-1]), ov.Samples(X[::-1]), ov.Samples(2 * X)]
    assert len({same[0], *others}) == 5


def test_specs(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", X)
    p = problem(ov.Samples(tmp_path / "a.npy", centre=False))
    text = p.to_toml()
    again = ov.Problem.from_toml(text)
    assert again == p and hash(again) == hash(p) and again.to_toml() == text
    assert isinstance(again.data, ov.Samples) and not again.data.centre
    short = ov.Problem.from_toml(text.replace(f'digest = "{p.data.digest}"\n', ""))  # pyright: ignore
    assert short == p
    with pytest.raises(ov.InputError, match=r"source: an array cannot be written to TOML; save it with numpy.save"):
        problem().to_toml()
    assert str(problem()) == repr(problem())
    np.save(tmp_path / "a.npy", X + 1)
    with pytest.raises(ov.InputError, match=r"spec.data: digest: .*a.npy is not the data this was written for"):
        ov.Problem.from_toml(text)
    (tmp_path / "a.npy").unlink()
    with pytest.raises(ov.InputError, match=r"spec.data: source: no file"):
        ov.Problem.from_toml(text)


def test_data_that_change_after_they_were_built(tmp_path: Path) -> None:
    for changed in (X + 1, X[:-1], np.vstack([X, X]), X[:, :-1], np.column_stack([X, X[:, 0] ** 2])):
        np.save(tmp_path / "a.npy", X)
        data = ov.Samples(tmp_path / "a.npy")
        np.save(tmp_path / "a.npy", changed)
        with pytest.raises(ov.InputError, match=r"source: .*a.npy has changed since this was built"):
            _ = data.rows


def test_refusals() -> None:
    with pytest.raises(ov.InputError, match="size: these samples have 6 dimensions, so the size is 6, not 7"):
        ov.draw(problem(), 7)
    with pytest.raises(ov.InputError, match="digest: expected text"):
        ov.Samples(X, digest=3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ov.InputError, match=r"data: expected GaussianInputs or .*Samples\b.*, got array"):
        problem(X)
    with pytest.raises(ov.InputError, match="start: micro needs weights"):
        p = problem(units=1)
        ov.train(p, ov.Start.from_overlaps(p, *[np.full((6, 1, 1), 0.2)] * 3, size=6), [1.0])


# --- the runs --------------------------------------------------------------------------------------------------------


def by_hand(p: ov.Problem, start: ov.Start, steps: int, run: int) -> tuple[np.ndarray, np.ndarray]:
    """The weights and readout after `steps` steps of a plain loop over the same rows and the same noise."""
    assert isinstance(p.data, ov.Samples) and start.student is not None and start.teacher is not None
    rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence([5, 1]).spawn(run + 1)[run]))
    rows, N = p.data.rows, start.student.shape[1]
    W, v = start.student.copy(), start.v.copy()
    rate, decay, readout_rate = p.algorithm.rate, p.algorithm.decay, p.algorithm.readout_rate
    for _ in range(steps):
        x = rows[rng.integers(0, len(rows))]
        noise = p.label_noise * rng.standard_normal() if p.label_noise else 0.0
        lam = W @ x / np.sqrt(N)
        miss = v @ erf(lam / np.sqrt(2)) - start.u @ erf(start.teacher @ x / np.sqrt(2 * N)) - noise
        slope = np.sqrt(2 / np.pi) * np.exp(-(lam**2) / 2)
        new_v = (1 - readout_rate * decay / N) * v - readout_rate / N * miss * erf(lam / np.sqrt(2))
        W = (1 - rate * decay / N) * W - rate / np.sqrt(N) * miss * np.outer(v * slope, x)
        v = new_v if p.student.train_readout else v
    return W, v


@pytest.mark.parametrize("units", [3, micro.BLOCKED_FROM])
def test_runs_are_those_of_a_plain_loop(units: int) -> None:
    """Same rows, same noise, same steps: overlaps and the mean error over all rows, without label noise.

    Few units are trained by the direct engine, many by the blocked one.
    """
    readout = np.linspace(0.5, 0.9, units) * np.sqrt(3 / units)
    p = problem(
        units=units, readout=readout, train_readout=True, readout_rate=0.3, decay=0.2, label_noise=0.1, teachers=2
    )
    assert isinstance(p.data, ov.Samples)
    start = ov.draw(p, 6, seed=1, scale=0.5)
    assert start.student is not None and start.teacher is not None
    times = np.array([0, 1, 50, 200]) / 6
    result = ov.train(p, start, times, runs=2, seed=5, levels=True, progress=False)
    rows = p.data.rows
    for run in range(2):
        for i, steps in enumerate((0, 1, 50, 200)):
            W, v = by_hand(p, start, steps, run)
            fields = erf(rows @ W.T / np.sqrt(12)) @ v - erf(rows @ start.teacher.T / np.sqrt(12)) @ start.u
            at = result.data.isel(run=run, time=i)
            assert float(at["error"]) == pytest.approx(0.5 * np.mean(fields**2), rel=1e-9)
            assert at["Q"].values == pytest.approx(W * p.data.eigenvalues @ W.T / 6, rel=1e-9)
            assert at["v"].values == pytest.approx(v, rel=1e-9)


def value(lam, nu, c, v):
    return np.log(np.cosh(np.sum(v * lam) - np.sum(nu)))


def gradient(lam, nu, c, v):
    t = np.tanh(np.sum(v * lam) - np.sum(nu))
    return v * t, lam * t


def test_error_of_a_user_written_loss_is_its_mean() -> None:
    p = problem(units=2, teachers=1, loss=ov.Loss(value, gradient, "log-cosh"), readout=0.7)
    assert isinstance(p.data, ov.Samples)
    start = ov.draw(p, 6, seed=2)
    assert start.student is not None and start.teacher is not None
    runs = ov.train(p, start, [0.0, 5.0], runs=2, progress=False)
    miss = p.data.rows @ (0.7 * start.student.sum(0) - start.teacher[0]) / np.sqrt(6)
    assert runs.data["error"].values[:, 0] == pytest.approx(np.full(2, np.mean(np.log(np.cosh(miss)))), rel=1e-12)
    assert np.all(runs.data["error"].values[:, 1] < runs.data["error"].values[:, 0])
    assert runs.accuracy("error") == 0


def test_divergence_is_named() -> None:
    p = problem(units=1, activation="linear", rate=20.0)
    with pytest.raises(ov.NumericalError, match=r"micro: an overlap grew without bound: .* in run . at time"):
        ov.train(p, ov.draw(p, 6), [0.0, 200.0], runs=2, progress=False)


# --- theory ----------------------------------------------------------------------------------------------------------


def test_theory_takes_them_as_gaussian_and_says_so(tmp_path: Path) -> None:
    p = problem()
    start, times = ov.draw(p, 6, seed=1, scale=0.5), [0.0, 0.5, 2.0]
    same = problem(ov.GaussianInputs(ov.Spectrum.from_data(X)))
    pairs = [(ov.solve(q, start, times), ov.sample(q, start, times, runs=3, progress=False)) for q in (p, same)]
    for mine, gaussian in zip(*pairs, strict=True):
        for name in ("Q", "R", "error"):
            assert np.array_equal(mine.data[name], gaussian.data[name])
        assert "inputs: taken as Gaussian, with the covariance of 200 samples x 6 columns" in repr(mine)
        assert gaussian.data.attrs["inputs"] == "Gaussian" and "inputs" not in repr(gaussian)
    runs = ov.train(p, start, times, runs=3, progress=False)
    assert "inputs: rows of 200 samples x 6 columns" in repr(runs)
    assert runs.data.attrs["averages"] == "mean over all rows"
    again = ov.load(runs.save(tmp_path / "runs.nc"))
    assert repr(again) == repr(runs) and again.problem is None


def test_saved_runs_outlive_their_data(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", X)
    p = problem(ov.Samples(tmp_path / "a.npy"))
    saved = ov.solve(p, ov.draw(p, 6), [0.0, 1.0]).save(tmp_path / "a.nc")
    assert ov.load(saved).problem == p
    (tmp_path / "a.npy").unlink()
    again = ov.load(saved)
    assert again.problem is None and again.time.tolist() == [0.0, 1.0]


def test_a_gap_to_real_data_is_no_finite_size_effect() -> None:
    """There is no N/2 of a data set, so `compare` says that it was not measured."""
    p = problem(units=1)
    start, times = ov.draw(p, 6, seed=1, scale=0.5), [0.0, 3.0, 10.0]
    verdict = ov.compare(ov.solve(p, start, times), ov.train(p, start, times, runs=200, progress=False), progress=False)
    assert verdict.verdict == "disagrees"
    assert "there is no start at N/2 = 3 (size: these samples have 6 dimensions" in verdict.reason


# --- digits ----------------------------------------------------------------------------------------------------------


def p_value(a: ov.Trajectory, b: ov.Trajectory) -> float:
    """Relabelling test of equality in law; exact level."""
    x, y = points(a).values, points(b).values
    alive = np.concatenate([x, y]).std(0) > 1e-12
    return float(relabelled(x[:, alive], y[:, alive], LEVEL, seed=0, repeats=19_999)[0].min())


def mean_errors(rows: np.ndarray, W: np.ndarray, B: np.ndarray, rate: float, stops: list[int]) -> np.ndarray:
    """Mean error of a linear student on rows drawn with replacement: E[(w − b)(w − b)ᵀ], step by step, exactly."""
    n, N = rows.shape
    step, C = rate / N, rows.T @ rows / n
    M = np.outer(W - B, W - B)
    errors: list[float] = []
    for i in range(max(stops) + 1):
        if i in stops:
            errors.append(0.5 * float(np.trace(C @ M)) / N)
        fourth = (rows.T * np.einsum("ri,ri->r", rows @ M, rows)) @ rows / n
        M = M - step * (C @ M + M @ C) + step**2 * fourth
    return np.array(errors)


def test_linear_student_at_a_large_rate_against_exact_fourth_moments() -> None:
    """At η = 0.8 after 3 N steps; the exact means of rows and of Gaussian inputs differ there by a few per cent."""
    p = problem(DIGITS, 1, 0.8, "linear")
    start = ov.draw(p, 61, seed=0, scale=0.5)
    assert start.student is not None and start.teacher is not None
    stops = [30, 61, 183]
    exact = mean_errors(DIGITS.rows, start.student[0], start.teacher[0], 0.8, stops)
    errors = ov.train(p, start, np.array(stops) / 61, runs=2000, progress=False).data["error"].values
    z = (errors.mean(0) - exact) / (errors.std(0, ddof=1) / np.sqrt(2000))
    assert np.abs(z).max() < 4.2  # P(|z| > 4.2) three times over is below LEVEL


def test_linear_student_at_a_small_rate_agrees_with_theory() -> None:
    """To first order in the rate a linear student knows second moments only, and these are the theory's."""
    p = problem(DIGITS, 1, 0.02, "linear")
    start, times = ov.draw(p, 61, seed=0, scale=0.5), ov.logtimes(1.0, 200.0, 8)
    theory, runs = ov.solve(p, start, times), ov.train(p, start, times, runs=60, progress=False)
    verdict = ov.compare(theory, runs, level=LEVEL, resolve=0.03, progress=False)
    assert verdict.verdict == "agrees", verdict
    error = runs.data["error"].mean("run").values
    assert error == pytest.approx(theory.data["error"].values[0], rel=0.02)
    assert error[-1] < 0.05 * error[0]
    Q, R = runs.data["Q"].values[..., 0, 0], runs.data["R"].values[..., 0, 0]
    T = float(runs.data["T"].values[0, 0])
    assert runs.data["error"].values == pytest.approx((Q - 2 * R + T) / 2, rel=1e-9)


def test_erf_committee_parts_from_gaussian_theory() -> None:
    """On digits two erf units end up at 0.91 of the error that Gaussian inputs of the same covariance leave at t = 30.

    The same size, start and number of runs on Gaussian inputs agree with the overlap chain: the gap is the data's.
    """
    p = problem(DIGITS, 2, 0.1)
    gaussian = problem(ov.GaussianInputs(DIGITS.spectrum), 2, 0.1)
    start, times = ov.draw(p, 61, seed=0, scale=0.5), [10.0, 30.0]
    chain = ov.sample(p, start, times, runs=100, progress=False)
    control = ov.train(gaussian, start, times, runs=100, progress=False)
    runs = ov.train(p, start, times, runs=100, progress=False)
    assert p_value(chain, control) > LEVEL
    assert p_value(chain, runs) <= LEVEL
    a, b = runs.data["error"].values[:, 1], chain.data["error"].values[:, 1]
    z = (a.mean() - b.mean()) / np.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 100)
    assert a.mean() / b.mean() == pytest.approx(0.91, abs=0.02)
    assert z < -10
