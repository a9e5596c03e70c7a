"""The infinite-size theory against published numbers, closed solutions and an integrator from the equation.

Every `check_*` below also has to reject wrong theories, see `test_wrong_theories_are_rejected`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import erf

import overlaps as ov
from overlaps import schedules
from overlaps.averages import method_for
from overlaps.online import macro
from problems import linear_solution, problem

FACTOR = 3.0  # by how much an accuracy measured as a difference of two solutions may fall short


def saad_solla(spectrum: Any = None) -> ov.Problem:
    return problem(spectrum=spectrum, rate=0.5)


Q0, R0, T0 = np.array([[0.5, 0.1], [0.1, 0.4]]), np.array([[0.01, 0.002], [-0.003, 0.005]]), np.eye(2)


# --- independent numbers ---------------------------------------------------------------------------------------------


def check_isotropic_numbers() -> None:
    """Two erf units learn two, rate 1/2: error at four times, from an independent implementation."""
    p = saad_solla()
    m = ov.solve(p, ov.Start.from_overlaps(p, Q=Q0, R=R0, T=T0), [1, 10, 100, 200])
    expected = [0.30752584, 0.01740237, 0.01463056, 0.00339903]
    assert m.data["error"].values[0] == pytest.approx(expected, abs=1e-7)


def linear_start(p: ov.Problem, variance: float) -> ov.Start:
    """Random weights at infinite size: students of that variance, uncorrelated with teachers of variance 1."""
    K, M = p.student.units, p.teacher.units
    share = p.data.fractions[:, None, None]
    return ov.Start.from_overlaps(
        p, Q=variance * share * np.eye(K), R=np.zeros((len(share), K, M)), T=share * np.eye(M)
    )


def check_linear_solution() -> None:
    """Ten levels: the digits of an 80-digit computation; unequal fractions and widths by `linear_solution`."""
    p = problem("linear", 1, 1, spectrum=ov.PowerLaw(10, 1.0), rate=1.0)
    times = np.array([0, 0.5, 2, 10, 50])
    m = ov.solve(p, linear_start(p, 1.0), times)
    published = [1, 0.32613856828587, 0.12294946766039, 0.01509600340524, 3.464622389347e-5]
    tolerance = FACTOR * m.accuracy("error") + 1e-14
    assert m.data["error"].values[0] == pytest.approx(published, abs=tolerance)
    assert linear_solution(p, 1.0, times) == pytest.approx(published, abs=2e-14)
    cases = [
        problem("linear", 3, 2, spectrum=ov.PowerLaw(10, 0.5), rate=1.2, readout=2**0.5 / 3, teacher_readout=0.5**0.5),
        problem(
            "linear", 1, 2, spectrum=ov.Spectrum([3.0, 1.0, 0.0, 0.2], [0.1, 0.5, 0.1, 0.3]), rate=0.7, readout=-1.3
        ),
    ]
    for p in cases:
        m = ov.solve(p, linear_start(p, 0.25), times)
        tolerance = FACTOR * m.accuracy("error") + 1e-13
        assert m.data["error"].values[0] == pytest.approx(linear_solution(p, 0.25, times), abs=tolerance)


# --- an integrator from the equation itself --------------------------------------------------------------------------

GRID_SPACING, GRID_RADIUS = 0.36, 6.5


def naive_averages(C: np.ndarray, v: np.ndarray, u: np.ndarray, g: Any, slope: Any, noise: float) -> tuple:
    """D = E[δ hᵀ] C⁻¹, S, E[∂loss/∂v] and error of the square loss on a grid in all fields (1e-8 at variance one)."""
    d, K = len(C), v.size
    x = np.arange(-GRID_RADIUS, GRID_RADIUS + 1e-9, GRID_SPACING)
    z = np.stack(np.meshgrid(*[x] * d, indexing="ij"), -1).reshape(-1, d)
    w = np.exp(-0.5 * (z**2).sum(1))
    w /= w.sum()
    h = z @ np.linalg.cholesky(C).T
    miss = g(h[:, :K]) @ v - g(h[:, K:]) @ u
    slopes = v * slope(h[:, :K])
    delta = slopes * miss[:, None]
    D = np.linalg.solve(C, h.T @ (w[:, None] * delta)).T
    S = delta.T @ (w[:, None] * delta) + noise**2 * slopes.T @ (w[:, None] * slopes)
    return D, S, g(h[:, :K]).T @ (w * miss), 0.5 * float(w @ miss**2)


def naive_solution(p: ov.Problem, start: ov.Start, end: float, steps: int, g: Any, slope: Any) -> tuple:
    """(Q per level, R per level, v, error) at time `end` by the classical Runge-Kutta method, level by level."""
    eta, beta, eta_v = p.algorithm.rate, p.algorithm.decay, p.algorithm.readout_rate or 0.0
    omega, phi, T = p.data.eigenvalues, start.fractions, start.T
    B = len(start.R)

    def averages(Q: np.ndarray, R: np.ndarray, v: np.ndarray) -> tuple:
        C = sum(omega[b] * np.block([[Q[b], R[b]], [R[b].T, T[b]]]) for b in range(B))
        return naive_averages(C, v, start.u, g, slope, p.label_noise)

    def motion(state: tuple) -> tuple:
        Q, R, v = state
        D, S, pull, _ = averages(Q, R, v)
        dQ, dR = np.zeros_like(Q), np.zeros_like(R)
        for b in range(B):
            dR[b] = -eta * omega[b] * D @ np.concatenate([R[b], T[b]]) - eta * beta * R[b]
            drift = -eta * omega[b] * D @ np.concatenate([Q[b], R[b].T])
            dQ[b] = drift + drift.T - 2 * eta * beta * Q[b] + eta**2 * omega[b] * phi[b] * S
        return dQ, dR, -eta_v * (pull + beta * v)

    def moved(state: tuple, slope_: tuple, h: float) -> tuple:
        return tuple(s + h * k for s, k in zip(state, slope_, strict=True))

    state, h = (start.Q, start.R, start.v), end / steps
    for _ in range(steps):
        k1 = motion(state)
        k2 = motion(moved(state, k1, h / 2))
        k3 = motion(moved(state, k2, h / 2))
        k4 = motion(moved(state, k3, h))
        state = tuple(s + h / 6 * (a + 2 * b + 2 * c + d) for s, a, b, c, d in zip(state, k1, k2, k3, k4, strict=True))
    return (*state, averages(*state)[3])


def tanh_slope(x: np.ndarray) -> np.ndarray:
    return 1 - np.tanh(x) ** 2


FUNCTIONS = {
    "erf": (lambda x: erf(x / math.sqrt(2)), lambda x: math.sqrt(2 / math.pi) * np.exp(-0.5 * x * x)),
    "tanh": (np.tanh, tanh_slope),
}


def check_naive_integrator(activation: str = "erf") -> None:
    """Two unequal levels, both layers trained, weight decay and label noise."""
    K, M = (2, 1) if activation == "erf" else (1, 1)
    p = problem(
        activation, K, M, spectrum=ov.Spectrum([2.0, 0.5], [0.4, 0.6]), rate=0.8, train_readout=True, readout_rate=0.3,
        decay=0.1, label_noise=0.2,
    )  # fmt: skip
    rng = np.random.default_rng(1)
    start = ov.Start.from_weights(
        p, student=0.7 * rng.standard_normal((K, 50)), teacher=rng.standard_normal((M, 50)),
        student_readout=[0.8, -0.5][:K], teacher_readout=[1.2],
    )  # fmt: skip
    end = 1.5
    m = ov.solve(p, start, [end], levels=True)
    rough, fine = (naive_solution(p, start, end, n, *FUNCTIONS[activation]) for n in (15, 30))
    names = ("Q_levels", "R_levels", "v", "error")
    for name, x, y in zip(names, rough, fine, strict=True):
        # the method has order four, so the finer one errs by a fifteenth of their difference; 1e-7 for the grid
        allowed = np.abs(x - y).max() / 5 + 1e-7
        assert np.abs(m.data[name].values[0, 0] - y).max() <= allowed, name
        assert allowed < 1e-5


def test_isotropic_numbers() -> None:
    check_isotropic_numbers()


def test_linear_solution() -> None:
    check_linear_solution()


@pytest.mark.parametrize("activation", ["erf", "tanh"])
def test_naive_integrator(activation: str) -> None:
    check_naive_integrator(activation)


class WithoutFluctuations(macro.EquationOfMotion):
    """The η² term dropped."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.levels = self.levels._replace(noise=0 * self.levels.noise)


