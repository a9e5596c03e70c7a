"""The theory of version 0.1, before its step was a value with schedules, batches and memory: where nothing of these is
used, the same solutions to 1e-9.

`tests/data/version_0_1.npz` holds starts and solutions of that version, of the commit before the modules were moved. To
make it again, run this file with that version in place of this one:

    git worktree add OLD d638b20^
    PYTHONPATH=OLD/src python tests/test_version_0_1.py tests/data/version_0_1.npz
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import overlaps as ov

STORED = Path(__file__).parent / "data" / "version_0_1.npz"
TIMES = [0.1, 0.5, 1.0, 3.0, 8.0]
LEVELS = ov.GaussianInputs(spectrum=ov.PowerLaw(levels=5, exponent=0.5))
ERF, RELU = ov.Committee(2, "erf"), ov.Committee(2, "relu")
PROBLEMS = {
    "levels": ov.Problem(data=LEVELS, teacher=ERF, student=ERF, algorithm=ov.OnlineSGD(0.5)),
    "readout": ov.Problem(
        data=LEVELS,
        teacher=ov.Committee(2, "erf", [1.0, -0.5]),
        student=ov.Committee(2, "erf", [0.8, -0.3], True),
        algorithm=ov.OnlineSGD(0.5, 0.2, 0.1),
        label_noise=0.2,
    ),
    "relu": ov.Problem(data=LEVELS, teacher=RELU, student=RELU, algorithm=ov.OnlineSGD(0.2)),
    "flow": ov.Problem(data=LEVELS, teacher=ERF, student=ERF, algorithm=ov.GradientFlow(0.5)),
    "mixture": ov.Problem(
        data=ov.GaussianMixture(gram=[[1.0, 0.2], [0.2, 1.5]], variance=[0.5, 0.8], weights=[0.4, 0.6]),
        student=ov.Committee(2, "erf", [1.0, -0.7]),
        algorithm=ov.OnlineSGD(0.5),
    ),
    "softmax": ov.Problem(
        data=ov.GaussianMixture(means=3, variance=0.5),
        student=ov.Softmax(3),
        loss="cross-entropy",
        algorithm=ov.OnlineSGD(0.5),
    ),
}
ACCURACY = {"mixture": 1e-10, "softmax": 1e-10}  # of quadratures, which by default aim at less than is compared


def starts() -> dict[str, dict[str, Any]]:
    """Overlaps of random weights, by problem."""
    rng, found = np.random.default_rng(1), {}
    for name, p in PROBLEMS.items():
        B, K, M = p.data.eigenvalues.size, p.student.units, 0 if p.teacher is None else p.teacher.units
        share = np.asarray(p.data.fractions)[:, None, None] / 40
        W, V = 0.7 * rng.standard_normal((B, K, 40)), rng.standard_normal((B, M, 40))
        found[name] = {"Q": share * W @ W.transpose(0, 2, 1)}
        if M:
            found[name] |= {"R": share * W @ V.transpose(0, 2, 1), "T": share * V @ V.transpose(0, 2, 1)}
        else:
            found[name]["m"] = 0.1 * rng.standard_normal((B, K, p.data.components.weights.size))
    return found


def solved(name: str, overlaps: dict[str, Any]) -> dict[str, Any]:
    """Q, R, m, v and the error at all times from these overlaps, as far as the problem has them."""
    start = ov.Start.from_overlaps(PROBLEMS[name], **overlaps)
    data = ov.solve(PROBLEMS[name], start, TIMES, accuracy=ACCURACY.get(name)).data
    return {v: data[v].values[0] for v in ("Q", "R", "m", "v", "error") if v in data}


@pytest.mark.parametrize("name", PROBLEMS)
def test_solutions_are_those_of_version_0_1(name: str) -> None:
    with np.load(STORED) as file:
        own = {key.removeprefix(f"{name} "): file[key] for key in file if key.startswith(f"{name} ")}
    begin = {key.removeprefix("start "): own.pop(key) for key in list(own) if key.startswith("start ")}
    found = solved(name, begin)
    assert set(found) == set(own) and {"Q", "error"} < set(own)
    for variable, values in own.items():
        assert np.abs(found[variable] - values).max() < 1e-9, variable
    assert np.abs(own["Q"][-1] - own["Q"][0]).max() > 0.01  # something was learned in between


if __name__ == "__main__":
    stored: dict[str, Any] = {}
    for problem, overlaps in starts().items():
        stored |= {f"{problem} start {key}": values for key, values in overlaps.items()}
        stored |= {f"{problem} {key}": values for key, values in solved(problem, overlaps).items()}
    np.savez_compressed(sys.argv[1], **stored)
