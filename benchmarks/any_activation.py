"""Averages without a closed form in one activation: what sums of error functions, softmax and ReLU outputs gain.

The other side is the rule that such averages had before: Sobol points in all fields at once, and D by Stein's lemma.
Where both sides are random points, costs are compared at equal error: for smooth integrands errors fall as one over the
number of points, at kinks as one over its root.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import overlaps as ov
from overlaps.averages import Averages, LossQuadrature, method_for
from overlaps.averages.quadrature import contrasts
from overlaps.averages.relu_outputs import ReluOutputs
from overlaps.averages.rules import sobol
from overlaps.averages.square_quadrature import SquareQuadrature
from overlaps.data.square_roots import cholesky
from overlaps.online.motion import EquationOfMotion

from .problems import classes, committee, xor
from .table import Row, at_least, duration
from .timing import race

Array = NDArray[np.float64]


def error(a: Averages, truth: Averages, name: str) -> float:
    """Largest error of a quantity, relative to its largest entry."""
    x = np.asarray(getattr(truth, name))
    return float(np.abs(np.asarray(getattr(a, name)) - x).max() / np.abs(x).max())


def square_loss(quick: bool = False) -> list[Row]:
    """tanh with K = 3, M = 2; erf students of ReLU teachers with K = M = 2."""
    rows: list[Row] = []
    for student, teacher, K, M in (("tanh", "tanh", 3, 2), ("erf", "relu", 2, 2)):
        names = f"{student} on {teacher}"
        problem = committee(activation=student, students=K, teachers=M, teacher_activation=teacher)
        v, u = problem.student.readouts, problem.teacher_readouts
        points = np.random.default_rng(0).standard_normal((K + M, K + M + 2))
        C = points @ points.T / (K + M + 2)
        now, before = method_for(problem, u), SquareQuadrature(problem, u)
        truth = now
        while (finer := truth.finer()) is not None:
            truth = finer
        exact = truth(C, v)
        calls, repeats = (2, 1) if quick else (100, 5)
        sides = {
            "now": (lambda now=now, C=C, v=v, n=calls: [now(C, v) for _ in range(n)], calls),
            "before": (lambda before=before, C=C, v=v: before(C, v), 1),
        }
        result = race(sides, repeats)
        own, theirs = error(now(C, v), exact, "S"), error(before(C, v), exact, "S")
        rows.append(
            at_least(
                f"points in all fields / sums of error functions, which err less, {names}, K = {K}, M = {M}",
                result.ratio("before", "now"),
                10,
                f"An evaluation takes {duration(result.cost('now'))} instead of {duration(result.cost('before'))} "
                f"({before.name}), and S is off by {own:.0e} (against more terms) instead of {theirs:.0e}.",
            )
        )
    return rows


def softmax(quick: bool = False) -> list[Row]:
    """Ten classes: the second derivative from the first, against Stein's lemma at the same points."""
    count = 7 if quick else 10
    problem = classes(count)
    start = ov.draw(problem, 1000, seed=1)
    how = method_for(problem, start.u)
    assert isinstance(how, LossQuadrature)
    motion = EquationOfMotion(problem, start, how)
    y = motion.pack(start.Q, start.A, start.v)
    C, means = motion.covariance(y), start.A.sum(0)
    finest = how
    for _ in range(1 if quick else 4):
        finest = finest.finer() or finest
    truth = finest(C, start.v, means)
    basis = contrasts(problem.student.units)

    def stein() -> Array:
        L = cholesky(basis.T @ C @ basis)
        z, w = sobol(len(L), 11)
        D = np.zeros((len(C), len(C)))
        for p, s, label, mean in zip(*problem.data.components, means.T, strict=True):
            h = mean + np.sqrt(s) * z @ (basis @ L).T
            delta = np.exp(h - h.max(1, keepdims=True))
            delta /= delta.sum(1, keepdims=True)
            delta[:, label] -= 1.0
            D += p * np.sqrt(s) * np.linalg.solve(L.T, z.T @ (delta * w[:, None])).T @ basis.T
        return D

    result = race({"now": (lambda: how(C, start.v, means), 1), "before": (stein, 1)}, 1 if quick else 5)
    own = error(how(C, start.v, means), truth, "D")
    theirs = float(np.abs(stein() - truth.D).max() / np.abs(truth.D).max())
    return [
        at_least(
            f"softmax of {count} classes: D by Stein's lemma / from first derivatives, at equal error",
            result.ratio("before", "now") * theirs / own,
            10,
            f"D is off by {theirs:.0e} after {duration(result.cost('before'))}, all averages of the other by {own:.0e} "
            f"after {duration(result.cost('now'))}.",
        )
    ]


