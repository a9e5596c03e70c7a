"""Finished runs are kept: what was interrupted goes on, and more runs extend fewer, bit by bit, at every scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import overlaps as ov
from overlaps.interface.packed import unpack

NET = ov.Committee(units=2)
ONLINE = ov.Problem(data=ov.GaussianInputs(), teacher=NET, student=NET, algorithm=ov.OnlineSGD(rate=0.5))
BATCH = ov.Problem(
    data=ov.GaussianInputs(), teacher=NET, student=NET, algorithm=ov.FullBatch(rate=0.3, steps=4, batch=0.5),
    label_noise=0.1,
)  # fmt: skip
REPLACED = ov.Problem(
    data=ov.GaussianInputs(), teacher=NET, student=NET,
    algorithm=ov.FullBatch(rate=0.3, steps=4, batch=0.5, replacement=True),
)  # fmt: skip
ROWS = np.random.default_rng(0).standard_normal((60, 20))
PASSES = ov.Problem(
    data=ov.Samples(ROWS, ROWS[:, 0] + np.random.default_rng(1).standard_normal(60)),
    student=ov.Committee(1, "linear"),
    algorithm=ov.MultiPass(rate=0.2, samples=30),
)
LEFT, RIGHT = np.diag([2.0, *[0.9] * 19]), np.eye(20) + 0.3 * np.ones((20, 20)) / 20
CLASSES = ov.Problem(
    data=ov.GaussianClasses(np.eye(2, 20), [LEFT, RIGHT]), student=ov.Committee(1, "linear"), loss="logistic",
    algorithm=ov.OnlineSGD(rate=0.2),
)  # fmt: skip
WATCH = {"observe": ov.spectra.Observer(kinds="hessian", samples=40)}
WAYS: dict[str, tuple[Callable[..., ov.Trajectory], ov.Problem, Any, dict[str, Any]]] = {
    "meso": (ov.sample, ONLINE, [0.0, 1.0, 2.3], {}),
    "diffusion": (ov.sample, ONLINE, [0.0, 1.0], {"method": "diffusion"}),
    "micro": (ov.train, ONLINE, [0.0, 1.0], {"levels": True}),
    "observed": (ov.train, ONLINE, [0.0, 1.0], WATCH),
    "covariances of classes": (ov.train, CLASSES, [0.0, 1.0], {}),
    "many passes": (ov.train, PASSES, [0.0, 2.0], {}),
    "full batch, meso": (ov.sample, BATCH, None, {"kernels": True}),
    "full batch, micro": (ov.train, BATCH, [0, 2, 4], {}),
    "full batch, with replacement": (ov.train, REPLACED, None, {}),
}


def equal(a: ov.Trajectory, b: ov.Trajectory, runs: int) -> None:
    for name in a.data.data_vars:
        one, other = a.data[name], b.data[name]
        if "run" in one.dims:
            one, other = one.isel(run=slice(runs)), other.isel(run=slice(runs))
        np.testing.assert_array_equal(one.values, other.values, err_msg=str(name))


def runs_in(folder: Path) -> list[int]:
    """Numbers of the runs in all files of a store, sorted; a run that was taken twice is there twice."""
    files = [unpack(path.read_bytes()) for path in folder.glob("*/*.npz")]
    return sorted(run for file in files for run in file["run"].values.tolist())


@pytest.mark.parametrize("way", WAYS)
def test_more_runs_extend_fewer_and_finished_ones_are_kept(way: str, tmp_path: Path) -> None:
    take, problem, times, options = WAYS[way]
    start = ov.draw(problem, 20, seed=1)
    few = take(problem, start, times, 3, 7, **options)
    many = take(problem, start, times, 8, 7, **options)
    equal(few, many, 3)
    take(problem, start, times, 3, 7, store=tmp_path, **options)
    assert runs_in(tmp_path) == [0, 1, 2]
    equal(take(problem, start, times, 8, 7, store=tmp_path, **options), many, 8)
    assert runs_in(tmp_path) == list(range(8))  # each once: those of before were not taken again
    again = take(problem, start, times, 8, 7, store=tmp_path, **options)
    equal(again, many, 8)
    other = take(problem, start, times, 8, 8, store=tmp_path, **options)  # another seed is another job
    assert not np.array_equal(other.data["Q"].values, again.data["Q"].values)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_run_is_the_same_in_groups_of_any_size(count: int) -> None:
    """All runs of this small problem are one group."""
    start = ov.draw(BATCH, 20, seed=1)
    equal(ov.sample(BATCH, start, runs=count, seed=3), ov.sample(BATCH, start, runs=6, seed=3), count)


@dataclass(frozen=True)
class Interrupting:
    """An observer that counts the runs that begin; one of them is interrupted as by Ctrl-C."""

    times: None = None
    begun: ClassVar[list[int]] = []
    interrupted: ClassVar[int | None] = None

    def variables(self, problem: ov.Problem, start: ov.Start) -> dict[str, tuple[str, ...]]:
        return {"length": ()}

    def begin(self, problem: ov.Problem, start: ov.Start, redraw: Any, seed: int) -> Interrupting:
        self.begun.append(seed)
        if len(self.begun) == self.interrupted:
            raise KeyboardInterrupt
        return self

    def observe(self, W: Any, v: Any) -> dict[str, Any]:
        return {"length": np.array(np.sum(W**2))}


def test_what_was_interrupted_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start, times, watch = ov.draw(ONLINE, 20), [0.0, 1.0], Interrupting()
    whole = ov.train(ONLINE, start, times, 40, 0, observe=watch)
    Interrupting.begun.clear()
    monkeypatch.setattr(Interrupting, "interrupted", 20)
    with pytest.raises(KeyboardInterrupt):
        ov.train(ONLINE, start, times, 40, 0, observe=watch, store=tmp_path)
    kept = runs_in(tmp_path)
    assert 0 < len(kept) < 40
    Interrupting.begun.clear()
    monkeypatch.setattr(Interrupting, "interrupted", None)
    equal(ov.train(ONLINE, start, times, 40, 0, observe=watch, store=tmp_path), whole, 40)
    assert len(Interrupting.begun) == 40 - len(kept) and runs_in(tmp_path) == list(range(40))


def test_damaged_files_of_runs_are_told_and_their_runs_done_again(tmp_path: Path) -> None:
    start, times = ov.draw(ONLINE, 20), [0.0, 1.0]
    first = ov.sample(ONLINE, start, times, 4, 0, store=tmp_path)
    (path,) = tmp_path.glob("*/*.npz")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.warns(UserWarning, match=r"is damaged: .*its runs are done again"):
        equal(ov.sample(ONLINE, start, times, 4, 0, store=tmp_path), first, 4)


def test_runs_of_one_that_diverges_are_not_kept_half(tmp_path: Path) -> None:
    problem = ov.Problem(
        data=ov.GaussianInputs(), teacher=ov.Committee(1, "linear"), student=ov.Committee(1, "linear"),
        algorithm=ov.OnlineSGD(rate=30.0),
    )  # fmt: skip
    start = ov.draw(problem, 50)
    reasons = []
    for _ in range(2):
        with pytest.raises(ov.NumericalError) as error:
            ov.sample(problem, start, [0.0, 20.0], 4, 0, store=tmp_path)
        reasons.append(str(error.value))
    assert reasons[0] == reasons[1]


@pytest.mark.parametrize("take", [ov.sample, ov.train])
def test_a_store_must_be_a_folder(take: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for wrong in (3, tmp_path / "file"):
        with pytest.raises(ov.InputError, match="store: "):
            take(ONLINE, ov.draw(ONLINE, 20), [0.0, 1.0], 2, 0, store=wrong)
