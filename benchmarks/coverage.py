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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

import overlaps as ov
from overlaps.averages import method_for
from overlaps.interface.processes import end_with_parent

from . import reference
from .table import write_section

Array = NDArray[np.float64]
Truth = Callable[[ov.Problem, ov.Start, Array], dict[str, Array]]
PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"
TIMES = np.array([0.3, 1.0, 3.0])
ROUNDING = 2e-13  # of the largest value: what the truth itself may be off by


def own_function(x: float) -> float:
    return x / math.sqrt(1 + x * x)


def own_derivative(x: float) -> float:
    return (1 + x * x) ** -1.5


def own_loss(lam, nu, c, v):
    return np.log(np.cosh(lam[0] - nu[0]))


def own_gradient(lam, nu, c, v):
    return np.array([np.tanh(lam[0] - nu[0])]), np.zeros(1)


def absolute(lam, nu, c, v):
    return abs(lam[0] - nu[0])


def absolute_gradient(lam, nu, c, v):
    return np.array([np.sign(lam[0] - nu[0])]), np.zeros(1)


def absolute_kink(lam, nu, c, v):
    return lam[0] - nu[0]


OWN = ov.Activation("own", own_function, own_derivative)
OWN_LOSS = ov.Loss(own_loss, own_gradient, name="log cosh")
ABSOLUTE = ov.Loss(absolute, absolute_gradient, name="absolute", kinks=absolute_kink)
FUNCTIONS: dict[str, tuple[Any, Any]] = {
    "tanh": (np.tanh, lambda x: 1 / np.cosh(np.clip(x, -300, 300)) ** 2),
    "softplus": (lambda x: np.logaddexp(0, x), expit),
    "own": (lambda x: x / np.sqrt(1 + x * x), lambda x: (1 + x * x) ** -1.5),
    "linear": (lambda x: x, np.ones_like),
}


class Case(NamedTuple):
    """A problem to solve, the options of `solve`, and how the truth is found."""

    problem: ov.Problem
    start: ov.Start
    times: Array | None
    options: dict[str, Any]
    truth: Truth


class Outcome(NamedTuple):
    """Row, seed, ratio (NaN where the solution was refused), accuracy asked for, and what a refusal said."""

    row: str
    seed: int
    ratio: float
    asked: float | None
    words: str
    seconds: float


def rate(rng: np.random.Generator, most: float) -> float:
    """Up to the edge of divergence."""
    return float(np.exp(rng.uniform(np.log(0.05), np.log(most))))


def spectrum(rng: np.random.Generator) -> Any:
    levels = int(rng.integers(1, 6))
    return ov.PowerLaw(levels, float(rng.uniform(0.2, 1.5))) if levels > 1 else ov.Isotropic()


def committees(
    rng: np.random.Generator, activation: Any, most: float, accuracies: tuple[float | None, ...], units: int
) -> tuple[ov.Problem, ov.Start, float | None]:
    """A committee that learns from one, at random."""
    K, M = (int(rng.integers(1, units + 1)) for _ in range(2))
    trains = bool(rng.random() < 0.3)
    problem = ov.Problem(
        data=ov.GaussianInputs(spectrum(rng)),
        teacher=ov.Committee(M, activation),
        student=ov.Committee(K, activation, readout=float(np.sqrt(M / K)), train_readout=trains),
        algorithm=ov.OnlineSGD(rate(rng, most), decay=float(rng.choice([0.0, 0.1]))),
        label_noise=float(rng.choice([0.0, 0.3])),
    )
    start = ov.draw(problem, 200, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.2, 1.5)))
    return problem, start, accuracies[int(rng.integers(len(accuracies)))]


def closed_truth(problem: ov.Problem, start: ov.Start, times: Array) -> dict[str, Array]:
    """Closed forms at the tightest tolerance there is."""
    return reference.solution(problem, start, times, method_for(problem, start.u), 2.3e-14)


def closed(activation: str, most: float) -> Callable[[np.random.Generator], Case]:
    """Averages in closed form: what is judged are the steps."""

    def draw(rng: np.random.Generator) -> Case:
        problem, start, asked = committees(rng, activation, most, (None, 1e-3, 1e-6, 1e-11), 3)
        return Case(problem, start, TIMES, {"accuracy": asked}, closed_truth)

    return draw


