"""Verdicts: each of the four is given where it is due, and wrong theories are found."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats

import overlaps as ov
from overlaps.trajectory.points import decay_exponent, holm

TIMES = ov.logtimes(0.1, 5, 10)


def problem(rate: float = 0.5, **change) -> ov.Problem:
    parts = {
        "data": ov.GaussianInputs(ov.PowerLaw(levels=4, exponent=0.5)),
        "teacher": ov.Committee(2),
        "student": ov.Committee(2),
        "algorithm": ov.OnlineSGD(rate),
    }
    return ov.Problem(**{**parts, **change})


@pytest.fixture(scope="module")
def large():
    chosen = problem()
    start = ov.draw(chosen, 2000, seed=0, scale=0.3)
    return chosen, start, ov.solve(chosen, start, TIMES), ov.sample(chosen, start, TIMES, runs=48)


def test_agrees(large):
    _, _, macro, meso = large
    verdict = ov.compare(macro, meso)
    assert verdict.verdict == "agrees", verdict
    assert "would have been seen" in verdict.reason and "z = " in repr(verdict)
    assert np.isfinite(verdict.table["z"]).all()


def test_one_run_is_underpowered(large):
    chosen, start, macro, _ = large
    assert ov.compare(macro, ov.sample(chosen, start, TIMES, runs=1)).verdict == "underpowered"


def test_one_run_as_theory_is_underpowered_and_invents_no_z(large):
    chosen, start, macro, meso = large
    for verdict in (
        ov.compare(ov.sample(chosen, start, TIMES, runs=1, seed=5), meso),
        ov.compare(macro, ov.sample(chosen, start, TIMES, runs=1)),
    ):
        assert verdict.verdict == "underpowered" and not verdict.table["z"].any()


def test_too_few_runs_to_relabel_are_underpowered(large):
    """Four against four runs have 70 relabellings: no p below 2/70, so nothing can be claimed at level 0.01."""
    chosen, start, _, _ = large
    few = ov.sample(chosen, start, TIMES, runs=4)
    verdict = ov.compare(few, ov.sample(problem(0.8), start, TIMES, runs=4, seed=1))
    assert verdict.verdict == "underpowered" and "relabellings" in verdict.reason
    assert ov.compare(few, ov.sample(problem(0.8), start, TIMES, runs=4, seed=1), level=0.05).verdict == "disagrees"


def test_deviations_of_few_runs_are_those_of_welch():
    """Of the error, of four runs against seven, and of the four against theory, by the tests of SciPy."""
    chosen = problem()
    start, times = ov.draw(chosen, 200, seed=0, scale=0.3), [0.5, 1.0, 3.0]
    macro = ov.solve(chosen, start, times)
    four, seven = (ov.sample(chosen, start, times, runs=runs, seed=runs) for runs in (4, 7))
    values = {side: side.data["error"].values for side in (four, seven, macro)}
    welch = stats.ttest_ind(values[four], values[seven], equal_var=False)
    one = stats.ttest_1samp(values[four], values[macro][0])
    for sides, known in (((seven, four), welch), ((macro, four), one)):
        table = ov.compare(*sides, finite_size=False).table
        z = table["z"].values[table["variable"].values == "error"]
        np.testing.assert_allclose(z, np.sign(known.statistic) * stats.norm.isf(known.pvalue / 2), rtol=1e-5)


def test_wide_error_bars_are_underpowered():
    chosen = problem()
    start = ov.draw(chosen, 40, seed=0, scale=0.3)
    verdict = ov.compare(ov.solve(chosen, start, TIMES), ov.sample(chosen, start, TIMES, runs=3))
    assert verdict.verdict == "underpowered" and "gone unseen" in verdict.reason


def test_finite_size():
    """At N = 100 two thousand runs resolve the bias, and it shrinks as 1/N."""
    chosen = problem(1.0)
    start = ov.draw(chosen, 100, seed=0, scale=0.3)
    verdict = ov.compare(ov.solve(chosen, start, TIMES), ov.sample(chosen, start, TIMES, runs=2000))
    assert verdict.verdict == "finite-size", verdict
    assert verdict.exponent is not None and verdict.exponent.low > 0.75
    without = ov.compare(verdict.theory, verdict.simulation, finite_size=False)
    assert without.verdict == "disagrees" and "not measured" in without.reason


class _Wrong:
    """Deliberately wrong theories, as trajectories."""

    @staticmethod
    def rate(chosen, start):
        return ov.solve(problem(0.55), start, TIMES)

    @staticmethod
    def transposed(chosen, start):
        return ov.solve(chosen, dataclasses.replace(start, A=start.A.transpose(0, 2, 1)), TIMES)

    @staticmethod
    def no_noise_term(chosen, start):
        from overlaps.online import macro

        class Dropped(macro.EquationOfMotion):
            def __init__(self, *parts):
                super().__init__(*parts)
                self.levels = self.levels._replace(noise=np.zeros(self.B))  # the η² term is proportional to it

        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(macro.SYSTEMS, "levels", Dropped)
            return ov.solve(chosen, start, TIMES)


@pytest.mark.parametrize("wrong", ["rate", "transposed", "no_noise_term"])
def test_wrong_theories_disagree(wrong, large):
    chosen, start, _, meso = large
    verdict = ov.compare(getattr(_Wrong, wrong)(chosen, start), meso)
    assert verdict.verdict == "disagrees", verdict


def test_micro_against_meso_is_an_exact_test(large):
    chosen, start, _, meso = large
    micro = ov.train(chosen, start, TIMES, runs=12)
    assert ov.compare(meso, micro).verdict == "agrees"
    other = ov.sample(problem(0.6), start, TIMES, runs=24)
    assert ov.compare(meso, other).verdict == "disagrees"


def test_theory_own_error_is_taken_off(large):
    _, _, macro, meso = large
    data = macro.data.copy(deep=True)
    data["R"] = data["R"] + 0.05
    shifted = dataclasses.replace(macro, data=data)
    assert ov.compare(shifted, meso, finite_size=False).verdict == "disagrees"
    for name in ("Q", "R", "v", "error"):
        data[name].attrs["accuracy"] = 0.06
    assert ov.compare(shifted, meso).verdict == "agrees"


def test_mismatches_are_refused(large):
    chosen, start, macro, meso = large
    with pytest.raises(ov.InputError, match="times differ"):
        ov.compare(ov.solve(chosen, start, TIMES[:-1]), meso)
    with pytest.raises(ov.InputError, match="pass the theory first"):
        ov.compare(meso, macro)
    with pytest.raises(ov.InputError, match="different size"):
        ov.compare(meso, ov.sample(chosen, start.at_size(chosen, 100), TIMES, runs=2))
    with pytest.raises(ov.InputError, match=r"theory: expected an overlaps\.Trajectory, got 3"):
        ov.compare(3, meso)
    with pytest.raises(ov.InputError, match="level"):
        ov.compare(macro, meso, level=2)
    other = problem(student=ov.Committee(3))
    with pytest.raises(ov.InputError, match="units differ"):
        ov.compare(ov.solve(other, ov.draw(other, 100), TIMES), meso)


def test_false_alarm_rate_is_the_stated_one():
    """200 comparisons of correct Gaussian means at level 0.05: no more alarms than a binomial allows at 1e-4."""
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(200):
        x = rng.standard_normal((12, 30))
        t = np.abs(x.mean(0)) / (x.std(0, ddof=1) / np.sqrt(12))
        alarms += holm(2 * stats.t.sf(t, 11)).min() < 0.05
    assert alarms <= 23


def test_holm_against_the_definition():
    p = np.array([0.01, 0.04, 0.03, 0.005])
    np.testing.assert_allclose(holm(p), [0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_decay_exponent_is_recovered(power):
    sizes = np.array([100.0, 200.0, 400.0])
    b = np.array([1.0, -2.0, 0.3])
    deviations = [b * n**-power for n in sizes]
    assert decay_exponent(sizes, deviations, [np.ones(3)] * 3) == pytest.approx(power, abs=0.011)


def test_check_scaling_refuses_nonsense():
    with pytest.raises(ov.InputError, match="at least two"):
        ov.check_scaling(problem(), [100])
    with pytest.raises(ov.InputError, match="runs"):
        ov.check_scaling(problem(), [100, 200], runs=3)
    with pytest.raises(ov.InputError, match="expected a list of sizes, got 100"):
        ov.check_scaling(problem(), 100)


def test_sizes_of_a_scaling_are_independent():
    """The same normals at two sizes would make the fit's intervals wrong."""
    from overlaps.compare import finite_size
    from overlaps.trajectory.points import points

    chosen = problem(data=ov.GaussianInputs())
    start = ov.draw(chosen, 200, seed=0, scale=0.5)
    values = []
    real = ov.sample

    def spy(*args, **kwargs):
        result = real(*args, **kwargs)
        values.append(points(result).values[:, -1])
        return result

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finite_size, "sample", spy)
        ov.check_scaling(chosen, [60, 120], start=start, times=(0.5, 1.0), runs=1000)
    assert abs(np.corrcoef(values)[0, 1]) < 0.13  # four standard deviations


def test_plots_and_plain_values(large, tmp_path):
    import json

    import matplotlib.pyplot as plt

    _, _, macro, meso = large
    verdict = ov.compare(macro, meso)
    assert verdict.plot("R").get_title().startswith("agrees")
    assert json.loads(json.dumps(verdict.to_dict()))["verdict"] == "agrees"
    scaling = ov.check_scaling(problem(), [40, 80], runs=50, times=(0.5, 1.0))
    assert scaling.plot().get_xlabel() == "size N"
    plt.close("all")