class OtherFractions(macro.EquationOfMotion):
    """Every level gets the same share of the noise."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.levels = self.levels._replace(noise=np.full(self.B, self.update.noise / self.B))


class TransposedR(macro.EquationOfMotion):
    """Student n reads the overlap of teacher n, and the other way round."""

    def covariance(self, y: np.ndarray) -> np.ndarray:
        C, K = super().covariance(y).copy(), self.K
        C[:K, K:], C[K:, :K] = C[K:, :K].copy(), C[:K, K:].copy()
        return C


class HalfDecay(macro.EquationOfMotion):
    """Weight decay acts on Q once instead of twice."""

    def __call__(self, t: float, y: np.ndarray) -> np.ndarray:
        dy = super().__call__(t, y)
        n = self.K**2 * self.B
        dy[:n] -= self.flow(t).M[0, 0] * y[:n]
        return dy


class ForgottenDecayOfReadout(macro.EquationOfMotion):
    def __call__(self, t: float, y: np.ndarray) -> np.ndarray:
        dy = super().__call__(t, y)
        dy[-self.K :] -= self.flow(t).M_readout[0, 0] * y[-self.K :]
        return dy


@pytest.mark.parametrize(
    ("mutant", "check"),
    [
        (WithoutFluctuations, check_isotropic_numbers),
        (WithoutFluctuations, check_linear_solution),
        (WithoutFluctuations, check_naive_integrator),
        (OtherFractions, check_linear_solution),
        (OtherFractions, check_naive_integrator),
        (TransposedR, check_isotropic_numbers),
        (HalfDecay, check_naive_integrator),
        (ForgottenDecayOfReadout, check_naive_integrator),
    ],
)
def test_wrong_theories_are_rejected(mutant: type, check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that passes whatever the equation says. (A wrong theory may also leave the positive covariances.)"""
    monkeypatch.setitem(macro.SYSTEMS, "levels", mutant)
    with pytest.raises((AssertionError, ov.NumericalError)):
        check()


