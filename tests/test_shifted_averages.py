"""Closed forms of the square loss for fields with means, against integrals that share nothing with them.

Smooth integrands are compared with tensor Gauss-Hermite rules, orthants with nested half-lines of which the last is
done analytically, everything together with the quadrature of any loss. Tolerances are those of the reference: rounding
where it is exact, what a rule states of itself elsewhere. Seeds are fixed and nothing is drawn but parameters, except
in one comparison with Monte Carlo at five standard errors: 24 entries, 2e-5 false alarms if seeds were free.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import erf as error_function
from scipy.special import ndtr

import overlaps as ov
from gaussian import FACTOR, apart, half_lines, hermite_grid
from overlaps.averages import ClosedForm, erf, erf_shifted, method_for
from overlaps.averages.field_rule import FieldRule
from overlaps.averages.quadrature import LossQuadrature
from overlaps.averages.result import Averages, over_components
from problems import problem, random_covariance

NAMES = ("D", "S", "dv", "error", "E")


def taught(activation: str, students: int = 2, teachers: int = 2, **rest) -> ov.Problem:
    """Student and teacher committees on a mixture of two."""
    return ov.Problem(
        data=ov.GaussianMixture(means=2, variance=(0.7, 1.3), weights=[0.3, 0.7]),
        teacher=ov.Committee(teachers, activation),
        student=ov.Committee(students, activation, train_readout=True),
        algorithm=ov.OnlineSGD(0.5),
        **rest,
    )


# --- all averages of one component -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.3, 2.0])
@pytest.mark.parametrize("activation", ["erf", "linear"])
def test_smooth_averages_by_gauss_hermite(activation: str, scale: float) -> None:
    """Every entry, with the second derivative written out instead of Stein's lemma."""
    g, slope, bend = {
        "erf": (
            lambda h: error_function(h / math.sqrt(2)),
            lambda h: math.sqrt(2 / math.pi) * np.exp(-0.5 * h * h),
            lambda h: -math.sqrt(2 / math.pi) * h * np.exp(-0.5 * h * h),
        ),
        "linear": (lambda h: h, np.ones_like, np.zeros_like),
    }[activation]
    rng = np.random.default_rng(int(10 * scale))
    z, weight = hermite_grid(4, 22)
    C, mean = random_covariance(rng, 4, 0.3), scale * rng.standard_normal(4)
    v, u, noise = rng.standard_normal(2), rng.standard_normal(2), 0.4
    w = np.concatenate([v, -u])
    ours = ClosedForm(activation, u, noise).each(C[None], v, mean[:, None])[0]
    h = mean + z @ np.linalg.cholesky(C).T
    delta = g(h) @ w
    first, second = slope(h), bend(h)
    students = v * first[:, :2]
    D = (students * weight[:, None]).T @ (w * first)
    D[:, :2] += np.diag(v * ((second[:, :2] * (weight * delta)[:, None]).sum(0)))
    S = (students * (weight * (delta**2 + noise**2))[:, None]).T @ students
    theirs = Averages(
        D, S, (weight * delta) @ g(h)[:, :2], 0.5 * float(weight @ delta**2), ((weight * delta) @ students)[:, None]
    )
    assert apart(ours, theirs) < (1e-8 if activation == "erf" else 1e-12 * np.abs(S).max())