def by_quadrature(activation: str, most: float) -> Callable[[np.random.Generator], Case]:
    """The same problems by quadrature: what is judged are averages and steps, by the closed forms."""

    def draw(rng: np.random.Generator) -> Case:
        problem, start, asked = committees(
            rng, activation, most, (None, 1e-2, 1e-4, 1e-7), 1 if rng.random() < 0.7 else 2
        )
        return Case(problem, start, TIMES, {"accuracy": asked, "method": "quadrature"}, closed_truth)

    return draw


def smooth(activation: Any, most: float) -> Callable[[np.random.Generator], Case]:
    """One unit of an activation without closed forms on either side."""
    name = activation if isinstance(activation, str) else activation.name

    def truth(problem: ov.Problem, start: ov.Start, times: Array) -> dict[str, Array]:
        law = reference.Output(*FUNCTIONS[name], "square", start.u)
        return reference.solution(problem, start, times, reference.Reference(problem, law, 150), 1e-11)

    def draw(rng: np.random.Generator) -> Case:
        problem, start, asked = committees(rng, activation, most, (None, 1e-2, 1e-4, 1e-7), 1)
        return Case(problem, start, TIMES, {"accuracy": asked}, truth)

    return draw


def labelled(loss: str) -> Callable[[np.random.Generator], Case]:
    """Two classes with labels: square and logistic of a tanh or linear unit, hinge of a linear one, softmax."""

    def draw(rng: np.random.Generator) -> Case:
        name = "linear" if loss == "hinge" else str(rng.choice(["tanh", "linear"]))
        student = ov.Softmax(2) if loss == "cross-entropy" else ov.Committee(1, name)
        data = ov.GaussianMixture(
            2,
            variance=[float(rng.uniform(0.1, 2.0)), float(rng.uniform(0.1, 2.0))],
            weights=[0.3, 0.7] if rng.random() < 0.5 else None,
            spectrum=spectrum(rng),
        )
        problem = ov.Problem(
            data=data,
            student=student,
            loss=loss,
            algorithm=ov.OnlineSGD(rate(rng, 1.5), decay=float(rng.choice([0, 0.1]))),
        )
        start = ov.draw(problem, 200, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.3, 2.0)))

        def truth(problem: ov.Problem, start: ov.Start, times: Array) -> dict[str, Array]:
            law = reference.softmax if loss == "cross-entropy" else reference.Output(*FUNCTIONS[name], loss, start.u)
            kind = reference.Hinge if loss == "hinge" else reference.Reference
            nodes = 110 if loss == "cross-entropy" else 300
            return reference.solution(problem, start, times, kind(problem, law, nodes), 1e-10)

        asked = (None, 1e-2, 1e-4, 1e-6)[int(rng.integers(4))]
        return Case(problem, start, TIMES, {"accuracy": asked}, truth)

    return draw


def own_losses(rng: np.random.Generator) -> Case:
    """A user's losses of λ − ν: log cosh, and the absolute value with its kink declared."""
    kinked = bool(rng.random() < 0.5)
    problem = ov.Problem(
        data=ov.GaussianInputs(spectrum(rng)),
        teacher=ov.Committee(1, "linear"),
        student=ov.Committee(1, "linear"),
        algorithm=ov.OnlineSGD(rate(rng, 1.5)),
        loss=ABSOLUTE if kinked else OWN_LOSS,
    )
    start = ov.draw(problem, 200, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.3, 1.5)))

    def truth(problem: ov.Problem, start: ov.Start, times: Array) -> dict[str, Array]:
        kind = reference.Absolute if kinked else reference.Reference
        return reference.solution(problem, start, times, kind(problem, reference.log_cosh, 90), 1e-10)

    asked = (None, 1e-2, 1e-4, 1e-6)[int(rng.integers(4))]
    return Case(problem, start, TIMES, {"accuracy": asked}, truth)