@pytest.mark.parametrize("activation", ["erf", "relu", "linear"])
@pytest.mark.parametrize(
    "algorithm",
    [
        ov.OnlineSGD(rate=0.7, decay=0.2),
        ov.GradientFlow(rate=0.7, decay=0.2),
        ov.OnlineSGD(rate=0.7, readout_rate=0.3, decay=0.2, batch=5, momentum=0.6),
        ov.OnlineSGD(rate=0.7, readout_rate=0.3, decay=0.2, memory=1.5),
        ov.OnlineSGD(
            rate=ov.Schedule([0.0, 2.0], [0.2, 0.9]), readout_rate=schedules.Power(0.4), decay=0.2, memory=0.5, batch=3
        ),
    ],
    ids=["sgd", "flow", "batch and momentum", "memory", "schedules and memory"],
)
def test_compiled_equation_is_that_of_the_averages(activation: str, algorithm: Any) -> None:
    """What closed forms are integrated with, against averages and levels put together one by one.

    Velocities, where there are any, are random: they have no part in the averages.
    """
    net = ov.Committee(units=3, activation=activation, readout=[0.5, -0.4, 0.8], train_readout=True)
    teacher = ov.Committee(units=2, activation=activation, readout=[1.0, 0.6])
    data = ov.GaussianInputs(ov.PowerLaw(4, 0.5))
    p = ov.Problem(data=data, teacher=teacher, student=net, algorithm=algorithm, label_noise=0.3)
    start = ov.draw(p, 50, seed=3, scale=0.6)
    motion = macro.EquationOfMotion(p, start, method_for(p, start.u))
    assert motion.closed is not None
    y = motion.pack(start.Q, start.A, start.v)
    rng, (Q, A, v) = np.random.default_rng(4), motion.unpack(y)
    assert np.shares_memory(Q, y) and Q.shape[0] == 3 * algorithm.limit_rows
    noise = rng.standard_normal(Q.shape)
    noise[:3, :3] = 0
    Q += noise + noise.transpose(1, 0, 2)
    A[3:], v[3:] = rng.standard_normal(A[3:].shape), rng.standard_normal(v[3:].size)
    for t in (0.0, 0.7):
        expected = motion.derivative(y, motion.averages(y), motion.flow(t))
        assert motion(t, y) == pytest.approx(expected, rel=1e-12, abs=1e-13)
    y[1] = np.inf
    assert np.isnan(motion(0.0, y)).all()