def relu_by_panels(C: np.ndarray, mean: np.ndarray, v: np.ndarray, u: np.ndarray) -> Averages:
    """S, dv, error and E of two students and two teachers; both sides of every kink, the last teacher analytically."""
    L = np.linalg.cholesky(C)
    z, weight = np.zeros((1, 0)), np.ones(1)
    for j in range(3):
        cut = -(mean[j] + z @ L[j, :j]) / L[j, j]
        up, w_up = half_lines(cut, 22)
        down, w_down = half_lines(-cut, 22)
        here, w = np.concatenate([up, -down], 1), np.concatenate([w_up, w_down], 1)
        z = np.concatenate([np.repeat(z, here.shape[1], 0), here.reshape(-1, 1)], 1)
        weight = np.repeat(weight, here.shape[1]) * w.ravel()
        z, weight = z[weight > 1e-18], weight[weight > 1e-18]
    h = mean[:3] + z @ L[:3, :3].T
    at, spread = mean[3] + z @ L[3, :3], L[3, 3]
    density, chance = np.exp(-0.5 * (at / spread) ** 2) / math.sqrt(2 * math.pi), ndtr(at / spread)
    last, last_square = at * chance + spread * density, (at**2 + spread**2) * chance + at * spread * density
    known = np.maximum(h[:, :2], 0) @ v - u[0] * np.maximum(h[:, 2], 0)
    delta, square = known - u[1] * last, known**2 - 2 * u[1] * known * last + u[1] ** 2 * last_square
    slopes = v * (h[:, :2] > 0)
    S = (slopes * (weight * square)[:, None]).T @ slopes
    dv = (weight * delta) @ np.maximum(h[:, :2], 0)
    return Averages(np.zeros((2, 4)), S, dv, 0.5 * float(weight @ square), ((weight * delta) @ slopes)[:, None])


@pytest.mark.parametrize("scale", [0.2, 1.0, 3.0])
def test_relu_averages_by_panels(scale: float) -> None:
    """The sorting of Δ² by sets of positive fields, and the pair averages."""
    rng = np.random.default_rng(int(10 * scale))
    C, mean = random_covariance(rng, 4), scale * rng.standard_normal(4)
    v, u = rng.standard_normal(2), rng.standard_normal(2)
    ours = ClosedForm("relu", u, 0.0).each(C[None], v, mean[:, None])[0]
    assert apart(ours, relu_by_panels(C, mean, v, u), ("S", "dv", "error", "E")) < 1e-9 * max(1.0, scale**2)


@pytest.mark.parametrize(("students", "teachers"), [(1, 1), (2, 2), (3, 2), (1, 4)])
@pytest.mark.parametrize("activation", ["erf", "linear", "relu"])
def test_small_means_give_the_centred_closed_form(activation: str, students: int, teachers: int) -> None:
    rng = np.random.default_rng(students)
    for _ in range(4):
        C = random_covariance(rng, students + teachers)
        v, u = rng.standard_normal(students), rng.standard_normal(teachers)
        how = ClosedForm(activation, u, 0.2)
        centred, mean = how(C, v), rng.standard_normal((students + teachers, 1))
        zero = how.each(C[None], v, 0 * mean)[0]
        assert apart(centred, zero, ("D", "S", "dv", "error")) < 1e-12 * max(1.0, np.abs(centred.S).max())
        near = how.each(C[None], v, 1e-7 * mean)[0]
        assert 0 < apart(zero, near) < 1e-5


def test_a_mixture_of_one_is_that_component() -> None:
    """Where no components are named there is one, of variance one, with a mean or without."""
    rng = np.random.default_rng(4)
    C, mean, v, u = random_covariance(rng, 4), rng.standard_normal((4, 1)), rng.standard_normal(2), np.ones(2)
    how = ClosedForm("erf", u, 0.2)
    assert apart(how(C, v, mean), how.each(C[None], v, mean)[0]) < 1e-14


