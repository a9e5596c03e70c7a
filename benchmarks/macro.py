"""Macro: cost and measured error against the number of levels, and against Euler steps."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import DOP853, solve_ivp

import overlaps as ov
from overlaps.averages import ClosedForm, method_for
from overlaps.averages.closed import first_order, second_order
from overlaps.online.implicit import Radau
from overlaps.online.integration import integrate
from overlaps.online.macro import attempt
from overlaps.online.motion import EquationOfMotion
from overlaps.trajectory.dataset import Trajectory

from .problems import committee
from .table import Row, at_most, duration, times
from .timing import race

Array = NDArray[np.float64]


TIGHTEST = 2.3e-14  # the smallest relative tolerance that the integrator takes in double precision


def evaluations(solution: Trajectory) -> int:
    """How often the averages were evaluated, in all passes."""
    return int(str(solution.data.attrs["cost"]).split()[0])


def distance(a: Trajectory, b: Trajectory) -> float:
    """Largest difference over variables and times, relative to the largest value of each variable."""
    return max(float(np.abs(a.data[n] - b.data[n]).max() / np.abs(b.data[n]).max()) for n in a.variables)


def stated(a: Trajectory) -> float:
    """What the solution says of its own error, on the same scale as `distance`."""
    return max(a.accuracy(n) / float(np.abs(a.data[n]).max()) for n in a.variables)


def by_levels(quick: bool = False) -> list[Row]:
    """Seconds, evaluations and error at L = 1, 100, 1000."""
    return [_at(levels, quick) for levels in ((1, 10) if quick else (1, 100, 1000))]


def _at(levels: int, quick: bool) -> Row:
    problem = committee(levels=levels)
    start = ov.draw(problem, 4000, scale=0.1)
    grid = ov.logtimes(0.01, 10, 50)
    found: list[Trajectory] = []
    repeats = 1 if quick else 2 if levels > 100 else 5
    cost = race({"solve": (lambda: found.append(ov.solve(problem, start, grid)), 1)}, repeats).cost("solve")
    mine = found[-1]
    motion = EquationOfMotion(problem, start, method_for(problem, start.u))
    best = attempt(motion, problem, start, grid, TIGHTEST).result
    count = evaluations(mine)
    return Row(
        f"macro at 50 times to 10, L = {levels}, K = M = 2",
        duration(cost),
        f"{count:,} evaluations at {duration(cost / count)}, the passes that measure the error included; stated error "
        f"{stated(mine):.0e}, error against the tightest tolerance there is {distance(mine, best):.0e} (of the largest "
        f"value). Largest eigenvalue {problem.data.eigenvalues[0]:.3g}.",
    )


def evaluation(quick: bool = False) -> list[Row]:
    """What a solution pays for an evaluation, against the averages in it, which no integrator can do without."""
    problem = committee(students=4, teachers=4, levels=10)
    start = ov.draw(problem, 4000, scale=0.1)
    how = method_for(problem, start.u)
    assert isinstance(how, ClosedForm)
    motion = EquationOfMotion(problem, start, how)
    y = motion.pack(start.Q, start.A, start.v)
    C, w, K = motion.covariance(y), np.concatenate([start.v, -start.u]), motion.K
    D, S, dv = np.empty((K, w.size)), np.empty((K, K)), np.empty(K)
    grid = np.array([1.0 if quick else 30.0])
    count = integrate(motion, y, grid, 3e-12, DOP853).evaluations

    def averages() -> None:
        for _ in range(count):
            first_order(how.family, C, w, K, D, dv)
            second_order(how.family, C, w, K, how.label_noise, *how.rule, S)

    def equation() -> None:
        for _ in range(count):
            motion(0.0, y)

    result = race(
        {
            "averages": (averages, count),
            "equation": (equation, count),
            "solution": (lambda: integrate(motion, y, grid, 3e-12, DOP853), count),
        },
        1 if quick else 9,
    )
    each = {name: duration(result.cost(name)) for name in ("averages", "equation", "solution")}
    return [
        Row(
            "macro: an evaluation in an explicit solution / its averages alone, L = 10, K = M = 4",
            times(result.ratio("solution", "averages")),
            f"{each['solution']} and {each['averages']}; covariance, averages and levels in one compiled call take "
            f"{each['equation']}, the rest is the steps of SciPy.",
        )
    ]


def long_run(quick: bool = False) -> list[Row]:
    """One level per dimension: implicit steps against explicit ones, and far beyond what these can reach."""
    levels, last = (20, 50.0) if quick else (1024, 30.0)
    problem = committee(levels=levels)
    start = ov.draw(problem, levels, scale=0.1)
    motion = EquationOfMotion(problem, start, method_for(problem, start.u))
    y = motion.pack(start.Q, start.R, start.v)

    def go(solver: type, last: float) -> Array:
        return integrate(motion, y, np.array([last]), 3e-12, solver).states

    result = race(
        {
            "implicit": (lambda: go(Radau, last), 1),
            "explicit": (lambda: go(DOP853, last), 1),
            "far": (lambda: go(Radau, 100 * last), 1),
        },
        1 if quick else 2,
    )
    apart = float(np.abs(go(Radau, last) - go(DOP853, last)).max() / np.abs(y).max())
    return [
        Row(
            f"macro at L = N = {levels}, K = M = 2: explicit / implicit steps to time {last:g}",
            times(result.ratio("explicit", "implicit")),
            f"{duration(result.cost('explicit'))} and {duration(result.cost('implicit'))}, {apart:.0e} apart. Explicit "
            f"steps are limited by the largest eigenvalue, {problem.data.eigenvalues[0]:.3g}, for ever.",
        ),
        Row(
            f"macro at L = N = {levels}: implicit to time {100 * last:g} / to time {last:g}",
            times(result.ratio("far", "implicit")),
            f"{duration(result.cost('far'))}: implicit steps grow with the time; explicit ones would take a hundred "
            "times as long.",
        ),
    ]


def structure(quick: bool = False) -> list[Row]:
    """Implicit steps that know the low-rank structure of the Jacobian against SciPy's, which form it by differences."""
    levels, last, rtol = (8, 5.0, 1e-8) if quick else (64, 30.0, 1e-8)
    problem = committee(levels=levels)
    start = ov.draw(problem, max(levels, 64), scale=0.1)
    motion = EquationOfMotion(problem, start, method_for(problem, start.u))
    y, at = motion.pack(start.Q, start.R, start.v), np.array([last])

    def ours() -> Array:
        return integrate(motion, y, at, rtol, Radau).states[-1]

    def scipys() -> Array:
        def equation(t: float, x: Array) -> Array:
            return motion(t, np.ascontiguousarray(x))

        return solve_ivp(equation, (0.0, last), y, method="Radau", rtol=rtol, atol=rtol * 1e-3).y[:, -1]

    result = race({"ours": (ours, 1), "scipy": (scipys, 1)}, 1 if quick else 2)
    exact = integrate(motion, y, at, 1e-12, DOP853).states[-1]
    off = [float(np.abs(x - exact).max() / np.abs(y).max()) for x in (ours(), scipys())]
    return [
        Row(
            f"macro at L = {levels}, K = M = 2: SciPy's Radau / implicit steps with low-rank structure",
            times(result.ratio("scipy", "ours")),
            f"{duration(result.cost('scipy'))} and {duration(result.cost('ours'))} to time {last:g} at tolerance "
            f"{rtol:.0e}; off by {off[1]:.0e} and {off[0]:.0e}. SciPy's has a dense Jacobian of {y.size} unknowns, so "
            "that its cost grows as their cube.",
        )
    ]


