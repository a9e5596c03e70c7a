"""Constants of a nonlinearity: against SciPy's integrals and exact values, with errors that tell the truth."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gamma, ndtr

import overlaps as ov
from overlaps.data.gaussian_moments import by_panels
from overlaps.data.nonlinearity import BUILT_IN, Nonlinearity, gaussian_equivalent, moments, nonlinearity, slope
from overlaps.network.activations import BUILT_IN as ACTIVATIONS

NAMED = {
    "sign": np.sign,
    "relu": lambda u: max(u, 0.0),
    "linear": lambda u: u,
    "erf": lambda u: math.erf(u / math.sqrt(2)),
    "tanh": math.tanh,
    "softplus": lambda u: math.log1p(math.exp(-abs(u))) + max(u, 0.0),
}
PLACES = [(0.0, 1.0), (0.7, 0.5), (-2.0, 1.3), (3.0, 0.1), (0.2, 30.0), (-8.0, 1.0)]


def integrals(f, mean: float, sd: float) -> list[float]:
    """a, b, c by adaptive integration between and beyond the places where something happens."""

    def bell(z: float) -> float:
        return math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)

    cuts = sorted({-12.0, 12.0, 0.0, *(min(12.0, max(-12.0, (u - mean) / sd)) for u in (-3.0, 0.0, 3.0))})

    def whole(part) -> float:
        def integrand(z: float) -> float:
            return part(z, float(f(mean + sd * z))) * bell(z)

        return sum(quad(integrand, low, high, epsabs=1e-13, epsrel=1e-12)[0] for low, high in pairwise(cuts))

    return [whole(part) for part in (lambda z, v: v, lambda z, v: z * v, lambda z, v: v * v)]


@pytest.mark.parametrize(("mean", "sd"), PLACES)
@pytest.mark.parametrize("name", NAMED)
def test_moments_are_the_integrals(name, mean, sd):
    a, b, c, error = moments(name, mean, sd)
    np.testing.assert_allclose([a, b, c], integrals(NAMED[name], mean, sd), rtol=1e-11, atol=1e-12)
    assert error < 2e-12 * max(1.0, c)


def test_names_and_their_exact_constants():
    root = math.sqrt(2 / math.pi)
    exact = {
        "sign": (0, root, 1),
        "relu": (root / 2, 0.5, 0.5),
        "linear": (0, 1, 1),
        "erf": (0, 1 / math.sqrt(math.pi), 1 / 3),
    }
    for name, values in exact.items():
        got = gaussian_equivalent(name)
        np.testing.assert_allclose([got.a, got.b, got.c], values, atol=1e-15)
        assert got.name == name and got.error < 1e-14
    assert set(BUILT_IN) == {"sign", *ov.network.activations.BUILT_IN}


@pytest.mark.parametrize("name", ["sign", "relu", "linear", "erf"])
def test_closed_forms_and_panels_agree_within_their_errors(name):
    rng = np.random.default_rng(0)
    mean, sd = 5 * rng.standard_normal(200), np.exp(2 * rng.standard_normal(200))
    f, closed = BUILT_IN[name], moments(name, mean, sd)
    measured = by_panels(name, f.function, f.kinks, mean, sd)
    for exact, value in zip(closed[:3], measured[:3], strict=True):
        assert np.all(np.abs(exact - value) <= closed.error + measured.error)


def test_slopes_by_steins_lemma():
    """b = E z f(u) = sd E f'(u), each by its own function."""
    mean, sd = np.linspace(-2, 2, 9), np.linspace(0.2, 3, 9)
    for name in ("tanh", "softplus"):
        slope = Nonlinearity("slope", ov.network.activations.BUILT_IN[name].derivative)
        np.testing.assert_allclose(moments(name, mean, sd).b, sd * moments(slope, mean, sd).a, atol=1e-13)


@pytest.mark.parametrize("sd", [0.05, 1.0, 40.0])
def test_jumps_nobody_declared(sd):
    """Jumps anywhere, also next to the ends of panels, where a rule that leaves out its ends would miss them."""
    rng = np.random.default_rng(1)
    ends = np.array([0.5, 1.0, 2.0, -1.0, 0.0])
    near = (ends[:, None] * (1 - np.array([1e-2, 3e-3, 1e-4, 1e-8]))).ravel()
    for jump in [*rng.normal(0, 1.5, 30), *near]:
        found = moments(lambda u, jump=jump: np.where(u > jump, 2.0, -1.0), 0.1, sd)
        x = (0.1 - jump) / sd
        exact = [3 * ndtr(x) - 1, 3 * math.exp(-0.5 * x * x) / math.sqrt(2 * math.pi), 3 * ndtr(x) + 1]
        assert np.all(np.abs(np.array(found[:3]) - exact) <= found.error)
        assert found.error < 1e-11