@pytest.mark.parametrize("activation", ["erf", "linear", "relu"])
def test_derivatives_in_the_means(activation: str) -> None:
    """D = ∂E[δ]/∂means, and E[δ] = ∂ error/∂(means of the students), by central differences."""
    rng = np.random.default_rng(5)
    for students, teachers in ((1, 1), (2, 2), (3, 1)):
        F, step = students + teachers, 1e-5
        C, mean = random_covariance(rng, F), rng.standard_normal((F, 1))
        v, u = rng.standard_normal(students), rng.standard_normal(teachers)
        how = ClosedForm(activation, u, 0.0)
        here, D, E = how.each(C[None], v, mean)[0], np.empty((students, F)), np.empty(F)
        for a in range(F):
            move = step * np.eye(F)[:, a : a + 1]
            up, down = (how.each(C[None], v, mean + sign * move)[0] for sign in (1, -1))
            D[:, a] = (up.E - down.E)[:, 0] / (2 * step)
            E[a] = (up.error - down.error) / (2 * step)
        np.testing.assert_allclose(here.D, D, atol=1e-8)
        np.testing.assert_allclose(here.E[:, 0], E[:students], atol=1e-8)


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_derivatives_in_the_covariance(activation: str) -> None:
    """∂ error/∂C_ab = ½ (1 + δ_ab)⁻¹ E[∂²Δ²/∂h_a ∂h_b] (Price's theorem): with D it is D_ka for a ≠ k."""
    rng = np.random.default_rng(6)
    C, mean, v, u = random_covariance(rng, 4), rng.standard_normal((4, 1)), rng.standard_normal(2), np.ones(2)
    how, step = ClosedForm(activation, u, 0.0), 1e-5
    D = how.each(C[None], v, mean)[0].D
    for k, a in ((0, 1), (0, 2), (1, 3), (0, 0), (1, 1)):
        move = np.zeros((4, 4))
        move[k, a] = move[a, k] = step
        up, down = (float(how.each_error((C + sign * move)[None], v, mean)[0]) for sign in (1, -1))
        assert (up - down) / (2 * step) == pytest.approx(D[k, a] * (0.5 if k == a else 1.0), abs=1e-8)


def test_wide_committees_by_monte_carlo() -> None:
    """More fields than any rule has: five standard errors of 300 000 points, fixed seed."""
    rng = np.random.default_rng(7)
    C, mean = random_covariance(rng, 7), rng.standard_normal(7)
    v, u = rng.standard_normal(4), rng.standard_normal(3)
    ours = ClosedForm("relu", u, 0.0).each(C[None], v, mean[:, None])[0]
    h = mean + rng.standard_normal((300_000, 7)) @ np.linalg.cholesky(C).T
    g = np.maximum(h, 0)
    delta = v * (h[:, :4] > 0) * (g @ np.concatenate([v, -u]))[:, None]
    for value, x in (
        (ours.S, delta[:, :, None] * delta[:, None, :]),
        (ours.E[:, 0], delta),
        (ours.dv, g[:, :4] * (g @ np.concatenate([v, -u]))[:, None]),
    ):
        assert np.all(np.abs(x.mean(0) - value) <= 5 * x.std(0) / math.sqrt(len(h)))


def test_fields_without_variance() -> None:
    """Students, teachers or all fields that are numbers: g' = 1(mean > 0), and the limit of little variance."""
    rng = np.random.default_rng(8)
    v, u = rng.standard_normal(2), rng.standard_normal(2)
    mean = np.array([[0.7], [-0.4], [1.1], [0.3]])
    for still in ([0], [2], [0, 3], [1, 2], [0, 1, 2, 3]):
        moving = np.ones(4)
        moving[still] = 0.0
        C = random_covariance(rng, 4) * np.outer(moving, moving)
        for activation in ("erf", "linear", "relu"):
            how = ClosedForm(activation, u, 0.1)
            at = how.each(C[None], v, mean)[0]
            near = how.each((C + 1e-12 * np.diag(1 - moving))[None], v, mean)[0]
            assert apart(at, near) < 1e-10, (still, activation)
    at = ClosedForm("relu", u, 0.0).each(np.zeros((1, 4, 4)), v, mean)[0]
    delta = v[0] * 0.7 - u @ mean[2:, 0]
    np.testing.assert_allclose(at.E[:, 0], [v[0] * delta, 0], atol=1e-15)
    np.testing.assert_allclose(at.S, np.diag([(v[0] * delta) ** 2, 0]), atol=1e-14)
    assert at.error == pytest.approx(delta**2 / 2, abs=1e-15)
    dead = ClosedForm("relu", u, 0.0).each(np.zeros((1, 4, 4)), v, 0 * mean)[0]
    assert not dead.D.any() and not dead.S.any()


