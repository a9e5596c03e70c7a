"""How often the truth lies within the stated error: `python -m benchmarks.coverage` draws random problems and counts.

Each problem is solved by `overlaps.solve` with an accuracy of its own, and again by a tighter route that shares nothing
with what is judged (`benchmarks.reference`). With the stated error e_n of variable n a problem has the ratio

    r = max_n max_t |x_n(t) − truth_n(t)| / e_n

and is covered where r ≤ 1. The table goes into docs/accuracy.md.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time as clock
import warnings
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

import overlaps as ov
from overlaps.interface.processes import end_with_parent

from . import harder_problems as harder
from . import random_problems as usual
from .random_problems import TIMES, Case, Uncertain
from .table import write_section

PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"
ROUNDING = 2e-13  # of the largest value: what the truth itself may be off by


class Outcome(NamedTuple):
    """Row, seed, ratio (NaN where the solution was refused), accuracy asked for, and what a refusal said."""

    row: str
    seed: int
    ratio: float
    asked: float | None
    words: str
    seconds: float


@dataclass(frozen=True)
class Row:
    """One kind of problem, and its share of all of them."""

    draw: Callable[[np.random.Generator], Case]
    share: float


ROWS: dict[str, Row] = {
    "erf, closed forms": Row(usual.closed("erf", 4.0), 0.12),
    "ReLU, closed forms": Row(usual.closed("relu", 1.4), 0.08),
    "linear, closed forms": Row(usual.closed("linear", 1.9), 0.08),
    "erf, by quadrature": Row(usual.by_quadrature("erf", 4.0), 0.08),
    "erf, by quadrature, to time 10": Row(harder.long_and_fast, 0.03),
    "ReLU, by quadrature": Row(usual.by_quadrature("relu", 1.4), 0.05),
    "tanh": Row(usual.smooth("tanh", 5.0), 0.06),
    "tanh, three to five fields": Row(harder.many_fields("tanh", 3.0), 0.03),
    "softplus": Row(usual.smooth("softplus", 0.8), 0.06),
    "a user's activation": Row(usual.smooth(usual.OWN, 3.0), 0.06),
    "a user's activation, smooth clip": Row(harder.many_fields("clip", 3.0), 0.03),
    "mixture, square loss": Row(usual.labelled("square"), 0.06),
    "mixture, logistic loss": Row(usual.labelled("logistic"), 0.06),
    "mixture, hinge loss": Row(usual.labelled("hinge"), 0.05),
    "mixture, hinge loss of two ReLU units": Row(harder.two_kinked_units, 0.02),
    "mixture, cross-entropy": Row(usual.labelled("cross-entropy"), 0.04),
    "mixture, cross-entropy of three and four classes": Row(harder.more_classes, 0.02),
    "a user's loss": Row(usual.own_losses, 0.05),
    "hidden manifold": Row(usual.latent, 0.04),
    "weak mixture of latents": Row(harder.weak_mixture, 0.04),
    "five fields, random points": Row(usual.random_points, 0.02),
    "full batch, by more paths": Row(usual.full_batch, 0.02),
    "full batch, by training": Row(harder.full_batch_trained, 0.02),
    "strong-mixture equations, one component": Row(usual.strong_mixture, 0.02),
    "strong-mixture equations, faint components": Row(harder.faint_components, 0.02),
    "strong-mixture equations, by training": Row(harder.strong_components, 0.012),
    "batch, momentum, memory, schedules": Row(usual.updates, 0.03),
    "Student-t inputs": Row(usual.tails, 0.03),
    "exact mean of a linear unit": Row(usual.exact_mean, 0.03),
}


def measure(row: str, seed: int) -> Outcome:
    """The ratio of one problem."""
    began = clock.process_time()
    rng = np.random.default_rng([seed, zlib.crc32(row.encode())])  # the same draws, whatever other rows there are
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        case = ROWS[row].draw(rng)
        asked = case.options["accuracy"]
        try:
            found = ov.solve(case.problem, case.start, case.times, **case.options, max_seconds=600.0)
        except ov.NumericalError as refusal:
            return Outcome(row, seed, np.nan, asked, str(refusal), clock.process_time() - began)
        truth = case.truth(case.problem, case.start, TIMES if case.times is None else case.times)
    ratio = 0.0
    values, within = truth if isinstance(truth, Uncertain) else (truth, dict.fromkeys(truth, 0.0))
    for name in found.variables:
        size = max(float(np.abs(values[name]).max()), 1e-3)
        off = (np.abs(found.data[name].values - values[name]) - within[name]).max() - ROUNDING * size
        ratio = max(ratio, float(off) / found.accuracy(name))
    return Outcome(row, seed, ratio, asked, "", clock.process_time() - began)


def run(count: int, workers: int, kept: Path | None = None) -> list[Outcome]:
    """About `count` problems, shared out over the rows; those in the file `kept` are not solved again."""
    done = {}
    if kept is not None and kept.exists():
        lines = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
        done = {(line[0], line[1]): Outcome(*line) for line in lines}
    # of every row the first problems first, so that what is there after an interruption is of all rows
    jobs = sorted(
        ((row, seed) for row, kind in ROWS.items() for seed in range(max(1, math.ceil(kind.share * count - 1e-9)))),
        key=lambda job: (job[1] / ROWS[job[0]].share, job[0]),
    )
    left = [job for job in jobs if job not in done]
    names, seeds = [job[0] for job in left], [job[1] for job in left]
    pool = ProcessPoolExecutor(workers, initializer=end_with_parent, initargs=(os.getpid(),)) if workers > 1 else None
    with pool or nullcontext():
        for outcome in pool.map(measure, names, seeds) if pool else map(measure, names, seeds):
            done[outcome.row, outcome.seed] = outcome
            if kept is not None:
                with kept.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(outcome) + "\n")
    return [done[job] for job in jobs]


def table(outcomes: list[Outcome]) -> str:
    """Per row: problems, refusals, how many are covered, the largest ratio, the median."""
    lines = [
        "| problems | drawn | refused | within the stated error | largest ratio | median ratio |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    groups = {row: [o for o in outcomes if o.row == row] for row in ROWS} | {"all": outcomes}
    for row, some in groups.items():
        ratios = np.array([o.ratio for o in some if np.isfinite(o.ratio)])
        refused = len(some) - len(ratios)
        if ratios.size == 0:
            lines.append(f"| {row} | {len(some)} | {refused} | | | |")
            continue
        share, largest, median = (ratios <= 1).mean(), ratios.max(), max(float(np.median(ratios)), 0.0)
        lines.append(f"| {row} | {len(some)} | {refused} | {100 * share:.1f} % | {largest:.2g} | {median:.1g} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Draw, solve, print and write."""
    parser = argparse.ArgumentParser("python -m benchmarks.coverage", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--problems", type=int, default=1000, help="how many, about (1000)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--kept", type=Path, help="file of results, to go on from after an interruption")
    parser.add_argument("--dry", action="store_true", help="print the table, write nothing")
    asked = parser.parse_args(arguments)
    began = clock.perf_counter()
    outcomes = run(asked.problems, asked.workers, asked.kept)
    text = table(outcomes)
    print(text)
    worst = sorted((o for o in outcomes if np.isfinite(o.ratio)), key=lambda o: -o.ratio)[:8]
    for o in worst:
        print(f"{o.ratio:.2g}  {o.row}, seed {o.seed}, accuracy {o.asked}")
    for o in [o for o in outcomes if not np.isfinite(o.ratio)][:200]:
        print(f"refused: {o.row}, seed {o.seed}, accuracy {o.asked}: {o.words[:110]}")
    cpu = sum(o.seconds for o in outcomes)
    print(f"{len(outcomes)} problems, {cpu:.0f} CPU seconds, {clock.perf_counter() - began:.0f} s")
    if not asked.dry:
        note = f"\n`make coverage`, overlaps {ov.__version__}: {len(outcomes)} problems, {cpu / 60:.0f} CPU minutes.\n"
        write_section(PAGE, "coverage", text + note)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