def test_kinks_nobody_declared():
    rng = np.random.default_rng(2)
    for kink, mean, sd in zip(*rng.normal(0, 2, (2, 150)), np.exp(rng.normal(size=150)), strict=True):
        found = moments(lambda u, kink=kink: np.maximum(u - kink, 0.0), mean, sd)
        exact = moments("relu", mean - kink, sd)
        assert np.all(np.abs(np.array(found[:3]) - exact[:3]) <= found.error + exact.error)
        assert found.error < 1e-11 * max(1.0, found.c)


def power(q: float) -> float:
    """E |z|^q."""
    return 2 ** (q / 2) * gamma((q + 1) / 2) / math.sqrt(math.pi)


@pytest.mark.parametrize(
    ("function", "a", "c"),
    [
        (lambda u: np.log(np.abs(u)), -(np.euler_gamma + math.log(2)) / 2, None),
        (lambda u: np.abs(u) ** -0.25, power(-0.25), power(-0.5)),
        (lambda u: np.abs(u) ** -0.3, power(-0.3), power(-0.6)),
        (lambda u: u**8, 105.0, 2027025.0),
        (lambda u: np.exp(0.245 * u**2), 0.51**-0.5, 0.02**-0.5),  # c nearly infinite
        (lambda u: np.exp(3 * u), math.exp(4.5), math.exp(18)),
        (lambda u: np.sin(100 * u), 0.0, (1 - math.exp(-20000)) / 2),
        (lambda u: u - np.floor(u), 0.5, None),
    ],
)
def test_hard_functions_have_true_errors(function, a, c):
    found = gaussian_equivalent(function)
    assert abs(found.a - a) <= found.error
    assert c is None or abs(found.c - c) <= found.error
    assert found.error <= 1e-6 * max(1.0, found.c)


def test_a_singularity_away_from_zero():
    """|u − 0.3|^(-1/4), whose exact moments follow by t = |u − 0.3|^(1/2) on either side."""

    def exact(q: float) -> float:
        def side(sign: float) -> float:
            power = 2 * q + 1
            return quad(lambda t: 2 * t**power * math.exp(-0.5 * (0.3 + sign * t * t) ** 2), 0, 4, epsabs=1e-13)[0]

        return (side(1) + side(-1)) / math.sqrt(2 * math.pi)

    found = gaussian_equivalent(lambda u: np.abs(u - 0.3) ** -0.25)
    assert abs(found.a - exact(-0.25)) <= found.error + 1e-12
    assert abs(found.c - exact(-0.5)) <= found.error + 1e-12
    assert found.error < 1e-6


@pytest.mark.parametrize(
    ("function", "named", "not_named"),
    [
        (lambda u: np.exp(u**2 / 2), ["a = ", "b = ", "c = "], []),
        (lambda u: np.exp(u**2 / 4), ["c = "], ["a = ", "b = "]),
        (lambda u: np.exp(u**2 / 4) / np.sqrt(1 + np.abs(u)), ["c = "], ["a = ", "b = "]),  # a logarithm
        (lambda u: 1 / u, ["a = ", "c = "], ["b = "]),  # E z/z = 1
        (lambda u: 1 / (u - 0.3), ["a = ", "b = ", "c = "], []),
        (lambda u: np.abs(u) ** -0.5, ["c = "], ["a = ", "b = "]),  # a logarithm
        (lambda u: np.abs(u - 0.3) ** -0.5, ["c = "], ["a = ", "b = "]),
        (np.tan, ["a = ", "c = "], []),
    ],
)
def test_moments_that_do_not_exist_are_refused_by_name(function, named, not_named):
    with pytest.raises(ov.InputError, match="not exist or cannot be computed") as refusal:
        gaussian_equivalent(function)
    assert all(name in str(refusal.value) for name in named)
    assert not any(name in str(refusal.value) for name in not_named)