# --- mixtures --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("students", "teachers"), [(1, 1), (2, 1), (1, 2), (2, 2)])
@pytest.mark.parametrize("activation", ["erf", "linear", "relu"])
def test_mixtures_by_quadrature(activation: str, students: int, teachers: int) -> None:
    """Weights, variances, label noise and the columns of E, against the route for any loss, as both state it."""
    rng = np.random.default_rng([students, teachers])
    p, F = taught(activation, students, teachers, label_noise=0.3), students + teachers
    C, means = random_covariance(rng, F), rng.standard_normal((F, 2))
    v, u = rng.standard_normal(students), rng.standard_normal(teachers)
    closed = ov.gaussian_averages(p, C, v, u, means=means)
    generic = ov.gaussian_averages(p, C, v, u, means=means, method="quadrature")
    assert closed.method == f"closed form ({activation})" and "tensor" in generic.method
    for name in NAMES:
        x = np.asarray(getattr(closed, name))
        assert np.abs(x - getattr(generic, name)).max() <= FACTOR * generic.accuracy[name] + 1e-13, name
        assert closed.accuracy[name] < 1e-13 * max(1.0, np.abs(x).max())
        assert generic.accuracy[name] < 1e-3 * max(1.0, np.abs(x).max())  # so that the comparison has teeth


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_each_component_by_itself(activation: str) -> None:
    """Components of covariances that have nothing to do with each other; both ways, and the sum over them."""
    rng = np.random.default_rng(11)
    p = taught(activation, 1, 1, label_noise=0.2)
    u, v, means = np.array([0.8]), np.array([1.3]), rng.standard_normal((2, 2))
    closed, kinks = method_for(p, u), [ov.network.activations.BUILT_IN[activation].kinks] * 2
    assert isinstance(closed, ClosedForm)
    generic = LossQuadrature(p, u, FieldRule(kinks, 6))
    C = np.array([random_covariance(rng, 2), random_covariance(rng, 2, 2.0)])
    ours, theirs = closed.each(C, v, means), generic.each(C, v, means)
    for a, b in zip(ours, theirs, strict=True):
        assert a.E.shape == b.E.shape == (1, 1)
        assert apart(a, b) < 1e-10
    for how in (closed, generic):
        np.testing.assert_allclose(how.each_error(C, v, means), [a.error for a in ours], atol=1e-11)
        s = p.data.components.variances
        summed = over_components(
            how.each(s[:, None, None] * C[0], v, means), p.data.components.weights, p.data.components.variances
        )
        assert apart(how(C[0], v, means), summed) < 1e-13
        batch = how.errors(np.array([C[0], C[1]]), np.array([v, 2 * v]), np.array([means, -means]))
        alone = [how(C[0], v, means).error, how(C[1], 2 * v, -means).error]
        np.testing.assert_allclose(batch, alone, atol=1e-13)


def test_quadrature_of_a_component_without_noise() -> None:
    p = taught("erf", 1, 1)
    means = np.array([[0.3, -0.2], [0.1, 0.9]])
    parts = LossQuadrature(p, np.ones(1)).each(np.zeros((2, 2, 2)), np.ones(1), means)
    exact = ClosedForm("erf", np.ones(1), 0.0).each(np.zeros((2, 2, 2)), np.ones(1), means)
    for a, b in zip(parts, exact, strict=True):
        assert apart(a, b, ("S", "dv", "error", "E")) < 1e-14
        assert not a.D.any()  # fields that do not vary have no derivative to show


