"""The page on the architecture, held against the imports and against a walk through the code."""

from __future__ import annotations

import re
import sys
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


def test_rooms_are_on_their_floors() -> None:
    told = {room: int(floor) for floor, room in re.findall(r"^\| (\d+) \| `(\w+)` \|", PAGE, re.MULTILINE)}
    graph = {room: others for room, others in rooms(inside_functions=True).items() if room != "__main__"}
    assert told == floors(graph)


def test_the_walk_comes_through_the_files_that_it_names() -> None:
    """Compiled code is not seen, so the file of its steps is looked for by who calls it."""
    named = set(re.findall(r"\| `(\w+/\w+\.py)` \|", PAGE))
    assert named and all((HOME / name).exists() for name in named)
    seen: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            seen.add(frame.f_code.co_filename)

    net = ov.Committee(2)
    problem = ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.OnlineSGD(0.5))
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        start = ov.draw(problem, 20, seed=0)
        ov.solve(problem, start, [1.0])
        ov.sample(problem, start, [1.0], runs=1)
        ov.train(problem, start, [1.0], runs=1)
    finally:
        sys.setprofile(before)
    walked = {Path(name).relative_to(HOME).as_posix() for name in seen if name.startswith(str(HOME))}
    assert named - walked <= {"online/steps.py"}
    assert "online/micro.py" in walked


def test_folders_to_add_to_are_there() -> None:
    added = re.findall(r"^\| an? .* \| `([\w/]+)/` \|", PAGE, re.MULTILINE)
    assert len(added) >= 5 and all((HOME / folder).is_dir() for folder in added)
