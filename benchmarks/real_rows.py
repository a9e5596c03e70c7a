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
    """One training: its set and rate, the last error by theory and as trained, and the deviation it was allowed."""

    name: str
    rate: float
    predicted: float
    trained: float
    error: float
    within: float

    @property
    def deviation(self) -> float:
        return self.trained / self.predicted - 1

    @property
    def covered(self) -> bool:
        return abs(self.deviation) <= self.within


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
        except ov.NumericalError:  # beyond the edge of stability
            lost.append(f"{name} at rate {rate:.3g}")
            continue
        for i in range(times.size):
            mean, error = trained[:, i].mean(), trained[:, i].std(ddof=1) / np.sqrt(runs)
            points.append(Point(name, rate, float(theory[i]), mean, error, found.trust.within(rate)))
    return found, points, lost


def page(quick: bool = False) -> str:
    """All sets as a page of the documentation."""
    forecasts, points, diverged = {}, [], []
    for name, read in sets().items():
        forecasts[name], found, lost = measure(name, read(), quick)
        points += found
        diverged += lost
        print(f"{name}: {forecasts[name].trust.words}", file=sys.stderr, flush=True)
    trusted = [p for p in points if p.within <= 0.1]
    off, less = (np.array([abs(p.deviation) for p in some]) for some in (points, trusted))
    told = [p for p in points if np.isfinite(p.within)]
    covered, narrow = (np.mean([p.covered for p in some]) for some in (told, trusted))
    lost = f"Diverged, and left out: {', '.join(diverged)}." if diverged else "No training diverged."
    lines = [
        "# Real rows, predicted and trained",
        "",
        "Written by `python -m benchmarks.real_rows`. Five sets that come with scikit-learn: a linear student of the",
        "labels, trained by one-pass SGD on the rows (`ov.train`), against its theory (`ov.solve`), from zero weights.",
        "Each line is one rate, after as many samples as there are rows; *allowed* is the deviation that the verdict",
        "of `ov.forecast` reckons with at that rate, measured with other seeds, and but for the best rate at other",
        "rates. Errors are ½⟨(f − y)²⟩.",
        "",
        f"Of {len(points)} comparisons (each rate at a third of the samples and at the end) the verdict allows",
        f"{len(told)} a finite deviation, and of these **{covered:.0%}** lie within it. It promises nothing beyond the",
        "rates that it tried and where trainings diverged. The median deviation is",
        f"**{np.median(off):.1%}**, the largest {off.max():.0%},",
        f"where the verdict has no trust in theory. At the {len(trusted)} where it allows no more than 10 %, the",
        f"median is **{np.median(less):.1%}** and the largest **{less.max():.1%}**,",
        f"and **{narrow:.0%}** lie within it.",
        lost,
        "",
        "| set | rate | predicted | trained | deviation | allowed |",
        "|---|---|---|---|---|---|",
    ]
    for p in points[1::2]:
        allowed = f"{p.within:.1%}" if np.isfinite(p.within) else "nothing is promised"
        seen = f"{p.trained:.4g} ± {p.error:.1g}"
        lines.append(f"| {p.name} | {p.rate:.3g} | {p.predicted:.4g} | {seen} | {p.deviation:+.1%} | {allowed} |")
    lines += [
        "",
        "The verdict of each set, and what the planned schedule saves of the error above the floor, predicted before",
        "training and measured by training on the rows:",
        "",
        "| set | rows × columns | verdict | saved, predicted | saved, trained |",
        "|---|---|---|---|---|",
    ]
    for name, f in forecasts.items():
        shape, words = f"{len(f.data.rows)} × {f.data.size}", f.trust.words.replace("|", "\\|")
        promised = "not promised" if f.gain is None else f"{f.gain:.0%} ± {f.gain_error:.0%}"
        saved = "runs diverged" if f.check.gain is None else f"{f.check.gain:.0%} ± {f.check.gain_error:.0%}"
        lines.append(f"| {name} | {shape} | {words} | {promised} | {saved} |")
    lines += [
        "",
        "Schedules are kept to rates at which theory may be trusted. Of breast cancer, whose rows have heavy tails,",
        "that costs most of what an unbounded schedule would promise, and not keep.",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"written: docs/{PAGE.name}")