def relu_outputs(quick: bool = False) -> list[Row]:
    """Twenty ReLU units on the labels of the XOR mixture: fields made positive, against fields as they come."""
    K = 6 if quick else 20
    problem = xor(K)
    start = ov.draw(problem, 4000, seed=1)
    now, before = ReluOutputs(problem, start.u, 9), LossQuadrature(problem, start.u)
    motion = EquationOfMotion(problem, start, now)
    y = motion.pack(start.Q, start.A, start.v)
    truth_points = 10 if quick else 14
    truth = motion.averages(y, ReluOutputs(problem, start.u, truth_points))
    result = race(
        {"now": (lambda: motion.averages(y, now), 1), "before": (lambda: motion.averages(y, before), 1)},
        1 if quick else 5,
    )
    names = {"D": "D by Stein's lemma / by fields made positive", "dv": "E[∂loss/∂v] of points / with control variates"}
    rows: list[Row] = []
    for name, what in names.items():
        own, theirs = (error(motion.averages(y, how), truth, name) for how in (now, before))
        rows.append(
            at_least(
                f"XOR labels, {K} ReLU units: {what}, at equal error",
                result.ratio("before", "now") * (theirs / own) ** 2,
                10,
                f"It is off by {theirs:.0e} after {duration(result.cost('before'))} and by {own:.0e} after "
                f"{duration(result.cost('now'))}, against 2^{truth_points + 1} points; errors of kinks in many fields "
                "fall as one over the root of the points.",
            )
        )
    return rows


def relative(one: ov.Trajectory, errors: dict[str, float]) -> float:
    """The largest of errors of its variables, each relative to the largest value."""
    return max(errors[n] / float(np.abs(one.data[n]).max()) for n in one.variables)


def solutions(quick: bool = False) -> list[Row]:
    """Whole solutions at the accuracy asked for: the error that each states, its true one by a finer solution, and 0.1.

    What version 0.1 took is what was measured then, in CPU seconds, and is not repeated.
    """
    tanh = committee(students=3, teachers=2, activation="tanh")
    mixed = committee(activation="erf", teacher_activation="relu")
    # problem, last time, accuracy, seconds at most, how much finer a truth can be had, and version 0.1
    cases = [
        ("tanh, K = 3, M = 2, to time 100", tanh, 100.0, 1e-5, 1.0, 30, "10 s for 4e-4"),
        ("erf on ReLU, K = M = 2, to time 100", mixed, 100.0, 1e-6, 1.0, 30, "8.5 s"),
        ("softmax of 10 classes, to time 20", classes(10), 20.0, 1e-4, 5.0, 3, "5.8 s for five classes"),
        ("twenty ReLU units on the XOR labels, to time 60", xor(20), 60.0, 1e-3, 15.0, None, "140 s"),
    ]
    rows: list[Row] = []
    for what, problem, last, accuracy, most, finer, before in cases[:2] if quick else cases:
        start, times = ov.draw(problem, 4000, seed=1), ov.logtimes(0.1, 1.0 if quick else last, 10)
        found: list[ov.Trajectory] = []

        def solve(p: ov.Problem = problem, s: ov.Start = start, t: Array = times, a: float = accuracy) -> None:
            found.append(ov.solve(p, s, t, accuracy=a))  # noqa: B023 - raced before the next case

        seconds, solution = race({"solve": (solve, 1)}, 1).cost("solve"), found[0]
        stated = relative(solution, {n: solution.accuracy(n) for n in solution.variables})
        true = ""
        if finer is not None:
            truth = ov.solve(problem, start, times, accuracy=accuracy / finer)
            moved = {n: float(np.abs(solution.data[n] - truth.data[n]).max()) for n in solution.variables}
            true = f", true error {relative(solution, moved):.0e} (by a solution at {accuracy / finer:.0e})"
        rows.append(
            Row(
                f"macro at {accuracy:.0e}: {what}",
                duration(seconds),
                f"{solution.data.attrs['averages']}; stated error {stated:.0e}{true}. Version 0.1 took {before}.",
                f"≤ {most:g} s",
                seconds <= most,
            )
        )
    return rows
