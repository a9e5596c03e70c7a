"""Problems: what is refused and in which words, and that a spec written and read back is the same problem."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import overlaps as ov
from overlaps import schedules
from problems import problem

# --- TOML ------------------------------------------------------------------------------------------------------------

numbers = st.floats(-1e12, 1e12, allow_nan=False)
positive = st.floats(0, 1e12, exclude_min=True)


@st.composite
def spectra(draw: st.DrawFn) -> Any:
    kind = draw(st.sampled_from(["isotropic", "power law", "levels", "levels and fractions"]))
    if kind == "isotropic":
        return ov.Isotropic()
    if kind == "power law":
        return ov.PowerLaw(draw(st.integers(1, 40)), draw(st.floats(-0.9, 5)))
    values = draw(st.lists(positive, min_size=1, max_size=6))
    if kind == "levels":
        return ov.Spectrum(values)
    shares = np.array(draw(st.lists(st.floats(0.01, 1), min_size=len(values), max_size=len(values))))
    return ov.Spectrum(values, shares / shares.sum())


@st.composite
def committees(draw: st.DrawFn, student: bool) -> ov.Committee:
    units = draw(st.integers(1, 5))
    name = draw(st.sampled_from(sorted(ov.network.activations.BUILT_IN)))
    readout = draw(numbers | st.lists(numbers, min_size=units, max_size=units))
    return ov.Committee(units, name, readout, draw(st.booleans()) if student else False)


@st.composite
def problems(draw: st.DrawFn) -> ov.Problem:
    student = draw(committees(student=True))
    readout_rate = draw(st.none() | st.floats(0, 1e6)) if student.train_readout else None
    return ov.Problem(
        data=ov.GaussianInputs(draw(spectra())),
        teacher=draw(committees(student=False)),
        student=student,
        algorithm=ov.OnlineSGD(draw(positive), readout_rate, draw(st.floats(0, 1e6))),
        label_noise=draw(st.floats(0, 1e6)),
    )


@settings(max_examples=300, deadline=None)
@given(problems())
def test_spec_round_trip(p: ov.Problem) -> None:
    """A float that loses digits, a default left out that was not the default, a list read back as something else."""
    text = p.to_toml()
    again = ov.Problem.from_toml(text)
    assert again == p
    assert hash(again) == hash(p)
    assert again.to_toml() == text
    assert str(p) == text


def test_defaults_are_left_out_and_filled_in() -> None:
    p = problem()
    assert "loss" not in p.to_toml() and "decay" not in p.to_toml()
    assert ov.Problem.from_toml(p.to_toml()).loss == "square"


SPEC = """
label_noise = 0.1

[data.spectrum]
kind = "PowerLaw"
levels = 4
exponent = 0.5

[teacher]
units = 2

[student]
units = 3
activation = "erf"

