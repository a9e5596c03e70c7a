"""The Gaussian averages: closed forms against quadrature, and two rules against each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from overlaps.averages import Averages, method_for
from overlaps.averages.rules import smooth_grid
from overlaps.averages.square_quadrature import SquareQuadrature

from .problems import committee
from .table import Row, duration, times
from .timing import race

Array = NDArray[np.float64]
COVARIANCE = np.array([[0.9, 0.2, 0.3, 0.1], [0.2, 0.7, -0.1, 0.4], [0.3, -0.1, 1.1, 0.05], [0.1, 0.4, 0.05, 1.0]])


def apart(a: Averages, b: Averages) -> float:
    """Largest difference between two sets of averages."""
    return max(float(np.abs(getattr(a, n) - getattr(b, n)).max()) for n in ("D", "S", "dv", "error"))


def closed_forms(quick: bool = False) -> list[Row]:
    """One evaluation by closed form and by quadrature."""
    return [_closed_form(activation, quick) for activation in (("erf",) if quick else ("erf", "relu"))]


def _closed_form(activation: str, quick: bool) -> Row:
    calls, repeats = (10, 1) if quick else (1000, 7)
    problem = committee(activation=activation)
    v, u = problem.student.readouts, problem.teacher.readouts
    closed, quadrature = method_for(problem, u, "closed"), SquareQuadrature(problem, u)

    def many() -> None:
        for _ in range(calls):
            closed(COVARIANCE, v)

    result = race({"closed": (many, calls), "quadrature": (lambda: quadrature(COVARIANCE, v), 1)}, repeats)
    exact, rough = closed(COVARIANCE, v), quadrature(COVARIANCE, v)
    own = apart(rough, quadrature.coarser()(COVARIANCE, v))
    return Row(
        f"quadrature / closed form, {activation}, K = M = 2",
        times(result.ratio("quadrature", "closed")),
        f"An evaluation takes {duration(result.cost('closed'))} instead of {duration(result.cost('quadrature'))} "
        f"({quadrature.rule.name}); they differ by {apart(exact, rough):.0e}, where quadrature measures {own:.0e} of "
        "itself.",
    )


def rules(quick: bool = False) -> list[Row]:
    """E[tanh'(x)² tanh(x)²], x ~ N(0, 1), by the trapezoidal rule and by Gauss-Hermite."""

    def f(x: Array) -> Array:
        t = np.tanh(x)
        return (1 - t**2) ** 2 * t**2

    def trapezoidal(nodes: int, spacing: float) -> float:
        z, w = smooth_grid((spacing,), spacing * (nodes // 2 + 0.01))
        assert len(z) == nodes
        return float(w @ f(z[:, 0]))

    def hermite(nodes: int) -> float:
        z, w = np.polynomial.hermite_e.hermegauss(nodes)
        return float(w @ f(z) / w.sum())

    truth = trapezoidal(401, 0.05)
    nodes, spacing = 31, 0.3
    ours, theirs = abs(trapezoidal(nodes, spacing) - truth), abs(hermite(32) - truth)
    best = min(abs(trapezoidal(nodes, h) - truth) for h in np.arange(0.25, 0.4, 0.01))
    needed = next(n for n in range(32, 180) if all(abs(hermite(m) - truth) < 1e-7 for m in range(n, n + 4)))
    return [
        Row(
            "Gauss-Hermite error / trapezoidal error, tanh'² tanh²",
            times(theirs / ours),
            f"With 32 nodes Gauss-Hermite is off by {theirs:.0e}, the trapezoidal rule with {nodes} nodes at spacing "
            f"{spacing:g} by {ours:.0e} (at its best spacing by {best:.0e}); Gauss-Hermite comes within 1e-7 from "
            f"{needed} nodes on.",
        )
    ]
