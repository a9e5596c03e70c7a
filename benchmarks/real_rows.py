"""Real sets, predicted and trained: writes docs/real_rows.md (`python -m benchmarks.real_rows`, a minute).

Five sets that come with scikit-learn. Theory is `solve` on `Samples(X, y)`, training is `train` on the same rows; rates
are the best constant one and others between those at which the verdict of `forecast` was measured; seeds are others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

import overlaps as ov
from overlaps.plan.rows_forecast import RowsForecast
from overlaps.plan.rows_task import Estimates
from overlaps.plan.trust import held_out_pass, percent

Array = NDArray[np.float64]
PAGE = Path(__file__).parents[1] / "docs" / "real_rows.md"
RATES = (
    0.25,
    0.5,
    1.0,
    1.5,
    2.5,
    5.0,
)  # in units of the best constant rate; the verdict is measured at 1/3, 1, 3 and 9
PATCH, PATCHES = 8, 10_000
SPLITS, PASSES = 20, 40  # other rows that are held out, and passes over those that are left


def patches(seed: int = 0) -> tuple[Array, Array]:
    """Patches of 8 × 8 grey pixels from scikit-learn's two photographs, and the pixel right of their last one."""
    from sklearn.datasets import load_sample_images

    rng, images = np.random.default_rng(seed), cast(Any, load_sample_images()).images
    grey = [np.asarray(image, float).mean(2) for image in images]
    rows, targets = np.empty((PATCHES, PATCH**2)), np.empty(PATCHES)
    for i in range(PATCHES):
        image = grey[i % len(grey)]
        r, c = (int(rng.integers(0, n - PATCH)) for n in image.shape)
        rows[i], targets[i] = image[r : r + PATCH, c : c + PATCH].ravel(), image[r + PATCH - 1, c + PATCH]
    return rows, targets


def sets() -> dict[str, Callable[[], ov.Samples]]:
    """How each set is read."""
    from sklearn import datasets

    def digits() -> ov.Samples:
        return ov.Samples(ov.digits(), ov.digit_labels() % 2 == 0)

    def cancer() -> ov.Samples:
        found: Any = datasets.load_breast_cancer()
        return ov.Samples(found.data, found.target == 0, standardise=True)

    def diabetes() -> ov.Samples:
        found: Any = datasets.load_diabetes()
        return ov.Samples(found.data, found.target.astype(float))

    def wine() -> ov.Samples:
        found: Any = datasets.load_wine()
        return ov.Samples(found.data, found.target == 0, standardise=True)

    def photographs() -> ov.Samples:
        return ov.Samples(*patches())

    return {
        "digits, even or odd": digits,
        "breast cancer, standardised": cancer,
        "diabetes": diabetes,
        "wine, the first kind, standardised": wine,
        "photographs, the next pixel": photographs,
    }


@dataclass(frozen=True)
class Point:
    """One training: its set and rate, the last error by theory and as trained, and the deviation it was allowed.

    measured: by the theory with measured fourth moments; infinite where it diverges.
    """

    name: str
    rate: float
    predicted: float
    measured: float
    trained: float
    error: float
    within: float

    @property
    def deviation(self) -> float:
        return self.trained / self.predicted - 1

    @property
    def deviation_measured(self) -> float:
        return self.trained / self.measured - 1

    @property
    def covered(self) -> bool:
        return abs(self.deviation) <= self.within


def measured_moments(problem: ov.Problem, start: ov.Start, times: Array) -> Array:
    """Errors by the theory with fourth moments of the rows; infinite where it diverges."""
    try:
        return ov.solve(problem, start, times, system="measured-moments").data["error"].values[0]
    except ov.NumericalError:
        return np.full(times.size, np.inf)


def held_out_within(found: RowsForecast) -> float:
    """Share of other splits into four fifths and a fifth whose deviation is what the verdict says of fresh rows."""
    trust, data = found.trust, found.data
    assert trust.fresh is not None
    classes = data.labels.numbers if data.classes and data.labels is not None else None
    estimates = Estimates.of(data)
    passes = [
        held_out_pass(estimates, trust.best, runs=PASSES, seed=seed, classes=classes) for seed in range(1, SPLITS + 1)
    ]
    return float(np.mean([held is not None and abs(held.deviation) <= trust.fresh for held in passes]))


def measure(name: str, data: ov.Samples, quick: bool = False) -> tuple[RowsForecast, list[Point], list[str]]:
    """The forecast of a set, trainings at rates about those of its verdict, and those which diverge, in words."""
    found = ov.forecast(data, progress=False, runs=20 if quick else None)
    runs = 40 if quick else 4 * found.trust.runs
    points, lost = [], []
    for factor in RATES:
        rate = factor * found.plan.best_constant
        problem = replace(found.plan.problem, algorithm=ov.OnlineSGD(rate))
        times = np.array([found.samples / 3, found.samples]) / data.size
        try:
            theory = ov.solve(problem, found.plan.start, times).data["error"].values[0]
            trained = ov.train(problem, found.plan.start, times, runs, seed=1, progress=False).data["error"].values
            moments = measured_moments(problem, found.plan.start, times)
        except ov.NumericalError:  # beyond the edge of stability
            lost.append(f"{name} at rate {rate:.3g}")
            continue
        for i in range(times.size):
            mean, error = trained[:, i].mean(), trained[:, i].std(ddof=1) / np.sqrt(runs)
            points.append(Point(name, rate, float(theory[i]), float(moments[i]), mean, error, found.trust.within(rate)))
    return found, points, lost