def test_what_exists_depends_on_the_width():
    """E exp(u²/2) exists for sd² < 1/2."""
    found = moments(lambda u: np.exp(u**2 / 4), 0.0, [0.5, 0.9])
    np.testing.assert_allclose(found.c, (1 - np.array([0.5, 0.9]) ** 2) ** -0.5, rtol=1e-8)
    with pytest.raises(ov.InputError, match="deviation 1:"):
        moments(lambda u: np.exp(u**2 / 4), 0.0, [0.5, 1.0])


@pytest.mark.parametrize(
    "function",
    [
        lambda u: np.sin(1e5 * u),  # too fast to follow
        lambda u: np.floor(1e4 * u),  # too many jumps
        lambda u: np.log(u + 5),  # not a number below -5, where u is once in 10⁷
        lambda u: math.log(u + 5),
        lambda u: math.exp(u**4),
    ],
)
def test_what_cannot_be_computed_is_refused(function):
    with pytest.raises(ov.InputError):
        gaussian_equivalent(function)


def test_values_far_out_need_not_be_finite():
    """Beyond any draw, sinh/cosh is not a number; it counts for nothing there."""
    found = moments(lambda u: np.sinh(u) / np.cosh(u), 0.0, 25.0)
    np.testing.assert_allclose(found, moments("tanh", 0.0, 25.0), atol=1e-13)


def test_no_width():
    a, b, c, error = moments("tanh", [0.5, -2.0], 0.0)
    np.testing.assert_array_equal(a, np.tanh([0.5, -2.0]))
    np.testing.assert_array_equal(c, np.tanh([0.5, -2.0]) ** 2)
    assert not b.any() and not error.any()
    a, b, c, _ = moments("sign", [[1.0], [0.0]], [0.0, 1.0])
    np.testing.assert_allclose(a, [[1, math.erf(1 / math.sqrt(2))], [0, 0]])
    np.testing.assert_array_equal(c, [[1, 1], [0, 1]])
    with pytest.raises(ov.InputError, match="not finite"):
        moments(lambda u: 1 / u, 0.0, 0.0)


def test_results_do_not_depend_on_their_neighbours():
    rng = np.random.default_rng(3)
    mean, sd = rng.standard_normal((2, 150)), rng.uniform(0.1, 1, 150)

    def steps(u):
        return np.floor(u)

    together = moments(steps, mean, sd)
    assert together.a.shape == together.error.shape == (2, 150)
    for i, j in ((0, 0), (1, 7), (1, 149)):
        np.testing.assert_array_equal([x[i, j] for x in together], moments(steps, mean[i, j], sd[j]))


@pytest.mark.parametrize(
    ("mean", "sd", "message"),
    [
        (0.0, -1.0, "sd: expected standard deviations of at least 0"),
        (0.0, np.nan, "sd: has entries"),
        ([0.0, np.inf], 1.0, "mean: has entries"),
        (np.zeros(3), np.ones(2), "does not broadcast"),
        ("a", 1.0, "mean: expected an array"),
    ],
)
def test_bad_places_are_refused(mean, sd, message):
    with pytest.raises(ov.InputError, match=message):
        moments("sign", mean, sd)


def uncompilable(u: float) -> float:
    return {True: 1.0, False: -0.5}[bool(u > 0.3)] * len(str(type(u)))