[algorithm]
rate = 0.1
"""


def test_hand_written_spec() -> None:
    """`kind` may be left out where there is only one."""
    p = ov.Problem.from_toml(SPEC)
    assert p == problem(students=3, spectrum=ov.PowerLaw(4, 0.5), rate=0.1, label_noise=0.1)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("rate =", "rat =", r"unknown field in spec.algorithm 'rat'; did you mean 'rate'\?"),
        ("label_noise", "label_nose", r"unknown field in spec 'label_nose'; did you mean 'label_noise'\?"),
        ("[student]\nunits", "[student]\nunit", r"unknown field in spec.student 'unit'; did you mean 'units'\?"),
        ("[student]", "[studnet]", r"unknown field in spec 'studnet'; did you mean 'student'\?"),
        ('"PowerLaw"', '"Powerlaw"', r"unknown kind in spec.data.spectrum 'Powerlaw'; did you mean 'PowerLaw'\?"),
        ('kind = "PowerLaw"\n', "", r"spec.data.spectrum: needs kind = one of Isotropic, PowerLaw, Spectrum"),
        ('"erf"', '"erff"', r"spec.student: unknown activation 'erff'; did you mean 'erf'\?"),
        ("units = 3", "units = 0", "spec.student: units: expected at least 1, got 0"),
        ("units = 3", "units = 2.5", "spec.student: units: expected a whole number, got 2.5"),
        ("units = 3", 'units = "3"', "spec.student: units: expected a whole number"),
        ("units = 3\n", "", "spec.student: Committee needs units"),
        ("rate = 0.1", "rate = -0.1", "spec.algorithm: rate: expected a number above 0, got -0.1"),
        ("rate = 0.1", "rate = nan", "spec.algorithm: rate: expected a finite number"),
        ("rate = 0.1", "rate = true", "spec.algorithm: rate: expected a number"),
        ("rate = 0.1", "rate = [0.1]", "spec.algorithm: rate: expected a number"),
        ("rate = 0.1", "rate = [[0.1], [0.1, 0.2]]", "spec.algorithm: rate: expected a number"),
        ("rate = 0.1", "rate = 1979-05-27", "spec.algorithm: rate: expected a number"),
        ("label_noise = 0.1", "label_noise = -1", "spec: label_noise: expected a number of at least 0"),
        ("label_noise = 0.1", 'loss = "sqare"', r"unknown loss 'sqare'; did you mean 'square'\?"),
        ("label_noise = 0.1", "loss = 3", "loss: expected a name or an overlaps.Loss"),
        ("label_noise = 0.1", "data = 3", "spec: (data|not valid TOML)"),
        ("[algorithm]\nrate = 0.1", "", "spec: Problem needs algorithm"),
        ("[teacher]", "[teacher", "spec: not valid TOML"),
        ('activation = "erf"', "readout = [1.0, 2.0]", r"readout: expected one number or 3 \(one per unit\), got 2"),
        ('activation = "erf"', "readout = [[1.0], [1.0, 2.0], [3.0]]", "readout"),
        ('activation = "erf"', 'readout = "one"', "readout: expected a number"),
        ('activation = "erf"', "train_readout = 1", "train_readout: expected true or false"),
        ("levels = 4", "levels = 0", "levels: expected at least 1"),
        ("exponent = 0.5", "exponent = -1.5", "exponent: expected a number above -1"),
    ],
)
def test_mistakes_in_a_spec_name_the_field(old: str, new: str, words: str) -> None:
    assert old in SPEC
    with pytest.raises(ov.InputError, match=words) as caught:
        ov.Problem.from_toml(SPEC.replace(old, new, 1))
    assert "\n" not in str(caught.value)


# --- spectra ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("eigenvalues", "fractions", "words"),
    [
        ([1.0, -0.5], None, "eigenvalues: .*none below zero, got -0.5 at position 1"),
        ([0.0, 0.0], None, "eigenvalues: at least one must be above zero"),
        ([], None, "eigenvalues: expected at least one"),
        ([[1.0]], None, "eigenvalues: expected shape"),
        ([float("inf")], None, "eigenvalues: has entries that are not finite"),
        ([10**400], None, "eigenvalues: expected"),
        ("abc", None, "eigenvalues: expected an array of finite numbers"),
        ([[1.0], [1.0, 2.0]], None, "eigenvalues: expected an array of finite numbers"),
        ([1.0, 2.0], [0.5, 0.6], "fractions: expected a sum of one, got 1.1"),
        ([1.0, 2.0], [1.0, 0.0], "fractions: expected numbers above zero"),
        ([1.0, 2.0], [1.5, -0.5], "fractions: expected numbers above zero"),
        ([1.0, 2.0], [1.0], r"fractions: expected shape \(2\), got \(1,\)"),
    ],
)
def test_bad_spectra(eigenvalues: Any, fractions: Any, words: str) -> None:
    with pytest.raises(ov.InputError, match=words):
        ov.Spectrum(eigenvalues, fractions)


def test_power_law_has_mean_one() -> None:
    spectrum = ov.PowerLaw(10, 0.25)
    assert np.mean(spectrum.eigenvalues) == pytest.approx(1, abs=1e-14)
    assert spectrum.eigenvalues[0] == pytest.approx(4.2135804443507325, abs=1e-14)
    ratios = np.array(spectrum.eigenvalues[1:]) / np.array(spectrum.eigenvalues[:-1])
    assert ratios == pytest.approx((np.arange(1, 10) / np.arange(2, 11)) ** 1.25)


# --- the problem itself ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["data", "teacher", "student", "algorithm"])
def test_parts_of_the_wrong_kind(field: str) -> None:
    p = problem()
    parts: dict[str, Any] = {"data": p.data, "teacher": p.teacher, "student": p.student, "algorithm": p.algorithm}
    with pytest.raises(ov.InputError, match=f"^{field}: expected"):
        ov.Problem(**{**parts, field: "something"})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"readout_rate": 0.1}, "readout_rate: has no effect on a fixed readout"),
        ({"label_noise": -1.0}, "label_noise: expected a number of at least 0"),
        ({"loss": "cube"}, "unknown loss 'cube'"),
        ({"loss": len}, "loss: expected a name or an overlaps.Loss"),
        ({"activation": 3}, "activation: expected a name or an overlaps.Activation"),
    ],
)
def test_bad_problems(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ov.InputError, match=words):
        problem(**options)


def test_teachers_do_not_learn() -> None:
    p = problem()
    with pytest.raises(ov.InputError, match="teacher: a teacher does not learn"):
        ov.Problem(data=p.data, teacher=ov.Committee(2, train_readout=True), student=p.student, algorithm=p.algorithm)


def test_equal_problems_are_equal_and_hash_alike() -> None:
    """Arrays and lists, names and built-in objects: different ways to say the same."""
    a = problem(readout=np.array([1.0, 2.0]), spectrum=ov.Spectrum(np.array([1.0, 2.0])))
    b = problem(ov.network.activations.BUILT_IN["erf"], readout=[1, 2], spectrum=ov.Spectrum([1, 2], [0.5, 0.5]))
    assert a == b and hash(a) == hash(b)
    assert a != problem(readout=[2.0, 1.0], spectrum=ov.Spectrum([1.0, 2.0]))
    assert len({a, b, problem()}) == 2


def test_rate_of_the_readout() -> None:
    assert problem().update.readout_rate is None
    assert not np.any(problem().update.flow(0.0).P_readout)
    assert problem(train_readout=True, rate=0.3).update.readout_rate == schedules.Constant(0.3)
    assert problem(train_readout=True, rate=0.3).update.flow(0.0).P_readout == 0.3
    assert problem(train_readout=True, rate=0.3, readout_rate=0.0).update.flow(0.0).P_readout == 0


# --- functions written by users --------------------------------------------------------------------------------------


def value(lam, nu, c, v):
    return 0.5 * (np.sum(v * lam) - np.sum(nu)) ** 2


def gradient(lam, nu, c, v):
    miss = np.sum(v * lam) - np.sum(nu)
    return v * miss, lam * miss


def wrong_in_fields(lam, nu, c, v):
    miss = np.sum(v * lam) - np.sum(nu)
    return v * miss * 1.001, lam * miss


def wrong_in_readout(lam, nu, c, v):
    miss = np.sum(v * lam) - np.sum(nu)
    return v * miss, -lam * miss


def one_part(lam, nu, c, v):
    return v * (np.sum(v * lam) - np.sum(nu))


def wrong_shape(lam, nu, c, v):
    return v[:1], v[:1]


def nowhere(lam, nu, c, v):
    return float("nan")


def test_right_gradient_is_accepted() -> None:
    assert "user" in repr(problem(loss=ov.Loss(value, gradient), train_readout=True))


@pytest.mark.parametrize(
    ("loss", "trained", "words"),
    [
        (ov.Loss(value, wrong_in_fields, "mine"), False, r"loss 'mine': gradient gives d value/d lam\[0\]"),
        (ov.Loss(value, wrong_in_readout), True, r"loss 'user': gradient gives d value/d v\[0\]"),
        (ov.Loss(value, one_part), False, "loss 'user': "),
        (ov.Loss(value, wrong_shape), False, r"gradient must return two arrays of shape \(2,\), got \(1,\) and \(1,\)"),
        (ov.Loss(nowhere, gradient), False, "loss 'user': "),
        (ov.Loss(lambda lam: 0.0, gradient), False, "loss 'user': called with .* it failed: TypeError"),
    ],
)
def test_wrong_losses(loss: ov.Loss, trained: bool, words: str) -> None:
    with pytest.raises(ov.InputError, match=words):
        problem(loss=loss, train_readout=trained)


def test_gradient_in_a_fixed_readout_is_not_asked_for() -> None:
    problem(loss=ov.Loss(value, wrong_in_readout))


def test_label_noise_with_a_user_loss() -> None:
    with pytest.raises(ov.InputError, match="label_noise: a user-written loss sees fields, not labels"):
        problem(loss=ov.Loss(value, gradient), label_noise=0.1)


@pytest.mark.parametrize(
    ("function", "derivative", "words"),
    [
        (math.sin, math.sin, r"activation 'mine': derivative\(-3.1\) = .* but finite differences"),
        (lambda x: abs(x - 0.17), lambda x: 1.0 if x > 0.17 else -1.0, "list the kink in kinks="),
        (lambda x: math.inf, lambda x: 0.0, "activation 'mine'"),
        (math.log, lambda x: 1 / x, "activation 'mine'"),
    ],
)
def test_wrong_activations(function: Any, derivative: Any, words: str) -> None:
    with pytest.raises(ov.InputError, match=words):
        ov.Activation("mine", function, derivative)


def test_kink_may_be_listed() -> None:
    a = ov.Activation("bent", lambda x: abs(x - 0.17), lambda x: 1.0 if x > 0.17 else -1.0, kinks=[0.17])
    assert a.kinks == (0.17,)


def test_user_functions_cannot_be_written() -> None:
    """TOML has no functions; the refusal says which field and why."""
    sine = ov.Activation("sine", math.sin, math.cos)
    for p, field in ((problem(sine), "activation"), (problem(loss=ov.Loss(value, gradient)), "loss")):
        with pytest.raises(ov.InputError, match=re.escape(f"{field}: ") + ".*Python functions"):
            p.to_toml()
        assert str(p) == repr(p)


def test_unknown_name_in_the_package() -> None:
    with pytest.raises(AttributeError, match="did you mean 'Committee'"):
        _ = ov.Comittee  # pyright: ignore[reportAttributeAccessIssue]


def test_functions_that_cannot_be_compiled_are_refused_with_the_reason() -> None:
    """A user's function that Numba does not take, instead of its page-long message; a function of `math` is fine."""
    from scipy.special import erf

    wrong = ov.Activation("mine", lambda x: float(erf(x)), lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x))
    p = problem(wrong, 1, 1)
    for scale in (ov.solve, ov.sample, ov.train):
        with pytest.raises(ov.InputError, match=r"'mine'.*cannot be compiled.*'erf'") as caught:
            scale(p, ov.draw(p, 20), [1.0])
        assert "\n" not in str(caught.value)
    right = problem(ov.Activation("sine", math.sin, math.cos), 1, 1)
    assert np.isfinite(ov.solve(right, ov.draw(right, 20), [1.0]).data["error"]).all()