def page(quick: bool = False) -> str:
    """All sets as a page of the documentation."""
    forecasts, points, diverged = {}, [], []
    for name, read in sets().items():
        forecasts[name], found, lost = measure(name, read(), quick)
        points += found
        diverged += lost
        print(f"{name}: {forecasts[name].trust.words}", file=sys.stderr, flush=True)
    return "\n".join([*_summary(points, diverged), *_trainings(points), *_verdicts(forecasts)]) + "\n"


def _summary(points: list[Point], diverged: list[str]) -> list[str]:
    """What was compared, and how near it is."""
    trusted, others = ([p for p in points if (p.within <= 0.1) == near] for near in (True, False))
    off, less, more = (np.array([abs(p.deviation) for p in some]) for some in (points, trusted, others))
    moments, late = (np.array([abs(p.deviation_measured) for p in some]) for some in (points, others))
    told = [p for p in points if np.isfinite(p.within)]
    covered, narrow = (np.mean([p.covered for p in some]) for some in (told, trusted))
    return [
        "# Real rows, predicted and trained",
        "",
        "Written by `python -m benchmarks.real_rows`. Five sets that come with scikit-learn: a linear student of the",
        "labels, trained by one-pass SGD on the rows (`ov.train`), against its theory (`ov.solve`), from zero weights.",
        "Each line is one rate, after as many samples as there are rows; *allowed* is the deviation that the verdict",
        "of `ov.forecast` reckons with at that rate, measured with other seeds, and but for the best rate at other",
        "rates. *Moments* is the theory with fourth moments measured from the rows, `system='measured-moments'` of",
        "`ov.solve`. Errors are ½⟨(f − y)²⟩.",
        "",
        f"Of {len(points)} comparisons (each rate at a third of the samples and at the end) the verdict allows",
        f"{len(told)} a finite deviation, and of these **{covered:.0%}** lie within it. It promises nothing beyond the",
        "rates that it tried and where trainings diverged. The median deviation is",
        f"**{np.median(off):.1%}**, the largest {off.max():.0%},",
        f"where the verdict has no trust in theory. At the {len(trusted)} where it allows no more than 10 %, the",
        f"median is **{np.median(less):.1%}** and the largest **{less.max():.1%}**,",
        f"and **{narrow:.0%}** lie within it.",
        f"Diverged, and left out: {', '.join(diverged)}." if diverged else "No training diverged.",
        "",
        f"With measured moments the median deviation is **{np.median(moments):.1%}**. At the {late.size} comparisons",
        f"that are allowed more it is **{np.median(late):.1%}**, and of Gaussian inputs {np.median(more):.1%}.",
    ]


def _trainings(points: list[Point]) -> list[str]:
    """A table of trainings."""
    lines = [
        "",
        "| set | rate | predicted | moments | trained | deviation | from moments | allowed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for p in points[1::2]:
        allowed = f"{p.within:.1%}" if np.isfinite(p.within) else "nothing is promised"
        seen = f"{p.trained:.4g} ± {p.error:.1g}"
        moments, off = "diverges", ""
        if np.isfinite(p.measured):
            moments, off = f"{p.measured:.4g}", f"{p.deviation_measured:+.1%}"
        cells = p.name, f"{p.rate:.3g}", f"{p.predicted:.4g}", moments, seen, f"{p.deviation:+.1%}", off, allowed
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _verdicts(forecasts: dict[str, RowsForecast]) -> list[str]:
    """A table of verdicts, of rows held out, and of what schedules save."""
    lines = [
        "",
        "The verdict of each set, and what the planned schedule saves of the error above the floor, predicted before",
        f"training and measured by training on the rows. *Held out* is how many of {SPLITS} other splits into four",
        "fifths and a fifth are as near to what is predicted for fresh rows as the verdict says:",
        "",
        "| set | rows × columns | verdict | held out | saved, predicted | saved, trained |",
        "|---|---|---|---|---|---|",
    ]
    for name, f in forecasts.items():
        shape, words = f"{len(f.data.rows)} × {f.data.size}", f.trust.words.replace("|", "\\|")
        promised = "not promised" if f.gain is None else f"{f.gain:.0%} ± {f.gain_error:.0%}"
        saved = "runs diverged" if f.check.gain is None else f"{f.check.gain:.0%} ± {f.check.gain_error:.0%}"
        fresh = f"{held_out_within(f):.0%} within {percent(f.trust.fresh)}" if f.trust.fresh is not None else "none"
        lines.append(f"| {name} | {shape} | {words} | {fresh} | {promised} | {saved} |")
    lines += [
        "",
        "Schedules are kept to rates at which theory may be trusted. Of breast cancer, whose rows have heavy tails,",
        "that costs most of what an unbounded schedule would promise, and not keep.",
    ]
    return lines


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"written: docs/{PAGE.name}")