def latent(rng: np.random.Generator) -> Case:
    """Features of a Gaussian latent, by levels."""
    problem = ov.Problem(
        data=ov.HiddenManifold(
            nonlinearity=str(rng.choice(["sign", "relu", "erf"])), latent_ratio=float(rng.choice([0.5, 1.0]))
        ),
        teacher=ov.Committee(1),
        student=ov.Committee(2, train_readout=bool(rng.random() < 0.5)),
        algorithm=ov.OnlineSGD(rate(rng, 1.5)),
    )
    start = ov.draw(problem, 60, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.3, 1.5)))
    asked = (None, 1e-3, 1e-6, 1e-11)[int(rng.integers(4))]
    return Case(problem, start, TIMES, {"accuracy": asked}, closed_truth)


def weak_mixture(rng: np.random.Generator) -> Case:
    """Features of a weak mixture of latents, by levels: what is judged is what one covariance leaves out."""
    latent = ov.LatentMixture(2, float(rng.uniform(0.1, 0.35)), seed=int(rng.integers(1000)))
    problem = ov.Problem(
        data=ov.HiddenManifold(latent_ratio=0.5, latent=latent),
        teacher=ov.Committee(1),
        student=ov.Committee(1, train_readout=bool(rng.random() < 0.5)),
        algorithm=ov.OnlineSGD(rate(rng, 1.5)),
    )
    start = ov.draw(problem, 100, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.5, 1.5)))

    def truth(problem: ov.Problem, start: ov.Start, times: Array) -> dict[str, Array]:
        found = ov.solve(problem, start, times, system="strong-mixture", accuracy=0.1)
        return {name: found.data[name].values for name in found.variables}

    return Case(problem, start, TIMES, {"accuracy": 0.1, "system": "levels"}, truth)


def random_points(rng: np.random.Generator) -> Case:
    """Five fields with means, by random points, judged by closed forms."""
    problem = ov.Problem(
        data=ov.GaussianMixture(2, variance=float(rng.uniform(0.3, 1.5))),
        teacher=ov.Committee(2),
        student=ov.Committee(3),
        algorithm=ov.OnlineSGD(rate(rng, 1.0)),
    )
    start = ov.draw(problem, 200, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.3, 1.0)))
    asked = 3e-2 if rng.random() < 0.5 else 1e-2
    return Case(problem, start, TIMES[:2], {"accuracy": asked, "method": "quadrature"}, closed_truth)


def full_batch(rng: np.random.Generator) -> Case:
    """Kernels by random paths, judged by sixteen times as many others."""
    problem = ov.Problem(
        data=ov.GaussianMixture(2, variance=float(rng.uniform(0.2, 1.0))),
        student=ov.Committee(1, str(rng.choice(["erf", "tanh"]))),
        loss=str(rng.choice(["square", "logistic"])),
        algorithm=ov.FullBatch(steps=int(rng.integers(2, 6)), rate=rate(rng, 1.0)),
    )
    start = ov.draw(problem, 200, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.3, 1.0)))
    asked = float(rng.choice([1e-2, 2e-3]))

    def truth(problem: ov.Problem, start: ov.Start, times: Array) -> dict[str, Array]:
        found = ov.solve(problem, start, accuracy=asked / 10)
        return {name: found.data[name].values for name in found.variables}

    return Case(problem, start, None, {"accuracy": asked}, truth)


def strong_mixture(rng: np.random.Generator) -> Case:
    """The equations of strong mixtures where levels hold as well, a latent of one component, and judge them."""
    problem = ov.Problem(
        data=ov.HiddenManifold(latent_ratio=0.5),
        teacher=ov.Committee(1),
        student=ov.Committee(int(rng.integers(1, 3)), train_readout=bool(rng.random() < 0.5)),
        algorithm=ov.OnlineSGD(rate(rng, 1.0), decay=float(rng.choice([0.0, 0.1]))),
    )
    start = ov.draw(problem, 50, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.5, 1.5)))
    return Case(problem, start, TIMES, {"accuracy": 0.1, "system": "strong-mixture"}, closed_truth)


