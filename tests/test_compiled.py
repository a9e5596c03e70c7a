"""Code that is compiled once: a later process finds it, and nothing of a user's own is left behind."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np

import overlaps as ov
from overlaps.compiled import NamedType
from overlaps.problem import _known

ABOUT = """
import sys
from numba.core import event
import overlaps as ov
class Count(event.Listener):
    names = []
    def on_start(self, event): self.names.append(event.data["dispatcher"].py_func.__qualname__)
    def on_end(self, event): pass
count = Count()
event.register("numba:compile", count)
def sine(x):
    return x + 0.1 * x * x
def slope(x):
    return 1 + 0.2 * x
g = ov.Activation("own", sine, slope) if sys.argv[1] == "own" else "erf"
problem = ov.Problem(
    data=ov.GaussianInputs(), teacher=ov.Committee(1, g), student=ov.Committee(1, g), algorithm=ov.OnlineSGD(0.5)
)
start = ov.draw(problem, 100)
error = ov.sample(problem, start, [1.0], runs=1).data["Q"].item()
print(len(count.names), repr(error))
"""


def told(which: str, where: Path) -> tuple[int, float]:
    """What a fresh process that keeps its code there compiles, and what it computes."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(where)}
    done = subprocess.run(
        [sys.executable, "-c", ABOUT, which], capture_output=True, text=True, check=True, env=environment
    )
    count, value = done.stdout.split()
    return int(count), float(value)


def test_second_process_compiles_nothing(tmp_path: Path) -> None:
    (first, value), (second, again) = told("erf", tmp_path), told("erf", tmp_path)
    assert first > 10
    assert second == 0
    assert value == again


def test_own_functions_leave_nothing_behind(tmp_path: Path) -> None:
    told("own", tmp_path)
    assert not list(tmp_path.rglob("*_visit*"))


def test_name_is_the_identity() -> None:
    """Types that go through a pickle are equal, those of other words or other sources are not."""
    names = ("gradient", "square", "erf", "erf")
    here = NamedType(_known, names, "sources")
    assert pickle.loads(pickle.dumps(here)) == here
    assert NamedType(_known, names, "changed") != here
    assert NamedType(_known, ("gradient", "square", "erf", "relu"), "sources") != here


def test_named_and_own_functions_give_the_same_bits() -> None:
    """An activation of one's own that is the built-in one takes the other way, to the same numbers."""
    built_in = ov.Committee(2).g
    found = []
    for g in ("erf", ov.Activation("copy", built_in.function, built_in.derivative)):
        problem = ov.Problem(
            data=ov.GaussianInputs(),
            teacher=ov.Committee(2, g),
            student=ov.Committee(2, g),
            algorithm=ov.OnlineSGD(rate=0.5),
        )
        start = ov.draw(problem, 50, seed=1)
        found.append([run(problem, start, [2.0], runs=2, seed=3).data["Q"].values for run in (ov.sample, ov.train)])
    assert np.array_equal(found[0], found[1])
