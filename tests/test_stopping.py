"""The stopping rule: on made-up ranks, on recorded runs, and how often it stops too early.

The statistical test takes 20 runs with a fixed seed; at the upper limit of the measured rate it fails by chance
less than once in a thousand.
"""

from __future__ import annotations

import sys
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import overlaps as ov
from mixtures import xor
from overlaps.interface.errors import InputError
from overlaps.spectra.observer import Observer
from overlaps.spectra.stopping import StoppingRule, outlier_rank, stop_time

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.spectra import Stops, false_stops

FALSE = 0.039  # upper limit of the measured rate, 1 of 142


def test_rank_counts_what_is_above_both_limits() -> None:
    values = np.array([[10.0, 2.1, 1.9, 0.1], [1.0, 0.31, 0.29, 0.0]])
    assert outlier_rank(values, bulk=0.1).tolist() == [2, 2]
    assert outlier_rank(values, bulk=[1.0, 0.01]).tolist() == [1, 3]
    assert outlier_rank(values[:, ::-1], bulk=0.1).tolist() == [2, 2]
    assert outlier_rank(values, bulk=0.1, share=0.0).tolist() == [3, 2]
    assert outlier_rank(values, bulk=0.01, factor=1.0, share=0.0).tolist() == [4, 3]
    assert outlier_rank(7 * values, bulk=0.7).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("ranks", "patience", "stop"),
    [
        ([1, 4, 4, 4, 4], 2.0, 3.0),
        ([4, 4, 4, 4, 4], 2.0, 2.0),
        ([1, 4, 4, 3, 4], 2.0, inf),
        ([1, 4, 5, 4, 4], 1.0, 4.0),
        ([1, 2, 4, 1, 1], 0.0, 2.0),
        ([1, 2, 3, 3, 3], 0.0, inf),
        ([4, 4, 4, 4, 4], 4.5, inf),
    ],
)
def test_the_rank_must_last(ranks: list[int], patience: float, stop: float) -> None:
    assert StoppingRule(4, patience).first_stop([0, 1, 2, 3, 4], ranks) == stop


def test_recorded_runs() -> None:
    """What `stop_time` says of a trajectory is what the rule, written out, says of its readout blocks."""
    problem = xor(4, 0.01, 0.05, [1.0, 1.0, -1.0, -1.0])
    noise = np.random.default_rng(1).standard_normal((4, 40))
    W = 0.3 * noise + 0.3 * np.sqrt(40) * problem.data.mean_vectors(40)  # one unit for each hidden class
    start = ov.Start.from_weights(problem, W)
    watch = Observer(kinds="hessian", samples=400, blocks=[0], count=1)
    run = ov.train(problem, start, np.arange(0, 41, 2.0), runs=2, observe=watch, progress=False)
    stops = stop_time(run, 4)
    assert np.all((stops >= 8) & (stops < 40))
    values = run.data["hessian_readout_values"].values
    for r in range(2):
        limit = np.maximum(3 * np.median(values[r, 0]), values[r].max(axis=1) / 5)
        held = np.sum(values[r] > limit[:, None], axis=1) == 4
        i = int(np.flatnonzero(run.time == stops[r])[0])
        assert held[i - 4 : i + 1].all() and not held[i - 5]
    assert np.all(stop_time(run, 3, patience=50.0) == inf)


def test_false_stops_are_rare() -> None:
    seen = false_stops(20, seed=7, every=4.0)
    assert seen.stops >= 4
    assert seen.false <= binom.isf(1e-3, seen.stops, FALSE)


def test_interval() -> None:
    """Exact binomial limits, against the tails that define them."""
    low, high = Stops(50, 40, 40, 3).interval
    assert binom.sf(2, 40, low) == pytest.approx(0.025) and binom.cdf(3, 40, high) == pytest.approx(0.025)
    assert Stops(50, 40, 40, 0).interval == (0.0, pytest.approx(1 - 0.025 ** (1 / 40)))


def refused(match: str, function: Any, *args: Any, **options: Any) -> None:
    with pytest.raises(InputError, match=match):
        function(*args, **options)


def test_refusals() -> None:
    refused("last axis", outlier_rank, 1.0, 0.1)
    refused("positive level", outlier_rank, [1.0], 0.0)
    refused("bulk: expected shape", outlier_rank, np.ones((2, 3)), [1.0, 1.0, 1.0])
    refused("rank: expected at least 1", StoppingRule, 0)
    refused("patience", StoppingRule, 2, -1.0)
    refused("ranks: expected shape", StoppingRule(2).first_stop, [0, 1], [1])
    net = ov.Committee(2, "erf", train_readout=True)
    problem = ov.Problem(data=ov.GaussianInputs(), teacher=ov.Committee(1), student=net, algorithm=ov.OnlineSGD(0.1))
    start = ov.draw(problem, size=10)
    refused("expected hessian_readout_values", stop_time, ov.train(problem, start, [0, 1], runs=1), 2)
    run = ov.train(problem, start, [0.5, 1], runs=1, observe=Observer())
    refused("from time 0", stop_time, run, 2)
    refused("did you mean", stop_time, run, 2, kind="hesian")
    run = ov.train(problem, start, [0, 1], runs=1, observe=Observer())
    refused("no 3 outliers", stop_time, run, 3)
