"""Micro: against the loop one would write, and what bounds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import erf

import overlaps as ov
from overlaps.compiled.normals import fill_normals
from overlaps.online.micro import BLOCKED_FROM, Weights
from overlaps.online.steps import BLOCK, blocked, direct

from .problems import committee, generator
from .table import Row, at_least, duration, share, times
from .timing import Side, race

Array = NDArray[np.float64]
ENGINES = {"direct": direct, "blocked": blocked}
SHAPES = ((1000, 2), (512, 40))  # N, K


def obvious(W: Array, B: Array, v: Array, u: Array, rate: float, steps: int, rng: Any) -> None:
    """Online SGD for the erf committee as one writes it in NumPy; W (K, N) is updated in place."""
    N = W.shape[1]
    for _ in range(steps):
        x = rng.standard_normal(N)
        lam, nu = W @ x / np.sqrt(N), B @ x / np.sqrt(N)
        delta = v @ erf(lam / np.sqrt(2)) - u @ erf(nu / np.sqrt(2))
        slope = np.sqrt(2 / np.pi) * np.exp(-(lam**2) / 2)
        W -= np.outer(rate / np.sqrt(N) * delta * v * slope, x)


@njit
def draw_normals(x: Array, steps: int, rng: np.random.Generator) -> None:  # pragma: no cover - compiled
    """Nothing but the x.size normals of every step."""
    for _ in range(steps):
        fill_normals(x, rng)


@njit
def draw_ziggurat(x: Array, steps: int, rng: np.random.Generator) -> None:  # pragma: no cover - compiled
    """The same by the generator of NumPy, one after another."""
    for _ in range(steps):
        for i in range(x.size):
            x[i] = rng.standard_normal()


class Samples:
    """The inputs that the library draws, for the loop one would write."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def standard_normal(self, size: int) -> Array:
        """As of a generator of NumPy."""
        x = np.empty(size)
        fill_normals(x, self.rng)
        return x


@njit
def multiply(X: Array, W: Array, B: Array, P: Array, blocks: int) -> float:  # pragma: no cover - compiled
    """Nothing but the four matrix products of every block."""
    total = 0.0
    for _ in range(blocks):
        total += np.dot(X, X.T)[0, 0] + np.dot(X, W.T)[0, 0] + np.dot(X, B.T)[0, 0] + np.dot(P.T, X)[0, 0]
    return total


def runner(problem: ov.Problem, start: ov.Start, steps: int, engine: str = "") -> Callable[[], None]:
    """A run of `steps` steps from `start`, by the engine the library chooses or by a given one."""
    weights = Weights(problem, start)
    if engine:
        weights.take_steps = ENGINES[engine]

    def go() -> None:
        weights.copy_with(generator()).advance(steps)

    return go


def same_weights(size: int, students: int, steps: int, engine: str = "") -> float:
    """Largest difference of the weights between library and NumPy loop, fed the same samples."""
    problem = committee(students)
    start = ov.draw(problem, size, scale=0.1)
    assert start.student is not None and start.teacher is not None
    mine = Weights(problem, start).copy_with(generator())
    if engine:
        mine.take_steps = ENGINES[engine]
    mine.advance(steps)
    W = start.student.copy()
    obvious(W, start.teacher, start.v, start.u, problem.plain_sgd("the loop").rate, steps, Samples(generator()))
    return float(np.abs(W - mine.W[0]).max())


def against_numpy(quick: bool = False) -> list[Row]:
    """Library against the obvious loop."""
    return [_against_numpy(size, students, quick) for size, students in SHAPES]


def _against_numpy(size: int, students: int, quick: bool) -> Row:
    steps, repeats = (50, 1) if quick else (4000, 11)
    problem = committee(students)
    start = ov.draw(problem, size, scale=0.1)
    assert start.student is not None and start.teacher is not None
    W, B, rate = start.student, start.teacher, problem.plain_sgd("the loop").rate

    def loop() -> None:
        obvious(W.copy(), B, start.v, start.u, rate, steps, np.random.default_rng(0))

    result = race({"numpy": (loop, steps), "micro": (runner(problem, start, steps), steps)}, repeats)
    ratio = result.ratio("numpy", "micro")
    name = f"NumPy loop / micro, N = {size}, K = {students}, M = 2"
    means = (
        f"A step costs {duration(result.cost('micro'))} instead of {duration(result.cost('numpy'))}; fed the same "
        f"samples, the two end within {same_weights(size, students, 200):.0e} of each other after 200 steps."
    )
    return at_least(name, ratio, 5, means) if students == 2 else Row(name, times(ratio), means)


def limits(quick: bool = False) -> list[Row]:
    """How much of a step is drawing inputs, matrix products, or waiting for memory."""
    rows = [row for size, students in SHAPES for row in _limits(size, students, quick)]
    return [drawing(quick), *rows, large(quick)]


def drawing(quick: bool = False) -> Row:
    """Normals of the library against those of NumPy's generator, both compiled."""
    steps, repeats = (64, 1) if quick else (6400, 11)
    rng, x = generator(), np.empty(1000)
    result = race(
        {
            "vector": (lambda: draw_normals(x, steps, rng), steps),
            "ziggurat": (lambda: draw_ziggurat(x, steps, rng), steps),
        },
        repeats,
    )
    return at_least(
        "NumPy's generator / the library's, 1000 normals of a step",
        result.ratio("ziggurat", "vector"),
        1.5,
        f"{duration(result.cost('vector') / x.size)} a normal instead of {duration(result.cost('ziggurat') / x.size)}: "
        "a number does not wait for the one before, so several are made by one instruction; tests of randomness are "
        "in tests/test_normals.py.",
    )