@pytest.mark.parametrize(
    ("given", "values"),
    [
        (np.tanh, np.tanh),
        (math.tanh, np.tanh),
        (lambda u: 1.0 if u > 0.3 else -0.5, lambda u: np.where(u > 0.3, 1.0, -0.5)),
        (lambda u: u > 0, lambda u: (u > 0).astype(float)),
        (lambda u: u, lambda u: u),
        (lambda u: max(u, 0), lambda u: np.maximum(u, 0)),
        (uncompilable, lambda u: np.where(u > 0.3, 1.0, -0.5) * len(str(float))),
        (ov.Activation("sine", math.sin, math.cos), np.sin),
        ("softplus", lambda u: np.logaddexp(0, u)),
    ],
)
def test_functions_of_numbers_and_of_arrays(given, values):
    f = nonlinearity(given)
    u = np.random.default_rng(5).standard_normal((7, 11))
    kept = u.copy()
    out = f.function(u)
    np.testing.assert_allclose(out, values(u), rtol=1e-14, atol=1e-15)
    assert out.dtype == float and not np.may_share_memory(out, u)
    np.testing.assert_array_equal(u, kept)
    assert nonlinearity(f) is f


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("step", "unknown nonlinearity 'step'"),
        (3.0, "expected a name, an activation or a function, got 3.0"),
        (np.log, "its value at -0.132105 is nan"),
        (lambda u: 1.0, "got shape ()"),
        (np.mean, "got shape ()"),
        (lambda u: u[0], "got shape (16,)"),
        (lambda u: None, "expected real numbers, got values of type object"),
        (lambda u: 1j * u, "expected real numbers, got values of type complex"),
        (lambda u: u - u.mean(), "depends on the other entries"),
        (lambda u: u + np.random.default_rng().standard_normal(u.shape), "depends on the other entries, or on chance"),
        (lambda u: np.maximum(u, 0, out=u), "changes the array"),
        (lambda u: {}[u], "fails at 0.12573"),
        (lambda u: "a" if u > 0 else 1.0, "expected a number, got 'a'"),
        (math.sqrt, "fails at -0.132105"),
        (lambda: 0.0, "takes 0 positional arguments"),
    ],
)
def test_what_is_no_function_of_one_number_is_refused(given, message):
    with pytest.raises(ov.InputError) as refusal:
        nonlinearity(given)
    assert message in str(refusal.value)


def test_a_function_that_fails_where_u_may_be():
    def picky(u):
        if np.any(np.abs(u) > 6):
            raise RuntimeError("too far")
        return u

    with pytest.raises(ov.InputError, match="RuntimeError: too far"):
        gaussian_equivalent(picky)


def test_fields_of_a_nonlinearity_are_checked():
    with pytest.raises(ov.InputError, match="name: expected text"):
        Nonlinearity(3, np.tanh)  # type: ignore[arg-type]
    with pytest.raises(ov.InputError, match=r"kinks\[0\]: expected a number"):
        Nonlinearity("f", np.tanh, kinks=("a",))  # type: ignore[arg-type]
    with pytest.raises(ov.InputError, match="f: expected a function"):
        Nonlinearity("f", 1.0)  # type: ignore[arg-type]
    assert repr(Nonlinearity("f", np.tanh, kinks=(1,))) == "Nonlinearity('f')"
    assert Nonlinearity("f", np.tanh) == Nonlinearity("f", np.tanh)


def test_a_name_of_a_built_in_does_not_make_it_one():
    mine = Nonlinearity("relu", lambda u: np.maximum(u, 0) + 1)
    assert gaussian_equivalent(mine).a == pytest.approx(1 + (2 * math.pi) ** -0.5, abs=1e-14)
    assert nonlinearity(ov.network.activations.BUILT_IN["relu"]) is BUILT_IN["relu"]


def test_naming_a_nonlinearity_compiles_nothing():
    code = (
        "import sys; from overlaps.data.nonlinearity import nonlinearity, gaussian_equivalent; "
        "nonlinearity('tanh'); nonlinearity(lambda u: 1.0 if u > 0 else 0.0); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_slopes_of_activations_are_finite_differences(name: str) -> None:
    """As functions of arrays, of one number each, off their kinks."""
    u, h = np.linspace(-4.0, 4.0, 41)[:, None] + 0.03, 1e-5
    f, bend = nonlinearity(name).function, slope(ACTIVATIONS[name]).function
    np.testing.assert_allclose(bend(u), (f(u + h) - f(u - h)) / (2 * h), atol=1e-9)


def test_rounding_of_closed_forms_is_stated() -> None:
    """Of u itself, whose mean square is known in fractions: numbers of any size are off by less than is stated."""
    rng = np.random.default_rng(7)
    mean, sd = 10 ** rng.uniform(-3, 6, (2, 200))
    found = moments("linear", mean, sd)
    exact = [Fraction(m) ** 2 + Fraction(s) ** 2 for m, s in zip(mean.tolist(), sd.tolist(), strict=True)]
    off = np.array([abs(float(Fraction(c) - e)) for c, e in zip(found.c.tolist(), exact, strict=True)])
    assert off.any() and np.all(off <= found.error)
    assert np.all(found.error <= 1e-14 * (mean + sd) * np.maximum(1.0, mean + sd))
