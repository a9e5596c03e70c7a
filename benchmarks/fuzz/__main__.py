"""Count how hostile input is answered, and write the counts into the documentation."""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from ..table import write_section
from .answers import Found
from .calls import fuzz_calls
from .families import FAMILIES
from .files import fuzz_files
from .specs import fuzz_specs

FULL = {"calls": 10_000, "specs": 100_000, "flips": 500}


COLUMNS = {
    "answered": "answered",
    "refused": "refused by its name",
    "other": "by that of another argument",
    "numerical": "`NumericalError`",
    "memory": "`MemoryError`",
    "unnamed": "refused without a name",
    "tracebacks": "tracebacks",
    "hangs": "hangs over 10 s",
    "NaN": "NaN",
}
HEAD = f"| what | inputs | {' | '.join(COLUMNS.values())} |\n" + "|---" * (2 + len(COLUMNS)) + "|\n"


def table(results: dict[str, Found], names: Iterable[str], before: str = "") -> str:
    """The counts of all names in their order; those that were not asked for now are as they were before."""
    rows = {line.split("|")[1].strip(): line for line in before.splitlines() if line.startswith("| ")}
    for name, found in results.items():
        numbers = [found.calls, *(found.count[kind] for kind in COLUMNS)]
        rows[name] = f"| {name} | {' | '.join(f'{n:,}' for n in numbers)} |"
    return HEAD + "".join(f"{rows[name]}\n" for name in names if name in rows)


def main() -> None:
    import matplotlib

    matplotlib.use("agg")
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    for name, most in FULL.items():
        parser.add_argument(f"--{name}", type=int, default=most)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="one family, specs or files")
    parser.add_argument("--page", type=lambda text: Path(text).resolve(), default=None, help="write the counts here")
    chosen = parser.parse_args()
    results: dict[str, Found] = {}
    jobs: dict[str, Callable[[], Found]] = {
        f"calls of {name}": lambda family=family: fuzz_calls(family, chosen.calls, chosen.seed)
        for name, family in FAMILIES.items()
    }
    jobs["specs through `check`"] = lambda: fuzz_specs(chosen.specs, chosen.seed)
    jobs["bits flipped and ends cut off, `load`"] = lambda: fuzz_files(chosen.flips, chosen.seed)
    for name, job in jobs.items():
        if chosen.only in name:
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # for what calls may write
                results[name] = found = job()
            print(f"{name}: {dict(found.count)}", flush=True)
            for what, where in found.wrong.items():
                print(f"  {what}\n      {where}", flush=True)
            if chosen.page is not None:  # what was counted is kept, also if the rest is interrupted
                before = chosen.page.read_text(encoding="utf-8")
                write_section(chosen.page, "fuzz", table(results, jobs, before))
    print(table(results, jobs))
    if any(found.wrong for found in results.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