def updates(rng: np.random.Generator) -> Case:
    """Batches, momentum, memory and schedules, with jumps and without, by quadrature; judged by closed forms."""
    most = rate(rng, 2.0)
    kinds = ov.Schedule([0.4, 1.7], [most, 0.3 * most]), ov.schedules.Steps([0.7], [most, 0.2 * most]), most
    remembers = ({}, {"momentum": float(rng.uniform(0.1, 0.9))}, {"memory": float(rng.uniform(0.3, 3.0))})
    kind, memory = kinds[int(rng.integers(3))], remembers[int(rng.integers(3))]
    if "momentum" in memory:
        kind = most * (1 - memory["momentum"])
    net = ov.Committee(1, str(rng.choice(["erf", "relu"])))
    problem = ov.Problem(
        data=ov.GaussianInputs(spectrum(rng)),
        teacher=net,
        student=net,
        algorithm=ov.OnlineSGD(kind, decay=float(rng.choice([0.0, 0.1])), batch=int(rng.integers(1, 9)), **memory),
    )
    start = ov.draw(problem, 200, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.3, 1.5)))
    asked = (None, 1e-2, 1e-4, 1e-7)[int(rng.integers(4))]
    method = "quadrature" if rng.random() < 0.6 else "auto"
    return Case(problem, start, TIMES, {"accuracy": asked, "method": method}, closed_truth)


def tails(rng: np.random.Generator) -> Case:
    """Inputs of Student's t law, by quadrature; judged by closed forms."""
    net = ov.Committee(1)
    problem = ov.Problem(
        data=ov.StudentInputs(float(rng.uniform(5.0, 12.0)), values=6),
        teacher=net,
        student=net,
        algorithm=ov.OnlineSGD(rate(rng, 0.6)),
    )
    start = ov.draw(problem, 200, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.3, 1.5)))
    asked = (1e-2, 1e-3, 1e-4)[int(rng.integers(3))]
    return Case(problem, start, TIMES[:2], {"accuracy": asked, "method": "quadrature"}, closed_truth)


def exact_mean(rng: np.random.Generator) -> Case:
    """The mean over runs of a linear unit at finite size, judged by its moments step by step."""
    net = ov.Committee(1, "linear")
    problem = ov.Problem(
        data=ov.GaussianInputs(spectrum(rng)), teacher=net, student=net, algorithm=ov.OnlineSGD(rate(rng, 1.0))
    )
    start = ov.draw(problem, 40, seed=int(rng.integers(1000)), scale=float(rng.uniform(0.3, 1.5)))
    return Case(problem, start, np.array([0.3, 1.0, 3.0, 20.0]), {"accuracy": None, "system": "exact-mean"}, steps)


def steps(problem: ov.Problem, start: ov.Start, times: Array) -> dict[str, Array]:
    return reference.linear_steps(problem, start, times)


@dataclass(frozen=True)
class Row:
    """One kind of problem, and its share of all of them."""

    draw: Callable[[np.random.Generator], Case]
    share: float


ROWS: dict[str, Row] = {
    "erf, closed forms": Row(closed("erf", 4.0), 0.14),
    "ReLU, closed forms": Row(closed("relu", 1.0), 0.08),
    "linear, closed forms": Row(closed("linear", 1.5), 0.08),
    "erf, by quadrature": Row(by_quadrature("erf", 4.0), 0.08),
    "ReLU, by quadrature": Row(by_quadrature("relu", 1.0), 0.05),
    "tanh": Row(smooth("tanh", 3.0), 0.08),
    "softplus": Row(smooth("softplus", 0.8), 0.08),
    "a user's activation": Row(smooth(OWN, 3.0), 0.08),
    "mixture, square loss": Row(labelled("square"), 0.06),
    "mixture, logistic loss": Row(labelled("logistic"), 0.06),
    "mixture, hinge loss": Row(labelled("hinge"), 0.05),
    "mixture, cross-entropy": Row(labelled("cross-entropy"), 0.05),
    "a user's loss": Row(own_losses, 0.05),
    "hidden manifold": Row(latent, 0.04),
    "weak mixture of latents": Row(weak_mixture, 0.03),
    "five fields, random points": Row(random_points, 0.02),
    "full batch": Row(full_batch, 0.03),
    "strong-mixture equations, one component": Row(strong_mixture, 0.03),
    "batch, momentum, memory, schedules": Row(updates, 0.03),
    "Student-t inputs": Row(tails, 0.03),
    "exact mean of a linear unit": Row(exact_mean, 0.03),
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
    for name in found.variables:
        size = max(float(np.abs(truth[name]).max()), 1e-3)
        off = np.abs(found.data[name].values - truth[name]).max() - ROUNDING * size
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
