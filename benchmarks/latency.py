"""How long one waits: for help and the import (wall time), and for a first answer (CPU time), of fresh processes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from .table import Row, at_most, duration
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
# the first array makes xarray load Dask, where that is installed
LIBRARIES = """
import numpy, numba, scipy.integrate, scipy.special, scipy.stats, xarray, threadpoolctl, tqdm
xarray.Dataset({"x": ("time", numpy.zeros(1))})
"""


def _race(commands: dict[str, list[str]], repeats: int) -> Race:
    def start(command: list[str]) -> None:
        subprocess.run(command, check=True, capture_output=True)

    return race({n: (lambda c=c: start(c), 1) for n, c in commands.items()}, repeats, time.perf_counter)


def _first(scale: str) -> Row:
    """A first answer, without and with compiled code on disk, against loading the libraries that it needs."""

    def spent(script: str, where: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        environment = os.environ | {"OVERLAPS_CACHE_DIR": where}
        subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, env=environment)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    with TemporaryDirectory() as where:
        new = spent(FIRST + CALLS[scale], where)
        later, loading = (min(spent(script, where) for _ in range(3)) for script in (FIRST + CALLS[scale], LIBRARIES))
    means = (
        f"{duration(later)} and {duration(loading)} of CPU time; in a new installation {duration(new)}, for built-in "
        "losses and activations are compiled once and kept on disk. Those of your own are compiled in every process. "
        "The libraries are loaded with one array in xarray, which loads Dask if it is installed."
    )
    return at_most(f"first answer of {scale} / loading NumPy, SciPy, Numba and xarray", later / loading, 1.5, means)


def waiting(quick: bool = False) -> list[Row]:
    """Help and import."""
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
    return rows


def first_answers(quick: bool = False) -> list[Row]:
    """The first call of each scale in a fresh process."""
    return [_first(name) for name in (["macro"] if quick else CALLS)]
