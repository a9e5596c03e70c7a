"""By how much the theory of Gaussian classes may be trusted on given rows: trainings against what is foretold.

Three things are measured, each with its error, and each has to be within a tenth:

- the loss of trainings on the rows, at all times;
- their 0-1 error in the second half of training, or within two hundredths of the rows;
- loss and 0-1 error of rows held out: trainings on four fifths of the rows, tested on the others, for several ways to
  split them. Over splits, which share rows, the mean has the variance (1/splits + 1/4) S²: C. Nadeau and Y. Bengio,
  "Inference for the generalization error" (Machine Learning, 2003).

Where one of them is not, the reason is measured too: fourth moments of the classes, Σ_c p_c ⟨|x − μ_c|⁴⟩, against those
of Gaussians with their covariances; when training parts from training on such Gaussians (`overlaps.beyond_gaussian`);
and how many rows there are for each column and class.

Theory may hold and the classifier be of no use: where it foretells more mistakes than always guessing the class of most
rows makes, the verdict says so, and does not say "trust it". Of very unequal classes the usual reason is that rows are
centred and have no bias.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..algorithms import MultiPass
from ..compare.beyond_gaussian import BeyondGaussian
from ..problem.start import Start
from ..problem.statement import Problem
from ..trajectory.dataset import Trajectory
from ..trajectory.scales import train

Array = NDArray[np.float64]
LARGEST = 0.1  # relative deviation beyond which theory is not to be trusted
SMALLEST = 0.02  # deviation of a 0-1 error that is let pass
SURE = 2.5  # standard errors of what is measured in trainings
CLEAR = 2.0  # standard errors by which rows held out must be off
UNUSUAL = 1.5  # ratio of fourth moments to Gaussian ones that is named as the reason
SPLITS = 10  # of the rows into those trained on and those held out


class Compared(NamedTuple):
    """Something foretold, and as it was measured, with its standard error."""

    name: str
    foretold: float
    measured: float
    error: float

    @property
    def deviation(self) -> float:
        """Relative to what was foretold."""
        return self.measured / self.foretold - 1

    def __repr__(self) -> str:
        return f"{self.name} {self.measured:.4g} ± {self.error:.1g}, foretold {self.foretold:.4g}"


@dataclass(frozen=True, eq=False)
class ClassTrust:
    """How far trainings on classified rows are from theory.

    Attributes
    ----------
    loss, wrong: loss and 0-1 error of trainings, at the time at which they are furthest from theory.
    held_loss, held_wrong: those of rows held out, at the end.
    fourth, gaussian: Σ_c p_c ⟨|x − μ_c|⁴⟩ / Σ_c p_c ⟨|x − μ_c|²⟩², of the rows and of Gaussians of their covariances.
    rows_per_number: rows for each column and class.
    beyond: when trainings on the rows part from trainings on Gaussians.
    end: 0-1 error that is foretold at the end. guess: that of always guessing the class of most rows.
    bias: whether the rows have a bias.
    """

    loss: Compared
    wrong: Compared
    held_loss: Compared
    held_wrong: Compared
    fourth: float
    gaussian: float
    rows_per_number: float
    beyond: BeyondGaussian
    end: float
    guess: float
    bias: bool = False

    @property
    def beats_a_guess(self) -> bool:
        """Whether no more mistakes are foretold than always guessing the class of most rows makes."""
        return self.end <= self.guess

    @property
    def _no_better(self) -> str:
        """In words, that a guess is better, and what may help."""
        more = "" if self.bias else "; rows are centred and have no bias: use bias=True (`learn --bias`)"
        return (
            f"this classifier is of no use: its 0-1 error, {self.end:.4g}, is above the {self.guess:.4g} of always "
            f"guessing the class of most rows{more}"
        )

    @property
    def within(self) -> float:
        """The relative deviation of the loss to reckon with: the largest measured, and 2.5 standard errors of it."""
        return abs(self.loss.deviation) + SURE * self.loss.error / self.loss.foretold

    @property
    def failures(self) -> tuple[str, ...]:
        """In words, what is further off than it may be, and why; empty where theory may be trusted."""
        told: list[str] = []
        wrong = abs(self.wrong.measured - self.wrong.foretold) + SURE * self.wrong.error
        if self.within > LARGEST:
            told.append(f"trainings on the rows are off the loss foretold by up to {self.within:.1%}")
        if wrong > max(LARGEST * self.wrong.foretold, SMALLEST):
            told.append(f"trainings on the rows have {self.wrong!r}")
        if told:
            told[-1] += f", {self._shape}"
        held = [
            x
            for x, least in ((self.held_loss, 0.0), (self.held_wrong, SMALLEST))
            if abs(x.measured - x.foretold) > max(LARGEST * x.foretold, least, CLEAR * x.error)
        ]
        if held:
            few = f": too few rows, {self.rows_per_number:.3g} for each column and class"
            worse = any(x.measured > x.foretold for x in held)
            told.append(f"rows held out have {' and '.join(repr(x) for x in held)}{few if worse else ''}")
        return tuple(told)

    @property
    def _shape(self) -> str:
        """In words, how the classes differ from Gaussians."""
        if self.fourth > UNUSUAL * self.gaussian:
            return (
                "since rows are bright and dark, or have heavy tails: their fourth moment is "
                f"{self.fourth / self.gaussian:.3g} times that of Gaussians"
            )
        first = self.beyond.partings[0]
        if np.isfinite(first.interval[1]):
            return f"since the network uses more than means and covariances from t = {first.time:.3g} on"
        return "as are trainings on Gaussians of the same means and covariances: the size is too small for the theory"

    @property
    def trusted(self) -> bool:
        """Whether loss, 0-1 error and rows held out are what theory says."""
        return not self.failures

    @property
    def words(self) -> str:
        """The verdict."""
        if self.trusted:
            begin = "trust it: " if self.beats_a_guess else f"{self._no_better}; theory is right about it: "
            return (
                f"{begin}trainings on the rows are within {self.within:.1%} of the loss foretold at all times, and "
                f"rows held out have {self.held_loss!r}"
            )
        useless = "" if self.beats_a_guess else f"; {self._no_better}"
        return f"do not trust it: {'; '.join(self.failures)}{useless}"


def measure_trust(
    problem: Problem, start: Start, theory: Trajectory, runs: Trajectory, beyond: BeyondGaussian, seed: int
) -> ClassTrust:
    """Compare trainings and rows held out with theory; `runs` are of the same problem and times."""
    data: Any = problem.data
    held = _held_out(problem, start, theory.time[-1:], runs.runs, seed)
    half = theory.time >= theory.time[-1] / 2
    loss = _furthest("loss", "error", theory, runs, np.ones_like(half))
    wrong = _furthest("0-1 error", "misclassified", theory, runs, half)
    ends = theory.data.isel(run=0, time=-1)
    held_loss, held_wrong = (
        Compared(name, float(ends[variable]), *_mean_of_splits(held[variable]))
        for name, variable in (("loss", "error"), ("0-1 error", "misclassified"))
    )
    fourth, gaussian = _fourth_moments(problem)
    numbers = data.size * len(data.classes)
    return ClassTrust(
        loss,
        wrong,
        held_loss,
        held_wrong,
        fourth,
        gaussian,
        len(data.rows) / numbers,
        beyond,
        float(ends["misclassified"]),
        constant_guess(problem),
        data.bias,
    )


def constant_guess(problem: Problem) -> float:
    """0-1 error of always guessing the class of most rows."""
    targets = problem.row_targets
    assert targets is not None
    return 1 - float(np.unique(targets, return_counts=True)[1].max()) / len(targets)


def _furthest(name: str, variable: str, theory: Trajectory, runs: Trajectory, times: NDArray[np.bool_]) -> Compared:
    """At the time of those given at which trainings are furthest from theory, errors of the mean counted."""
    foretold, trained = theory.data[variable].values[0][times], runs.data[variable].values[:, times]
    mean, error = trained.mean(0), trained.std(0, ddof=1) / np.sqrt(len(trained))
    far = np.abs(mean - foretold) + SURE * error
    at = int(np.argmax(far / foretold if variable == "error" else far))
    return Compared(name, float(foretold[at]), float(mean[at]), float(error[at]))


def _held_out(problem: Problem, start: Start, last: Array, runs: int, seed: int) -> dict[str, Array]:
    """Means of trainings on four fifths of the rows, drawn with replacement, tested on the others, (splits,) each."""
    data: Any = problem.data
    rate, found = problem.algorithm.rate, {"error": np.empty(SPLITS), "misclassified": np.empty(SPLITS)}
    each = max(2, -(-runs // SPLITS))
    for split in range(SPLITS):
        part = replace(problem, algorithm=MultiPass(rate, samples=len(data.rows) * 4 // 5, shuffle=split))
        trained = train(part, start, last, each, seed, progress=False).data
        for name, values in found.items():
            values[split] = trained[name].mean()
    return found


def _mean_of_splits(values: Array) -> tuple[float, float]:
    """The mean over splits into four fifths and a fifth, and its standard error."""
    return float(values.mean()), float(values.std(ddof=1)) * np.sqrt(1 / SPLITS + 1 / 4)


def _fourth_moments(problem: Problem) -> tuple[float, float]:
    """Fourth moment of the lengths of rows around the means of their classes, and that of Gaussians."""
    data: Any = problem.data
    targets = problem.row_targets
    assert targets is not None
    fourth = gaussian = squared = 0.0
    for label in np.unique(targets):
        rows = data.rows[targets == label]
        apart = rows - rows.mean(0)
        lengths = np.einsum("ij,ij->i", apart, apart)
        products = apart.T @ apart / len(rows)
        fourth += float(np.sum(lengths**2))
        gaussian += len(rows) * (float(np.trace(products)) ** 2 + 2 * float(np.sum(products**2)))
        squared += len(rows) * float(np.trace(products)) ** 2
    return fourth / squared, gaussian / squared
