"""Theory of ten components with covariances that do not commute: what it costs, and how that grows with N and K."""

from __future__ import annotations

import time

import numpy as np

import overlaps as ov

from .table import Row, at_most, duration

COMPONENTS = 10


def problem(size: int, units: int) -> ov.Problem:
    """Logistic regression, or a network of erf units, on components whose spectra fall as those of images do."""
    rng = np.random.default_rng(0)
    spectrum = (np.arange(1, size + 1) + 8.0) ** -1.9  # that of the columns of MNIST within a third, to the 320th
    spectrum *= size / spectrum.sum()
    basis = np.linalg.qr(rng.standard_normal((size, size)))[0]
    covariances = []
    for _ in range(COMPONENTS):
        root = (basis * np.sqrt(spectrum)) @ (np.eye(size) + 0.5 * rng.standard_normal((size, size)) / np.sqrt(size))
        covariances.append(root @ root.T)
    means = rng.standard_normal((COMPONENTS, size)) * np.sqrt(spectrum) @ basis.T / 2
    data = ov.GaussianClasses(means, covariances, labels=[-1, 1] * (COMPONENTS // 2))
    if units == 1:
        return ov.Problem(data=data, student=ov.Committee(1, "linear"), algorithm=ov.OnlineSGD(0.2), loss="logistic")
    student = ov.Committee(units, "erf", readout=[1.0, -0.8, 0.6][:units])
    return ov.Problem(data=data, student=student, algorithm=ov.OnlineSGD(0.3))


def seconds(size: int, units: int, last: float) -> tuple[float, float]:
    """CPU seconds of a solution, and its relative accuracy."""
    case = problem(size, units)
    start = ov.draw(case, size, scale=0.0 if units == 1 else 0.5)
    began = time.process_time()
    found = ov.solve(case, start, [last / 24, last / 6, last / 2, last])
    return time.process_time() - began, found.accuracy("error") / float(found.data["error"].max())


def solutions(quick: bool = False) -> list[Row]:
    """N = 668 with one unit and with three, and half the size."""
    size, last = (40, 1.0) if quick else (668, 12.0)
    seconds(20, 1, 1.0), seconds(20, 3, 1.0)  # which compiles what is not measured
    one, error = seconds(size, 1, last)
    three, error_three = seconds(size, 3, last)
    half, _ = seconds(size // 2, 3, last)
    what = f"ten covariances that do not commute, N = {size}"
    return [
        at_most(f"{what}, K = 1 / 5 s of CPU time", one / 5, 1, f"It takes {duration(one)}, within {error:.0e}."),
        at_most(
            f"{what}, K = 3 / 30 s of CPU time", three / 30, 1, f"It takes {duration(three)}, within {error_three:.0e}."
        ),
        at_most(f"{what}: K = 3 / K = 1", three / one, 27, "A step takes (K r)³ operations for r whole coordinates."),
        at_most(
            f"K = 3, N = {size} / N = {size // 2}", three / half, 8, "No more than the cube of N; r grows more slowly."
        ),
    ]
