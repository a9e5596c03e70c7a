"""The comparison theorem: the alternative process, its test of equality in law, and continuation to z² = −1.

False alarms: each of eight checks of the theorem, and the comparison of trajectories, has level 10⁻³ by an exact test;
bounds on z-scores are those of 10⁻⁵ for all points of a test together, if they were normal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import overlaps as ov
from overlaps.full_batch import comparison_theorem
from overlaps.full_batch.comparison_processes import Alternative, alternative, perturbed
from overlaps.full_batch.comparison_theorem import check_theorem
from overlaps.full_batch.continuation import continued

PAIR = {"gram": [[1, -0.5], [-0.5, 1]], "labels": [0, 3]}
# the gradient of an erf that misses its label by far has a sign, so that low moments show how q and p depend
SETTINGS: dict[str, dict[str, Any]] = {
    "one class": {"data": ov.GaussianMixture(gram=[[0.5]], labels=[3]), "student": ov.Committee(1, "erf")},
    "two classes": {"data": ov.GaussianMixture(**PAIR), "student": ov.Committee(1, "erf")},
    "two outputs": {
        "data": ov.GaussianMixture(gram=PAIR["gram"]), "student": ov.Softmax(2), "loss": "cross-entropy",
    },
    "teacher": {
        "data": ov.GaussianInputs(), "student": ov.Committee(2, "erf"), "teacher": ov.Committee(1, "erf", 2.0),
    },
    "covariances": {
        "data": ov.GaussianMixture(
            gram=[[[0.5, -0.2], [-0.2, 0.5]], [[0.1, 0.1], [0.1, 0.2]]], labels=[0, 3],
            variance=[[1.0, 0.3], [0.4, 2.0]], spectrum=ov.Spectrum([1.0, 1.5], [0.5, 0.5]),
        ),
        "student": ov.Committee(1, "erf"),
    },
}  # fmt: skip


def small(name: str, n: int, m: int, steps: int, rate: float = 0.5) -> tuple[ov.Problem, ov.Start]:
    """A problem with n dimensions and m samples, and students of length one."""
    problem = ov.Problem(**SETTINGS[name], algorithm=ov.FullBatch(steps, rate, ratio=n / m))
    rng = np.random.default_rng(0)
    student = rng.standard_normal((problem.student.units, n))
    student *= np.sqrt(n) / np.linalg.norm(student, axis=1, keepdims=True)
    teacher = rng.standard_normal((problem.teacher_units, n))
    return problem, ov.Start.from_weights(problem, student, teacher)


def paper(size: int, activation: str, loss: str, steps: int = 6) -> tuple[ov.Problem, ov.Start]:
    """Two classes at ratio one, from a start of length 0.1 orthogonal to the means."""
    problem = ov.Problem(
        data=ov.GaussianMixture(gram=PAIR["gram"], labels=[0, 1]), student=ov.Committee(1, activation), loss=loss,
        algorithm=ov.FullBatch(steps, 0.2),
    )  # fmt: skip
    student = np.zeros((1, size))
    student[0, 5] = 0.1 * np.sqrt(size)
    return problem, ov.Start.from_weights(problem, student)


@pytest.mark.parametrize(
    ("name", "n", "m", "steps", "sigma", "z"),
    [
        ("one class", 2, 2, 1, 0.5, 0.0),
        ("one class", 1, 1, 1, 1.0, 0.5),
        ("one class", 2, 3, 2, 0.3, 1.0),
        ("one class", 1, 1, 2, 0.5, 1.0),
        ("two classes", 3, 4, 2, 0.4, 0.7),
        ("two outputs", 3, 4, 1, 0.5, 1.0),
        ("teacher", 3, 3, 1, 0.5, 1.0),
        ("covariances", 4, 4, 2, 0.4, 0.7),
    ],
)
def test_theorem_holds(name: str, n: int, m: int, steps: int, sigma: float, z: float) -> None:
    found = check_theorem(*small(name, n, m, steps), sigma=sigma, z=z, seed=3)
    assert found.verdict == "holds in law", found
    assert found.control_p < 1e-3 <= found.p


class NoGammaInFields(Alternative):
    def fields(self, theta: np.ndarray) -> np.ndarray:
        z, self.z = self.z, 0.0
        out = super().fields(theta)
        self.z = z
        return out


class WNotTransposed(Alternative):
    def fields(self, theta: np.ndarray) -> np.ndarray:
        W, self.W = self.W, np.swapaxes(self.W, 2, 3)
        out = super().fields(theta)
        self.W = W
        return out


class NoWInFields(Alternative):
    def fields(self, theta: np.ndarray) -> np.ndarray:
        W, self.W = self.W, np.zeros_like(self.W)
        out = super().fields(theta)
        self.W = W
        return out


class GammaNotShared(Alternative):
    def gradient(self, omega: np.ndarray) -> np.ndarray:
        self.Gamma, own = -self.Gamma, self.Gamma
        out = super().gradient(omega)
        self.Gamma = own
        return out


class NoSigmaInFactors(Alternative):
    def __init__(self, task: Any, runs: int, rng: Any, sigma: float, z: float) -> None:
        super().__init__(task, runs, rng, sigma, z)
        self.columns.sigma = 0.1 * sigma


class StrictlyUpper(Alternative):
    """Without the diagonal blocks in the line of Q."""

    def gradient(self, omega: np.ndarray) -> np.ndarray:
        f = self.columns
        along = f.along_theta

        def strictly(C: np.ndarray) -> np.ndarray:
            C[..., -C.shape[3] :, :] = 0.0
            return along(C)

        f.along_theta = strictly  # type: ignore[method-assign]
        out = super().gradient(omega)
        del f.along_theta
        return out


@pytest.mark.parametrize(
    "wrong", [NoGammaInFields, WNotTransposed, NoWInFields, GammaNotShared, NoSigmaInFactors, StrictlyUpper]
)
def test_wrong_processes_are_rejected(wrong: type[Alternative], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison_theorem, "Alternative", wrong)
    found = check_theorem(*small("one class", 1, 1, 1), sigma=1.0, z=1.0, runs=40000, seed=3)
    assert found.verdict == "fails"
    assert repr(found).startswith("fails: ψ against φ′")


def test_few_runs_say_so() -> None:
    found = check_theorem(*small("one class", 2, 2, 1), sigma=0.5, z=1.0, runs=50, seed=3)
    assert found.verdict == "underpowered"
    assert "N = 2, m = 2, 50 runs each" in repr(found) and "control, ψ with z = 0" in repr(found)


def test_trajectories_agree_and_a_wrong_z_does_not() -> None:
    problem, start = small("covariances", 12, 12, 4)
    options: dict[str, Any] = {"times": [2, 4], "runs": 1000, "sigma": 0.2, "progress": False}
    one, other = (process(problem, start, z=1.0, **options) for process in (alternative, perturbed))
    verdict = ov.compare(one, other, level=1e-3, finite_size=False)
    assert verdict.verdict == "agrees", verdict
    assert (one.scale, other.scale) == ("alternative", "perturbed")
    wrong = alternative(problem, start, z=0.0, **options)
    assert ov.compare(wrong, other, level=1e-3, finite_size=False).verdict == "disagrees"


def test_same_seed_same_bits() -> None:
    problem, start = small("two outputs", 6, 8, 3)
    for process in (alternative, perturbed):
        one, again, other = (process(problem, start, runs=5, seed=s, progress=False).data["Q"] for s in (0, 0, 1))
        assert one.equals(again) and not one.equals(other)


@pytest.mark.parametrize("name", ["two classes", "teacher"])
def test_sigma_zero_is_the_limit(name: str) -> None:
    """Also with teachers, whose duals are zero, so that V_omega would be singular if it had them."""
    problem, start = small(name, 20, 20, 3)
    zero, tiny, small_ = (
        alternative(problem, start, runs=10, sigma=sigma, z=1.0, progress=False).data["training_error"]
        for sigma in (0.0, 1e-6, 1e-3)
    )
    apart = [float(abs(x - zero).max()) for x in (tiny, small_)]
    assert 0 < apart[0] < 1e-5
    assert apart[1] == pytest.approx(1e3 * apart[0], rel=0.1)


def test_singular_kernels_are_named_and_what_came_before_is_kept() -> None:
    problem, start = small("two classes", 8, 8, 7)  # four samples of each class have four independent duals
    with pytest.raises(ov.NumericalError, match=r"V_omega is singular at step 4.*use sigma > 0") as caught:
        alternative(problem, start, runs=10, sigma=0.0, progress=False)
    assert (caught.value.quantity, caught.value.time) == ("V_omega", 4.0)
    assert caught.value.partial.time.tolist() == [0, 1, 2, 3]
    assert np.isfinite(caught.value.partial.data["Q"]).all()
    still = ov.Start.from_weights(problem, np.zeros((1, 8)))
    with pytest.raises(ov.NumericalError, match="V_theta is singular at step 0") as caught:
        perturbed(problem, still, runs=3, sigma=0.0, progress=False)
    assert caught.value.partial is None
    assert np.isfinite(perturbed(problem, still, runs=3, progress=False).data["Q"]).all()


def test_divergence_is_an_error() -> None:
    problem, start = small("two classes", 6, 6, 8)
    linear = ov.Problem(data=problem.data, student=ov.Committee(1, "linear"), algorithm=ov.FullBatch(8, 1e3))
    for run in (lambda: alternative(linear, start, runs=3, progress=False),
                lambda: check_theorem(linear, start, sigma=0.1, z=1.0, runs=20)):  # fmt: skip
        with pytest.raises(ov.NumericalError, match=r"diverged at step .* reduce rate"):
            run()


def test_bad_input_is_refused() -> None:
    problem, start = small("two classes", 4, 4, 2)
    for process in (alternative, perturbed):
        with pytest.raises(ov.InputError, match="sigma: expected a number of at least 0, got -1"):
            process(problem, start, sigma=-1.0)
        with pytest.raises(ov.InputError, match="z: expected a finite number"):
            process(problem, start, z=float("nan"))
        with pytest.raises(ov.InputError, match=r"start: .*use draw or Start\.from_weights"):
            process(problem, ov.Start.from_overlaps(problem, [[1.0]]))
    with pytest.raises(ov.InputError, match="sigma: expected a number above 0"):
        check_theorem(problem, start, sigma=0.0, z=1.0)
    with pytest.raises(ov.InputError, match="level: expected a chance below one"):
        check_theorem(problem, start, sigma=1.0, z=1.0, level=1.0)
    with pytest.raises(ov.InputError, match="runs: expected at least 3"):
        continued(problem, start, runs=2)
    online = ov.Problem(data=problem.data, student=problem.student, algorithm=ov.OnlineSGD(0.1))
    with pytest.raises(ov.InputError, match="algorithm: expected FullBatch"):
        alternative(online, start)
    wide, far = paper(60_000, "linear", "square")
    with pytest.raises(ov.InputError, match=r"size: .*use alternative"):
        perturbed(wide, far)


def scores(found: Any, brute: ov.Trajectory, name: str, samples: int, statistic: str, z2: float) -> np.ndarray:
    """z-scores of a statistic against that of brute-force runs, where it fluctuates."""
    x = brute.data[name]
    values = x if statistic == "mean" else samples * (x - x.mean("run")) ** 2
    at = found.sel(z2=z2)
    error = np.sqrt(at[f"{statistic}_{name}_se"] ** 2 + values.var("run", ddof=1) / brute.runs)
    apart = at[f"{statistic}_{name}"] - values.mean("run")
    return (apart / error).values[(error > 1e-12).values]


@pytest.mark.parametrize("loss", ["square", "logistic"])
@pytest.mark.parametrize(("activation", "times", "runs"), [("softplus", [0, 1, 3, 6], 2000), ("relu", [6], 1000)])
def test_continuation_is_training(activation: str, times: list[int], runs: int, loss: str) -> None:
    """2 H(0) − H(1) against runs of training; H(0) alone is something else."""
    problem, start = paper(200, activation, loss)
    found = continued(problem, start, times, runs=runs, seed=1, progress=False)
    brute = ov.sample(problem, start, times, runs=runs, seed=2, progress=False)
    for name in ("mean_Q", "variance_Q"):
        minus, zero, one = (found[name].sel(z2=z2) for z2 in (-1, 0, 1))
        np.testing.assert_allclose(minus, 2 * zero - one, rtol=1e-12)
    ours, alone = (
        np.concatenate([
            scores(found, brute, name, 200, statistic, z2)
            for name in ("training_error", "Q", "m", "error") for statistic in ("mean", "variance")
        ]) for z2 in (-1.0, 0.0)
    )  # fmt: skip
    bound = stats.norm.isf(1e-5 / 2 / ours.size)
    assert np.abs(ours).max() < bound
    assert np.abs(alone).max() > bound


def test_continuation_against_reference() -> None:
    """m Var of training error, |θ|² and overlaps with the means after six steps at m = n = 500, softplus, square.

    From 8000 runs each: of ψ at z = 0, and of training itself.
    """
    problem, start = paper(500, "softplus", "square")
    found = continued(problem, start, [6], runs=1000, progress=False).isel(time=0)
    psi, training = [0.00686, 0.00915, 0.04134, 0.04335], [0.00290, 0.00430, 0.03615, 0.03842]
    for z2, known in ((0.0, psi), (-1.0, training)):
        at = found.sel(z2=z2)
        ours, error = (
            np.concatenate([np.ravel(at[f"variance_{name}{end}"]) for name in ("training_error", "Q", "m")])
            for end in ("", "_se")
        )
        score = (ours - known) / np.hypot(error, np.sqrt(2 / 8000) * np.array(known))
        assert np.abs(score).max() < stats.norm.isf(1e-5 / 2 / 4), (z2, score)