def test_the_closed_form_is_chosen_for_mixtures() -> None:
    u = np.ones(2)
    assert method_for(taught("relu"), u).name == "closed form (relu)"
    assert "tensor" in method_for(taught("relu"), u, "quadrature").name
    assert "tensor" in method_for(taught("tanh"), u).name
    with pytest.raises(ov.InputError, match="a student and a teacher with one activation: erf, linear, relu"):
        method_for(taught("tanh"), u, "closed")
    assert method_for(problem("relu"), u).name == "closed form (relu)"
    assert method_for(taught("erf"), u).coarser().name == "closed form (erf)"


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_learning_on_a_mixture_both_ways(activation: str) -> None:
    p = taught(activation, 1, 1, label_noise=0.1)
    start = ov.draw(p, 200, seed=1)
    closed = ov.solve(p, start, [0.5, 2.0])
    generic = ov.solve(p, start, [0.5, 2.0], method="quadrature")
    assert closed.data.attrs["averages"] == f"closed form ({activation})"
    for name in closed.variables:
        x, y = closed.data[name].values, generic.data[name].values
        assert np.abs(x - y).max() <= FACTOR * (generic.accuracy(name) + closed.accuracy(name)), name
        assert closed.accuracy(name) < 1e-8


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_a_mixture_of_one_mean_at_zero_is_no_mixture(activation: str) -> None:
    """Two units learn two: the same trajectory by the formulas with means and without."""
    ends = []
    for data in (ov.GaussianInputs(), ov.GaussianMixture(gram=[[0.0]])):
        net = ov.Committee(2, activation)
        p = ov.Problem(data=data, teacher=net, student=net, algorithm=ov.OnlineSGD(0.3))
        start = ov.Start.from_overlaps(p, Q=[[0.5, 0.1], [0.1, 0.6]], R=[[0.3, 0.05], [0.1, 0.25]], T=np.eye(2))
        ends.append(ov.solve(p, start, [1.0, 30.0]).data)
    for name in ("Q", "R", "error"):
        np.testing.assert_allclose(ends[0][name], ends[1][name], atol=1e-10)


def test_relu_students_arrive_on_a_mixture() -> None:
    """Averages stay good where students align with their teachers, to the end of learning."""
    net = ov.Committee(2, "relu")
    mixture = ov.GaussianMixture(means=2, variance=[0.5, 1.0])
    p = ov.Problem(data=mixture, teacher=net, student=net, algorithm=ov.OnlineSGD(0.3))
    theory = ov.solve(p, ov.draw(p, 300, seed=2), [20.0, 150.0])
    assert theory.data["error"].values[0, -1] < 1e-4
    assert theory.accuracy("error") < 1e-9


# --- any parameters --------------------------------------------------------------------------------------------------


def drawn(rng: np.random.Generator, F: int) -> tuple[np.ndarray, np.ndarray]:
    """Covariance and means: correlations of any strength, fields of any size, means of up to six deviations."""
    rows = rng.standard_normal((F, F + 1))
    for a in range(1, F):
        kind = rng.integers(4)
        if kind < 2:  # close to, or opposite to, an earlier field, and its mean with it
            b = int(rng.integers(a))
            rows[a] = (-1.0) ** kind * rows[b] + 10 ** rng.uniform(-8, 0) * rows[a]
    rows[:, F] *= rng.choice([0.0, 1.0, 3.0])
    rows *= (10 ** rng.uniform(-1, 1, F))[:, None]
    C, means = rows[:, :F] @ rows[:, :F].T, rows[:, F]
    if rng.random() < 0.3:
        means = rng.uniform(-6, 6, F) * np.sqrt(np.diag(C))
    return C, means


