"""How long one waits: for help, for the import, for a first answer. Wall time of fresh processes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from .table import Row, duration
from .timing import Race, race

FIRST = """
import overlaps as ov
problem = ov.Problem(
    data=ov.GaussianInputs(), teacher=ov.Committee(2), student=ov.Committee(2), algorithm=ov.OnlineSGD(0.5)
)
start = ov.draw(problem, 100)
"""
CALLS = {
    "macro": "ov.solve(problem, start, [1.0])",
    "meso": "ov.sample(problem, start, [1.0], runs=1)",
    "micro": "ov.train(problem, start, [1.0], runs=1)",
}


def _race(commands: dict[str, list[str]], repeats: int) -> Race:
    def start(command: list[str]) -> None:
        subprocess.run(command, check=True, capture_output=True)

    return race({n: (lambda c=c: start(c), 1) for n, c in commands.items()}, repeats, time.perf_counter)


def waiting(quick: bool = False) -> list[Row]:
    """Help, import, and the first call of each scale, which loads the libraries and compiles."""
    script = Path(sys.executable).with_name("overlaps")
    helping = [str(script)] if script.exists() else [sys.executable, "-c", "from overlaps.cli import main; main()"]
    commands = {
        "python": [sys.executable, "-c", "pass"],
        "import": [sys.executable, "-c", "import overlaps"],
        "help": [*helping, "--help"],
    }
    waits = _race(commands, 1 if quick else 5)
    bare, loaded, helped = (waits.cost(name) for name in ("python", "import", "help"))
    rows = [
        Row(
            "overlaps --help",
            duration(helped),
            f"Wall time, best of {len(waits.turns['help'])}; {duration(bare)} of it is Python itself.",
            "< 0.3 s",
            helped < 0.3,
        ),
        Row("import overlaps", duration(max(loaded - bare, 0.0)), "Above Python's own start: names load when used."),
    ]
    if not quick:
        first = _race({name: [sys.executable, "-c", FIRST + call] for name, call in CALLS.items()}, 1)
        rows.append(
            Row(
                "first answer of a fresh process",
                ", ".join(f"{name}: {duration(first.cost(name))}" for name in CALLS),
                "Loading the libraries and compiling for this loss, paid once a process; the times above are after it.",
            )
        )
    return rows
