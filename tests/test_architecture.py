"""The page on the architecture, held against the imports and against a walk through the code."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import overlaps as ov
from test_house import HOME, rooms

PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")


def floors(graph: dict[str, set[str]]) -> dict[str, int]:
    """The floor of each room: one above the highest of those that it imports."""
    found: dict[str, int] = {}

    def floor(room: str) -> int:
        if room not in found:
            found[room] = 1 + max(map(floor, graph[room]), default=-1)
        return found[room]

    for room in graph:
        floor(room)
    return found


def test_floors_count_from_the_ground() -> None:
    assert floors({"a": set(), "b": {"a"}, "c": {"a", "b"}, "d": set()}) == {"a": 0, "b": 1, "c": 2, "d": 0}


def stands_on(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The rooms that each room imports and that no other of its imports stands on, directly or not."""

    def below(room: str) -> set[str]:
        return graph[room].union(*(below(other) for other in graph[room]))

    return {room: others - set().union(*map(below, others)) for room, others in graph.items()}


def drawing(graph: dict[str, set[str]], width: int = 64) -> str:
    """The house as text: one line for each floor, its rooms side by side."""
    on = floors(graph)
    lines = ["   " + "_" * (width + 2)]
    for floor in range(max(on.values()), -1, -1):
        names = sorted(room for room in graph if on[room] == floor)
        walls = [(width + 1) * k // len(names) for k in range(len(names) + 1)]
        cells = (name.center(b - a - 1) for name, a, b in zip(names, walls, walls[1:], strict=False))
        lines += [f"{floor:2d} |{'|'.join(cells)}|", "   |" + "_" * width + "|"]
    return "\n".join(lines) + "\n"


def house() -> dict[str, set[str]]:
    return {room: others for room, others in rooms(inside_functions=True).items() if room != "__main__"}


def test_a_room_stands_on_the_highest_of_its_imports() -> None:
    graph = {"a": set[str](), "b": {"a"}, "c": {"a", "b"}, "d": set[str]()}
    assert stands_on(graph) == {"a": set(), "b": {"a"}, "c": {"b"}, "d": set()}
    assert drawing(graph, 5).splitlines()[-2:] == [" 0 |a |d |", "   |_____|"]


def test_rooms_are_on_their_floors() -> None:
    """The table of the page: the floor of each room, and the rooms right beneath it."""
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| .* \| (.*) \|$", PAGE, re.MULTILINE)
    assert {room: int(floor) for floor, room, _ in rows} == floors(house())
    assert {room: set(re.findall(r"`(\w+)`", beneath)) for _, room, beneath in rows} == stands_on(house())


def test_the_house_is_drawn_as_it_stands() -> None:
    assert PAGE.split("```text\n")[1].split("```")[0] == drawing(house())


def test_the_walk_is_ten_lines() -> None:
    assert 0 < len(re.findall(r"^>>> ", PAGE, re.MULTILINE)) <= 10


def walked(call: Callable[[], object]) -> set[str]:
    """Files of the package whose functions run during a call; compiled code is not seen."""
    seen: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            seen.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return {Path(name).relative_to(HOME).as_posix() for name in seen if name.startswith(str(HOME))}


def test_the_walk_comes_through_the_files_that_it_names() -> None:
    """And each scale through no more files than the page says, on a second call, when all is loaded and compiled."""
    named = set(re.findall(r"\| `(\w+/\w+\.py)` \|", PAGE))
    assert named and all((HOME / name).exists() for name in named)
    net = ov.Committee(2)
    problem = ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.OnlineSGD(0.5))
    start = ov.draw(problem, 20, seed=0)
    scales: dict[str, Callable[[], object]] = {
        "solve": lambda: ov.solve(problem, start, [1.0]),
        "sample": lambda: ov.sample(problem, start, [1.0], runs=1),
        "train": lambda: ov.train(problem, start, [1.0], runs=1),
    }
    every = {name: walked(call) for name, call in scales.items()}
    reached = set[str]().union(*every.values())
    # steps are compiled code, found by who calls them
    assert named - reached <= {"online/steps.py"} and "online/micro.py" in reached
    counts = {name: int(count) for name, count in re.findall(r"`(\w+)` through (\d+)", PAGE)}
    assert {name: len(walked(call)) for name, call in scales.items()} == counts


def test_folders_to_add_to_are_there() -> None:
    added = re.findall(r"^\| an? .* \| `([\w/]+)/` \|", PAGE, re.MULTILINE)
    assert len(added) >= 5 and all((HOME / folder).is_dir() for folder in added)