@pytest.mark.parametrize("activation", ["erf", "linear", "relu"])
def test_any_covariance_and_means(activation: str) -> None:
    """Finite, S positive and not above what one of its factors allows; a change of order changes nothing.

    Where the orthant rule is too coarse it has to say so: nine errors in ten within FACTOR of the change from 20 nodes
    to 40, which is rounding in all but a few.
    """
    rng = np.random.default_rng(13)
    missed, stated = [], []
    for _ in range(60):
        K, M = (int(n) for n in rng.integers(1, 4, 2))
        C, means = drawn(rng, K + M)
        v, u = rng.standard_normal(K), rng.standard_normal(M)
        how = ClosedForm(activation, u, 0.0)
        a = how.each(C[None], v, means[:, None])[0]
        size = max(1.0, float(np.abs(C).max() + np.abs(means).max() ** 2)) * max(1.0, float(v @ v + u @ u)) ** 2
        rounding = 1e-8 * size if activation == "relu" else 1e-12 * size
        assert all(np.isfinite(getattr(a, name)).all() for name in NAMES)
        assert np.linalg.eigvalsh(a.S)[0] >= -rounding and a.error >= -rounding
        assert np.all(np.diag(a.S) <= (v**2 * (2 / math.pi if activation == "erf" else 1)) * 2 * a.error + rounding)
        turned = np.concatenate([rng.permutation(K), K + rng.permutation(M)])
        there = ClosedForm(activation, u[turned[K:] - K], 0.0)
        b = there.each(C[np.ix_(turned, turned)][None], v[turned[:K]], means[turned, None])[0]
        rough, fine = how.coarser().each(C[None], v, means[:, None])[0], ClosedForm(activation, u, 0.0, 160)
        change = float(np.abs(a.S - rough.S).max())
        assert np.abs(a.S[np.ix_(turned[:K], turned[:K])] - b.S).max() <= rounding + FACTOR * change
        assert np.abs(a.D[turned[:K]][:, turned] - b.D).max() <= 1e-7 * size
        missed.append(float(np.abs(a.S - fine.each(C[None], v, means[:, None])[0].S).max()))
        stated.append(change + 1e-13 * size)
    assert np.quantile(np.array(missed) / np.array(stated), 0.9) <= FACTOR


@pytest.mark.parametrize("distance", [1e-6, 1e-4])
def test_relu_student_about_to_arrive(distance: float) -> None:
    """S is O(distance²) close to the teacher; noise of a larger size spoils the end of learning."""
    rng = np.random.default_rng(14)
    for _ in range(5):
        rows, nudge = rng.standard_normal((2, 2, 7)) / math.sqrt(6)
        both = np.concatenate([rows + distance * nudge, rows])
        a = ClosedForm("relu", np.ones(2), 0.0).each((both[:, :6] @ both[:, :6].T)[None], np.ones(2), both[:, 6:])[0]
        assert np.abs(a.S).max() <= 10 * distance**2 + 1e-14 / distance
        assert a.error <= 10 * distance**2


def test_four_field_average_of_erf_with_means() -> None:
    """E[g'_0 g'_1 Δ²] at mean zero is the published one; with means, a tensor rule."""
    rng = np.random.default_rng(15)
    C, w = random_covariance(rng, 4, 0.4), np.array([0.0, 0.0, 0.7, -0.2])
    published = sum(w[a] * w[b] * erf.four(C, 0, 1, a, b) for a in range(4) for b in range(4))
    assert erf_shifted.four(C, np.zeros(4), w, 0, 1) == pytest.approx(published, abs=1e-14)
    z, weight = hermite_grid(4, 24)
    mean = np.array([0.5, -1.0, 0.3, 1.5])
    h = mean + z @ np.linalg.cholesky(C).T
    slopes = 2 / math.pi * np.exp(-0.5 * (h[:, 0] ** 2 + h[:, 1] ** 2))
    expected = weight @ (slopes * (error_function(h / math.sqrt(2)) @ w) ** 2)
    assert erf_shifted.four(C, mean, w, 0, 1) == pytest.approx(float(expected), abs=1e-9)
