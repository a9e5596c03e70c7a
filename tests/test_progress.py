"""Progress and the time left: after two seconds, in terminals and notebooks, of everything that may take long."""

from __future__ import annotations

import dataclasses
import io
import re
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import full_batches
import overlaps as ov
from overlaps.compiled import functions
from overlaps.interface import progress

LINEAR = ov.Committee(1, "linear")


class Terminal(io.StringIO):
    """A stream that is a terminal, and remembers what it was shown."""

    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch, delay: float = 0.0) -> Terminal:
    """What is shown in a terminal, at once by default; from here on, since pytest has a stream of its own before."""
    shown = Terminal()
    monkeypatch.setattr(progress, "DELAY", delay)
    monkeypatch.setattr(sys, "stderr", shown)
    return shown


def names(shown: Terminal) -> set[str]:
    """Names of the bars that say how much time is left."""
    lines = re.split(r"[\r\n]+", shown.getvalue())
    return {line.split(":")[0].strip() for line in lines if " left" in line}


def rows(labels: bool = True) -> ov.Samples:
    x, noise = np.split(np.random.default_rng(0).standard_normal((60, 4)), [3], axis=1)
    return ov.Samples(x, x.sum(1) + 0.5 * noise[:, 0]) if labels else ov.Samples(x)


def online(**options: Any) -> tuple[ov.Problem, ov.Start]:
    problem = ov.Problem(
        data=ov.GaussianInputs(), teacher=LINEAR, student=LINEAR, algorithm=ov.OnlineSGD(0.5), **options
    )
    return problem, ov.draw(problem, 20)


def full_batch() -> tuple[ov.Problem, ov.Start]:
    problem = full_batches.paper(steps=2)
    return problem, full_batches.small_start(problem, 20)


def many_passes() -> tuple[ov.Problem, ov.Start]:
    problem = ov.Problem(data=rows(), student=LINEAR, algorithm=ov.MultiPass(0.1, samples=40))
    return problem, ov.draw(problem, 3, scale=0.0)


def giant() -> tuple[Any, Any]:
    setting = ov.giant_step.GiantStepSetting(ov.giant_step.TwoClasses(), ov.GiantStep(), 16, 32, 32)
    return setting, ov.giant_step.scaled(np.ones(16), [0.5])


LONG: dict[str, tuple[str, Callable[[], Any]]] = {
    "solve": ("macro", lambda: ov.solve(*online(), [0.0, 1.0])),
    "exact mean": ("macro", lambda: ov.solve(*online(), [0.0, 1.0], system="exact-mean")),
    "many passes": ("macro", lambda: ov.solve(*many_passes(), [0.0, 1.0])),
    "full batch": ("macro", lambda: ov.solve(*full_batch(), accuracy=0.5)),
    "resamples": ("macro, resamples", lambda: ov.solve(*many_passes(), [0.0, 1.0], resamples=10)),
    "fluctuations": ("fluctuations", lambda: ov.full_batch.fluctuations(*full_batch(), accuracy=0.5)),
    "giant step": ("unseen classes", lambda: ov.giant_step.solve(*giant())),
    "giant steps": ("giant steps", lambda: ov.giant_step.train(*giant(), runs=2)),
    "verify": ("committee", lambda: ov.papers.verify("committee", quick=True)),
    "sample": ("meso", lambda: ov.sample(*online(), [0.0, 1.0], runs=2)),
    "train": ("micro", lambda: ov.train(*online(), [0.0, 1.0], runs=2)),
    "optimise": ("optimise, at most", lambda: ov.optimise(*online(label_noise=0.1), 2.0, knots=2)),
    "forecast": ("forecast", lambda: ov.forecast(rows(), runs=2)),
    "sweep": (
        "sweep",
        lambda: ov.sweep(online()[0], {"algorithm.rate": [0.1, 0.2]}, times=[0.0, 1.0], size=20, workers=1),
    ),
}


@pytest.mark.parametrize("what", LONG)
def test_all_that_takes_long_says_how_long(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of a computation show no bars of their own: there is one name."""
    name, compute = LONG[what]
    shown = terminal(monkeypatch)
    compute()
    assert names(shown) == (set(name.split(", ")) if what == "resamples" else {name})


@pytest.mark.parametrize("what", ["solve", "exact mean", "many passes"])
def test_how_far_a_solution_is_grows_up_to_its_end(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the units of the end that is named, with rates that change, so that no long stretch is taken at once."""
    told: list[tuple[float, list[float]]] = []
    monkeypatch.setattr(progress.Course, "begin", lambda _, last: told.append((last, [])))
    monkeypatch.setattr(progress.Course, "at", lambda _, done: told[-1][1].append(done))
    rate, times = ov.Schedule([0.0, 8.0], [0.2, 0.1]), [0.0, 2.0, 4.0, 6.0, 8.0]
    problem, start = many_passes() if what == "many passes" else online()
    algorithm = ov.MultiPass(rate, samples=40) if what == "many passes" else ov.OnlineSGD(rate)
    ov.solve(
        dataclasses.replace(problem, algorithm=algorithm), start, times,
        system="exact-mean" if what == "exact mean" else "auto",
    )  # fmt: skip
    assert told
    for last, done in told:
        assert last == pytest.approx(8.0) and done == sorted(done)
        assert done[0] >= 0 and 0.75 * last <= done[-1] <= last


@pytest.mark.parametrize("what", ["solve", "train", "optimise"])
def test_it_can_be_switched_off(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = terminal(monkeypatch)
    getattr(ov, what)(*online(label_noise=0.1), [1.0], progress=False)
    assert shown.getvalue() == ""


def test_nothing_is_shown_before_two_seconds_or_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setattr(progress, "DELAY", 2.0 if stream.isatty() else 0.0)
        ov.solve(*online(), [0.0, 1.0])
        ov.train(*online(), [0.0, 1.0], runs=2)
        assert stream.getvalue() == ""


def test_a_notebook_shows_bars_though_it_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "DELAY", 0.0)
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    ov.solve(*online(), [0.0, 1.0])
    assert "macro" in stream.getvalue()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace()))
    assert not progress.in_notebook()  # a shell in a terminal


def test_the_time_left_of_a_solution_counts_from_its_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    now, _ = [100.0], terminal(monkeypatch, delay=2.0)
    monkeypatch.setattr(progress.clock, "perf_counter", lambda: now[0])
    course = progress.Course("macro")
    course.begin(100.0)
    now[0] += 1.0
    course.at(10.0)
    assert course.bar is None  # too early
    now[0] += 9.0
    course.at(50.0)
    assert course.bar is not None
    assert course.bar.format_dict["elapsed"] == pytest.approx(10.0, abs=1.0)
    course.begin(100.0)
    assert course.bar.n == 0 and "solution 2" in str(course.bar)
    course.close()


def test_long_compilations_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now, shown = [0.0], terminal(monkeypatch, delay=2.0)
    monkeypatch.setattr(functions.clock, "perf_counter", lambda: now[0])
    waiting = functions.Waiting()
    for _ in range(3):
        waiting.begin()
        now[0] += 0.3
        waiting.begin()  # what it calls
        now[0] += 0.3
        waiting.end()
        waiting.end()
        now[0] += 100.0  # what was compiled runs
    assert shown.getvalue() == "" and waiting.seconds == pytest.approx(1.8)
    waiting.begin()
    now[0] += 0.3
    for _ in range(2):
        waiting.begin()
        waiting.end()
    waiting.end()
    assert shown.getvalue().count("overlaps: compiling") == 1