def accuracies(quick: bool = False) -> list[Row]:
    """What less and more accuracy cost, by closed forms and by quadrature: evaluations, and how far off they are."""
    problem = committee()
    start = ov.draw(problem, 4000, scale=0.5)
    grid = [0.5, 2.0]
    exact = ov.solve(problem, start, grid, accuracy=1e-12)
    rows: list[Row] = []
    for method, asked in (
        ("closed", (1e-3, 1e-6, 1e-9, 1e-12)),
        ("quadrature", (1e-2, 1e-4) if quick else (1e-2, 1e-4, 1e-6)),
    ):
        found = [ov.solve(problem, start, grid, method=method, accuracy=a) for a in asked]
        rows.append(
            at_most(
                f"macro: evaluations at accuracy {asked[0]:.0e} / {asked[-1]:.0e}, {method}, K = M = 2",
                max(evaluations(a) / evaluations(b) for a, b in pairwise(found)),
                1.0,
                "; ".join(
                    f"{a:.0e}: {evaluations(one):,} evaluations, states {stated(one):.0e}, is off by "
                    f"{distance(one, exact):.0e}"
                    for a, one in zip(asked, found, strict=True)
                )
                + ". The largest ratio of one to the next: asking for less never costs more.",
            )
        )
    return rows


def landing(quick: bool = False) -> list[Row]:
    """What it costs to land on every requested time instead of interpolating."""
    problem = committee()
    start = ov.draw(problem, 4000, scale=0.1)
    many, one = (ov.solve(problem, start, g) for g in (ov.logtimes(0.01, 10, 10 if quick else 50), [10.0]))
    return [
        Row(
            f"macro: evaluations for {many.time.size} times / for the last one, L = 1",
            times(evaluations(many) / evaluations(one)),
            f"{evaluations(many):,} and {evaluations(one):,}: no value is interpolated, a step ends at every requested "
            "time.",
        )
    ]


def euler(motion: EquationOfMotion, y: Array, grid: Array, step: float) -> tuple[Array, int]:
    """States at the times of `grid` by explicit Euler steps of at most `step`, and how many these are."""
    states, t, total = [], 0.0, 0
    for target in grid:
        count = max(1, int(np.ceil((target - t) / step)))
        for _ in range(count):
            y = y + (target - t) / count * motion(t, y)
        t, total = float(target), total + count
        states.append(y)
    return np.array(states), total


def against_euler(quick: bool = False) -> list[Row]:
    """Order eight with adaptive steps against Euler with the largest step that errs by less than 1e-4."""
    problem = committee()
    start = ov.draw(problem, 4000, scale=0.1)
    grid = ov.logtimes(0.01, 1 if quick else 10, 50)
    how = method_for(problem, start.u)
    motion = EquationOfMotion(problem, start, how)
    y = motion.pack(start.Q, start.R, start.v)
    truth = integrate(motion, y, grid, 1e-12).states
    wanted, step = 1e-2 if quick else 1e-4, 0.1
    found, slow = euler(motion, y, grid, step)
    while (error := float(np.abs(found - truth).max() / np.abs(truth).max())) > wanted:
        step /= 2
        found, slow = euler(motion, y, grid, step)
    mine = ov.solve(problem, start, grid)
    fast = evaluations(mine)
    result = race(
        {"euler": (lambda: euler(motion, y, grid, step), 1), "solve": (lambda: ov.solve(problem, start, grid), 1)},
        1 if quick else 5,
    )
    return [
        Row(
            f"Euler at error {wanted:.0e} / macro at {stated(mine):.0e}, L = 1",
            times(result.ratio("euler", "solve")),
            f"Euler needs steps of {step:.2g}, {slow:,} evaluations and {duration(result.cost('euler'))} for an error "
            f"of {error:.1e}; macro {fast:,} and {duration(result.cost('solve'))}, with its error measured. Every "
            "further digit costs Euler ten times more.",
        )
    ]