# --- levels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [3, 1000])
def test_equal_eigenvalues_may_be_split(levels: int) -> None:
    """Levels of one eigenvalue are one level, however many they are and however overlaps are shared out among them."""
    times = [1, 10]
    p = saad_solla()
    whole = ov.solve(p, ov.Start.from_overlaps(p, Q=Q0, R=R0, T=T0), times)
    rng = np.random.default_rng(2)
    shares = rng.dirichlet(np.ones(levels))[:, None, None] if levels < 10 else np.full((levels, 1, 1), 1 / levels)
    fractions = rng.dirichlet(np.ones(levels)) if levels < 10 else None
    p = saad_solla(ov.Spectrum([1.0] * levels, fractions))
    split = ov.solve(p, ov.Start.from_overlaps(p, Q=shares * Q0, R=shares * R0, T=shares * T0), times)
    for name in whole.variables:
        allowed = FACTOR * (whole.accuracy(name) + split.accuracy(name)) + 1e-13 * levels
        assert np.abs(whole.data[name] - split.data[name]).max() <= allowed, name


@pytest.mark.parametrize("scale", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("levels", [3, 1000])
def test_many_levels(levels: int, scale: float) -> None:
    """Three units learn two on a power law, from random weights: a step that was tried too long is taken back."""
    p = problem(students=3, spectrum=ov.PowerLaw(levels, 0.5))
    m = ov.solve(p, ov.draw(p, size=4 * levels, seed=3, scale=scale), [0, 0.5, 2])
    error = m.data["error"].values[0]
    assert np.all(np.isfinite(error)) and np.all(np.diff(error) < 0)
    assert m.accuracy("error") < 1e-9


def test_thousand_levels_of_a_linear_network() -> None:
    """Error at time 1 and 10 to the eight digits of an independent solver, and by diagonalising."""
    p = problem("linear", 1, 1, spectrum=ov.PowerLaw(1000, 1.0), rate=1.0)
    times = np.array([1.0, 10.0])
    m = ov.solve(p, linear_start(p, 1.0), times)
    assert m.data["error"].values[0] == pytest.approx([0.02971336, 0.0085744], abs=1e-8)
    exact = linear_solution(p, 1.0, times)
    assert m.data["error"].values[0] == pytest.approx(exact, abs=FACTOR * m.accuracy("error") + 1e-13)


# --- what it says of its own accuracy --------------------------------------------------------------------------------


def log_cosh(lam, nu, c, v):
    return np.log(np.cosh(np.sum(v * lam) - np.sum(nu)))


def log_cosh_gradient(lam, nu, c, v):
    t = np.tanh(np.sum(v * lam) - np.sum(nu))
    return v * t, lam * t


PROBLEMS = {
    "erf": (problem(), 10.0, 1e-11),
    "five levels, both layers": (problem(spectrum=ov.PowerLaw(5, 0.5), train_readout=True, decay=0.02), 10.0, 1e-11),
    "relu": (problem("relu", rate=0.2), 3.0, 1e-10),
    "tanh": (problem("tanh", 1, 1), 5.0, 1e-9),
    "user loss": (problem("linear", 1, 1, loss=ov.Loss(log_cosh, log_cosh_gradient)), 5.0, 1e-9),
    "softplus, Sobol": (problem("softplus", 3, 2, rate=0.1), 0.5, 3e-4),
}


@pytest.mark.parametrize("name", list(PROBLEMS))
def test_stated_accuracy_is_honest(name: str) -> None:
    """A run asked to be much better lies within what the first stated."""
    p, end, tight = PROBLEMS[name]
    start = ov.draw(p, size=100, seed=4, scale=0.5)
    times = [end / 10, end]
    m, better = ov.solve(p, start, times), ov.solve(p, start, times, accuracy=tight)
    for variable in m.variables:
        missed = float(np.abs(m.data[variable] - better.data[variable]).max())
        assert missed <= FACTOR * (m.accuracy(variable) + better.accuracy(variable)), variable
        assert better.accuracy(variable) <= tight * max(1.0, float(np.abs(better.data[variable]).max()))


def test_other_times_do_not_matter() -> None:
    """Steps are shortened to land on times; the answer there is the same."""
    p = problem(spectrum=ov.PowerLaw(4, 0.3))
    start = ov.draw(p, size=100, seed=5)
    alone = ov.solve(p, start, [7.3])
    among = ov.solve(p, start, np.unique(np.append(np.linspace(0, 9, 83), 7.3)))
    for name in alone.variables:
        allowed = FACTOR * (alone.accuracy(name) + among.accuracy(name))
        assert np.abs(alone.data[name].sel(time=7.3) - among.data[name].sel(time=7.3)).max() <= allowed, name


def test_time_zero_is_the_start() -> None:
    p = problem(spectrum=ov.PowerLaw(4, 0.3))
    start = ov.draw(p, size=100, seed=6)
    m = ov.solve(p, start, [0.0], levels=True)
    assert np.array_equal(m.data["Q_levels"].values[0, 0], start.Q)
    assert np.array_equal(m.data["R_levels"].values[0, 0], start.R)
    assert m.data["error"].values[0, 0] == pytest.approx(
        ov.gaussian_averages(p, np.tensordot(p.data.eigenvalues, start.gram, 1)).error, abs=1e-15
    )


# --- invariances -----------------------------------------------------------------------------------------------------


def test_order_of_hidden_units_does_not_matter() -> None:
    p = problem(students=3, spectrum=ov.PowerLaw(3, 0.5), readout=[1.0, 0.5, 2.0])
    q = problem(students=3, spectrum=ov.PowerLaw(3, 0.5), readout=[2.0, 1.0, 0.5])
    start = ov.draw(p, size=60, seed=7)
    order = [2, 0, 1]
    a = ov.solve(p, start, [3.0])
    b = ov.solve(q, ov.Start.from_weights(q, student=start.student[order], teacher=start.teacher[::-1]), [3.0])
    assert np.abs(a.data["R"].values[0, 0][order][:, ::-1] - b.data["R"].values[0, 0]).max() <= 1e-8
    assert np.abs(a.data["Q"].values[0, 0][np.ix_(order, order)] - b.data["Q"].values[0, 0]).max() <= 1e-8
    assert float(np.abs(a.data["error"] - b.data["error"]).max()) <= 1e-9


@pytest.mark.parametrize("activation", ["erf", "linear", "relu"])
def test_perfect_student_stays(activation: str) -> None:
    """Rounding that pushes a student off its teacher, where C is singular, and an accuracy stated without it."""
    p = problem(activation)
    T = np.array([[1.0, 0.2], [0.2, 0.8]])
    m = ov.solve(p, ov.Start.from_overlaps(p, Q=T, R=T, T=T), [1, 20])
    for name, exact in (("error", 0.0), ("R", T), ("Q", T)):
        missed = float(np.abs(m.data[name].values - exact).max())
        assert missed <= 1e-9
        assert missed <= FACTOR * m.accuracy(name) + 1e-14, name


def test_quadrature_and_closed_form_give_the_same_trajectory() -> None:
    p = problem("erf", 1, 1)
    start = ov.Start.from_overlaps(p, Q=[[0.5]], R=[[0.1]], T=[[1.0]])
    a, b = ov.solve(p, start, [2, 10]), ov.solve(p, start, [2, 10], method="quadrature")
    assert "closed form (erf)" in repr(a) and "quadrature" in repr(b)
    for name in a.variables:
        assert np.abs(a.data[name] - b.data[name]).max() <= FACTOR * (a.accuracy(name) + b.accuracy(name)), name
