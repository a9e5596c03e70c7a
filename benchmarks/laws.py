"""Laws: a learning curve in closed form against training for it, and against dense linear algebra."""

from __future__ import annotations

import numpy as np

import overlaps as ov

from .micro import runner
from .table import Row, at_least, duration, times
from .timing import race


def _dense(spectrum: ov.PowerLaw, rate: float, t: np.ndarray) -> np.ndarray:
    """The learning curve of a linear student by the eigenvectors of its matrix."""
    omega = np.array(spectrum.eigenvalues)
    values, vectors = np.linalg.eigh(rate * (rate / omega.size * np.outer(omega, omega) - 2 * np.diag(omega)))
    amplitudes = (vectors.T @ omega) * (vectors.T @ np.full(omega.size, 1 / omega.size))
    return 0.5 * np.exp(np.multiply.outer(t, values)) @ amplitudes


def linear(quick: bool = False) -> list[Row]:
    """A hundred times of a linear student's curve for many levels."""
    levels, size, dense = (100, 50, 50) if quick else (10_000, 1000, 1000)
    rate, t = 0.5, np.geomspace(0.01, 1.0 if quick else 100.0, 100)
    net = ov.Committee(units=1, activation="linear", readout=1.0)
    problem = ov.Problem(
        data=ov.GaussianInputs(ov.PowerLaw(size, 1.0)), teacher=net, student=net, algorithm=ov.OnlineSGD(rate)
    )
    steps = round(t[-1] * size)
    spectrum, fewer = ov.PowerLaw(levels, 1.0), ov.PowerLaw(dense, 1.0)
    result = race(
        {
            "law": (lambda: ov.laws.linear_error(spectrum, rate, t), 1),
            "modes": (lambda: ov.laws.linear_modes(spectrum, rate)(t), 1),
            "sgd": (runner(problem, ov.draw(problem, size), steps), 1),
            "law, fewer": (lambda: ov.laws.linear_error(fewer, rate, t), 1),
            "dense": (lambda: _dense(fewer, rate, t), 1),
        },
        1 if quick else 3,
    )
    mine, exact = ov.laws.linear_error(fewer, rate, t), _dense(fewer, rate, t)
    return [
        at_least(
            f"one SGD run at N = {size} / linear law of {levels} levels at 100 times",
            result.ratio("sgd", "law"),
            10,
            f"{duration(result.cost('sgd'))} for {steps:,} steps to time {t[-1]:g}, {duration(result.cost('law'))} for "
            f"the law at any rate (14 complex nodes a time, each a sum over levels: the limit is one division per node "
            f"and level); all its modes by the secular equation take {duration(result.cost('modes'))}.",
        ),
        Row(
            f"eigenvectors of the {dense} × {dense} matrix / linear law, {dense} levels",
            times(result.ratio("dense", "law, fewer")),
            f"{duration(result.cost('dense'))} and {duration(result.cost('law, fewer'))}; they differ by "
            f"{float(np.abs(mine / exact - 1).max()):.0e}.",
        ),
    ]