def _limits(size: int, students: int, quick: bool) -> list[Row]:
    steps, repeats = (64, 1) if quick else (6400, 11)
    problem = committee(students)
    start = ov.draw(problem, size, scale=0.1)
    assert start.student is not None and start.teacher is not None
    W, B = start.student, start.teacher
    rng, x = generator(), np.empty(size)
    X, P = rng.standard_normal((BLOCK, size)), rng.standard_normal((BLOCK, students))
    sides: dict[str, Side] = {
        "micro": (runner(problem, start, steps), steps),
        "draws": (lambda: draw_normals(x, steps, rng), steps),
    }
    blocks = students >= BLOCKED_FROM
    if blocks:
        sides["products"] = (lambda: multiply(X, W, B, P, steps // BLOCK), steps)
    result = race(sides, repeats)
    where = f"N = {size}, K = {students}"
    drawing = result.ratio("draws", "micro")
    rows = [
        Row(
            f"micro: share spent drawing inputs, {where}",
            share(drawing),
            f"{duration(result.cost('draws') / size)} a normal; were all else free, a step would be "
            f"{1 / drawing:.2g} times faster and no more.",
        )
    ]
    if blocks:
        product = result.ratio("products", "micro")
        flops = 2 * size * (BLOCK + 2 * students + 2) / result.cost("products") / 1e9
        rows.append(
            Row(
                f"micro: share spent in matrix products, {where}",
                share(product),
                f"The products run at {flops:.3g} Gflop/s; with the drawing they make {share(drawing + product)} "
                "of a step.",
            )
        )
    return rows


def large(quick: bool = False) -> Row:
    """A step at N = 10⁶, where the weights no longer fit the cache."""
    size, steps, repeats = (10_000, 2, 1) if quick else (1_000_000, 8, 7)
    problem, K, M = committee(), 2, 2
    big, small = ov.draw(problem, size, scale=0.1), ov.draw(problem, 1000, scale=0.1)
    rng, x, copy = generator(), np.empty(size), np.empty(8 * size)
    source = np.ones(8 * size)
    result = race(
        {
            "big": (runner(problem, big, steps), steps * size),
            "small": (runner(problem, small, 2000), 2000 * 1000),
            "draws": (lambda: draw_normals(x, steps, rng), steps * size),
            "copy": (lambda: np.copyto(copy, source), 16 * source.size),
        },
        repeats,
    )
    traffic = 8 * (K + M + 1 + 3 * K)  # bytes per coordinate: W and B read, x written; x and W read, W written
    memory = traffic * result.ratio("copy", "big")
    return Row(
        f"micro: cost of a coordinate at N = {size:,} / at N = 1000, K = 2",
        times(result.ratio("big", "small")),
        f"A step takes {duration(result.cost('big') * size)}: drawing is {share(result.ratio('draws', 'big'))} of it; "
        f"{traffic} bytes of weights and inputs a coordinate at the speed of a copy "
        f"({1e-9 / result.cost('copy'):.2g} GB/s) would be {share(memory)}. The weights no longer fit the cache: "
        "memory and drawing are the limit.",
    )


def engines(quick: bool = False) -> list[Row]:
    """Direct against blocked steps: where the library should switch."""
    widths = (2, 8) if quick else (2, 8, 40, BLOCKED_FROM, 2 * BLOCKED_FROM)
    rows: list[Row] = []
    for size in (512, 1000) if quick else (512, 1000, 100_000):
        steps, repeats = (BLOCK, 1) if quick else (max(BLOCK, 3_200_000 // size // BLOCK * BLOCK), 9)
        ratios: list[float] = []
        for students in widths:
            problem = committee(students)
            start = ov.draw(problem, size, scale=0.1)
            result = race({name: (runner(problem, start, steps, name), steps) for name in ENGINES}, repeats)
            ratios.append(result.ratio("direct", "blocked"))
        block = BLOCK * size * 8 / 2**20
        rows.append(
            at_least(
                f"direct / blocked engine, N = {size:,}, K = {widths[-2]}",
                ratios[-2],
                1.3,
                ", ".join(f"K = {k}: {times(r)}" for k, r in zip(widths, ratios, strict=True))
                + f"; equal near K = {crossover(widths, ratios):.2g}. The library switches to blocks at "
                f"K = {BLOCKED_FROM}. A block of {BLOCK} inputs takes {block:.2g} MB.",
            )
        )
    return rows


def crossover(widths: tuple[int, ...], ratios: list[float]) -> float:
    """Width at which the ratio passes one, interpolated between logarithms; an end of the range if it does not."""
    logs = np.log(ratios)
    if logs[0] >= 0:
        return float(widths[0])
    for i in range(1, len(widths)):
        if logs[i] >= 0:
            return float(np.exp(np.interp(0.0, logs[i - 1 : i + 1], np.log(widths[i - 1 : i + 1]))))
    return float(widths[-1])
