"""Work in the background of the page: shared, replaced, bounded in time and memory, and never the end of the server."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from overlaps import InputError
from overlaps.interface.progress import bar
from overlaps.pages.app import jobs as module
from overlaps.pages.app.jobs import Job, Jobs, Task


def double(x: int) -> int:
    return 2 * x


def slow(seconds: float) -> str:
    count = round(seconds / 0.05)
    with bar(count, "counting", delay=0) as shown:
        for _ in range(count):
            time.sleep(0.05)
            shown.update()
    return "done"


def refuse() -> None:
    raise InputError("size: too large")


def greedy() -> int:
    return len(bytearray(64 * 2**30))


def die() -> None:
    os._exit(1)


def broken() -> None:
    raise RuntimeError("what nobody has foreseen")


@pytest.fixture(scope="module")
def jobs() -> Iterator[Jobs]:
    made = Jobs(processes=1, seconds=4.0)
    yield made
    made.close()


def wait(job: Job, seconds: float = 60) -> Job:
    end = time.monotonic() + seconds
    while not job.done and time.monotonic() < end:
        time.sleep(0.02)
    assert job.done
    return job


def ask(jobs: Jobs, visitor: str, function, *arguments) -> Job:
    return jobs.ask(visitor, {"it": Task(function, arguments)})["it"]


def test_the_same_question_is_answered_once(jobs: Jobs) -> None:
    first, second = ask(jobs, "a", double, 21), ask(jobs, "b", double, 21)
    assert first is second and wait(first).answer == 42 and first.words == ""
    assert ask(jobs, "c", double, 22) is not first
    assert jobs.find({"it": Task(double, (21,)), "other": Task(double, (1,))}) == {"it": first}


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (refuse, "size: too large"),
        (greedy, "this needs more than 6 GB of memory"),
        (die, "its process has died"),
        (broken, "RuntimeError: what nobody has foreseen"),
    ],
)
def test_what_goes_wrong_is_a_sentence(jobs: Jobs, function, words: str) -> None:
    job = wait(ask(jobs, "a", function))
    assert job.answer is None and words in job.words
    assert wait(ask(jobs, "a", double, 4)).answer == 8  # and the next is answered


def test_a_job_is_stopped_after_its_time_and_tells_its_progress(jobs: Jobs) -> None:
    job = ask(jobs, "a", slow, 60)
    while not job.done and "%" not in job.progress:
        time.sleep(0.02)
    assert job.progress.startswith("counting ") and job.progress.endswith(" left")
    assert "stopped after 4 seconds" in wait(job).words


def test_a_visitor_who_leaves_stops_nobody_else(jobs: Jobs, monkeypatch) -> None:
    monkeypatch.setattr(module, "GRACE", 0.1)
    shared = ask(jobs, "a", slow, 1.0)
    assert ask(jobs, "b", slow, 1.0) is shared
    other = ask(jobs, "a", double, 5)  # a wishes something else; b still waits
    assert wait(shared).answer == "done" and wait(other).answer == 10


def test_what_nobody_wishes_is_dropped(jobs: Jobs, monkeypatch) -> None:
    monkeypatch.setattr(module, "GRACE", 0.1)
    running, waiting = ask(jobs, "a", slow, 3.5), ask(jobs, "b", double, 6)
    began = time.monotonic()
    last = ask(jobs, "a", double, 7)
    ask(jobs, "b", double, 7)
    assert wait(last).answer == 14 and time.monotonic() - began < 30
    assert running.answer is None and not waiting.done
    assert ask(jobs, "a", slow, 3.5) is not running  # asked again, it is begun again
    ask(jobs, "a", double, 7)


def test_only_so_many_wait(jobs: Jobs) -> None:
    ask(jobs, "a", slow, 0.5)
    time.sleep(0.1)
    found = [ask(jobs, f"visitor {i}", slow, 0.1 + i * 0.01) for i in range(module.LONGEST + 4)]
    assert [job.words for job in found].count(module.BUSY) >= 3
    wait(found[0])
