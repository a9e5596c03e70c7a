"""Whether claims notice mistakes: `python -m benchmarks.claim_mutants` makes formulas wrong, one at a time, and counts.

A mutant is a function with one operator or number changed: + and −, × and / exchanged, a power made a product, a number
larger by one, a minus left out. Half of the mutants are of formulas as printed (`printed.py` of each paper), half of
the library's formulas that claims call. Of each the quick claims that call the function are measured, the fast ones
first, until one is in error or contradicts the record; a claim that cannot be told any more has not noticed.

A function is made wrong in place, by its code, so that everything that calls it is wrong; what is compiled is not.
The table goes into docs/claim_mutants.md, and each mutant into a JSON file as it is done: an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import signal
import sys
import time as clock
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from overlaps.papers import papers
from overlaps.papers.ledger import UNDECIDED

from .mutants import functions, mutated, sites

PAGE = Path(__file__).parents[1] / "docs" / "claim_mutants.md"
LIBRARY = (
    "laws.asymptote",
    "laws.features",
    "laws.levels",
    "laws.linear",
    "laws.plateaus",
    "laws.powerlaw",
    "laws.softmax",
    "laws.xor",
    "giant_step.hermite",
    "giant_step.polynomials",
    "giant_step.sphere",
)  # closed forms; numbers of quadratures and of root searches are no formulas
GUARDS = ("is_bounded", "_check_near", "common_readout", "_minimum")  # they refuse, or search: no formulas
LOOKED_AT = (22, 23)  # seeds whose missed mutants have been looked at, and formulas pinned because of them
# mutants that give the same numbers, function and place, and why: they count as not noticed
SAME = {
    ("papers.universality.printed.pair", 9): "the rule is symmetric, so it changes nothing",
    ("papers.alignment.printed._indices", 0): "what is more has another sum, so it changes nothing",
    ("papers.outliers.printed.eq711", 8): "it divides by one, so it changes nothing",
    ("laws.linear._critical", 12): "the sign changes at the same place, so it changes nothing",
    ("giant_step.sphere._invariants", 0): "a power that is not used, so it changes nothing",
    ("giant_step.hermite.power_moments", 0): "only the shape is used, so it changes nothing",
}
LONGEST = 120.0  # seconds for one claim, which take a minute at most: what takes longer is in error
Where = tuple[str, str]  # module and function


def forget() -> None:
    """Clear what functions of the library and of the papers remember."""
    for name, module in list(sys.modules.items()):
        if name.startswith("overlaps."):
            for value in list(vars(module).values()):
                clear = getattr(value, "cache_clear", None)
                if callable(clear) and name != "overlaps.papers.index":
                    clear()


@contextmanager
def wrong(function: FunctionType, code: CodeType) -> Iterator[None]:
    """A function with other code; afterwards, and what has been remembered meanwhile, as before."""
    right = function.__code__
    forget()
    function.__code__ = code
    try:
        yield
    finally:
        function.__code__ = right
        forget()


@contextmanager
def watched(targets: dict[CodeType, Where], called: set[Where]) -> Iterator[None]:
    """Within it, which of the functions are called."""

    def look(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in targets:
            called.add(targets[frame.f_code])

    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(None)


def callers(targets: dict[CodeType, Where], known: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Of every quick claim the seconds it takes, its verdict, and which of the functions it and its pins call."""
    found = dict(known)
    for handle, paper in papers().items():
        for name, claim in paper.claims.items():
            forget()
            called: set[Where] = set()
            with watched(targets, called):
                for pin in paper.pins.get(name, ()):
                    pin.check()
            if f"{handle} {name}" not in known:
                began = clock.perf_counter()
                try:
                    with watched(targets, called):
                        verdict = claim.measure(True).verdict
                except Exception as error:  # an extra that is not installed, perhaps
                    verdict = f"in error: {error}"
                seconds = clock.perf_counter() - began
                found[f"{handle} {name}"] = {"seconds": seconds, "verdict": verdict, "calls": []}
                print(f"{handle} {name}: {verdict}, {seconds:.1f} s, calls {len(called)}", flush=True)
            each = found[f"{handle} {name}"]
            each["calls"] = sorted({*map(tuple, each["calls"]), *called})
    return found


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """An error after so many seconds of this process's own time: some mutants make a search that never ends."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"not done in {seconds:g} s")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def noticed(claims: list[str], budget: float) -> tuple[str, str, float]:
    """The first claim that contradicts its record, how, and the seconds; empty if none does within the budget."""
    began = clock.perf_counter()
    for each in claims:
        handle, name = each.split(" ", 1)
        paper = papers()[handle]
        try:
            with within(LONGEST):
                verdict = paper.measure(name, True).verdict
        except Exception as error:
            return each, type(error).__name__, clock.perf_counter() - began
        if verdict not in (paper.claims[name].expected, UNDECIDED):
            return each, verdict, clock.perf_counter() - began
        if clock.perf_counter() - began > budget:
            break
    return "", "", clock.perf_counter() - began


def chosen(called: set[Where], count: int, seed: int) -> list[tuple[str, str, int]]:
    """Mutants: module, function and place, `count` of printed formulas and as many of the library, drawn by a seed."""
    draw = random.Random(seed)
    kinds: dict[bool, list[tuple[str, str, int]]] = {True: [], False: []}
    for module, name in sorted(called):
        function = functions(module)[name]
        places = list(range(sites(function)))
        # long functions have no more say than short ones
        kinds[module.endswith(".printed")] += [(module, name, at) for at in draw.sample(places, min(6, len(places)))]
    return [each for kind in kinds.values() for each in draw.sample(kind, min(count, len(kind)))]


def modules() -> list[str]:
    """Printed formulas of all papers, and the library's formulas."""
    return [f"overlaps.papers.{handle}.printed" for handle in papers() if handle != "committee"] + [
        f"overlaps.{name}" for name in LIBRARY
    ]


def table(rows: list[dict[str, Any]]) -> str:
    """Mutants by module, how many were noticed, and the ones that were not."""
    lines = ["| formulas | mutants | noticed | share |", "|---|---|---|---|"]
    groups = Counter(row["module"].removeprefix("overlaps.") for row in rows)
    hits = Counter(row["module"].removeprefix("overlaps.") for row in rows if row["claim"])
    for name in sorted(groups):
        lines.append(f"| `{name}` | {groups[name]} | {hits[name]} | {100 * hits[name] / groups[name]:.0f} % |")
    for words, chosen_rows in (
        ("all as printed", [row for row in rows if row["module"].endswith(".printed")]),
        ("all of the library", [row for row in rows if not row["module"].endswith(".printed")]),
        ("**all**", rows),
    ):
        seen = sum(bool(row["claim"]) for row in chosen_rows)
        lines.append(f"| {words} | {len(chosen_rows)} | {seen} | {100 * seen / max(len(chosen_rows), 1):.0f} % |")
    lines += ["", "Not noticed:", ""]
    lost = [row for row in rows if not row["claim"]]
    for row in lost:
        name = f"{row['module'].removeprefix('overlaps.')}.{row['function']}"
        why = next((f"; {why}" for (at, place), why in SAME.items() if (at, place) == (name, row["place"])), "")
        lines.append(f"- `{name}`: {row['words']} ({row['tried']} claims{why})")
    return "\n".join(lines if lost else lines[:-3])


HEAD = """# Mutants noticed by claims

Do the claims of the [papers](papers.md) notice a mistake? A formula is made wrong in one place, by a changed operator,
a number larger by one or a lost minus, and the quick claims that use it are measured. A mutant counts as noticed if one
of them is in error or contradicts the record. Formulas as printed are pinned by numbers as well, which is a part of
measuring a claim. `python -m benchmarks.claim_mutants` draws the mutants by a seed, 22 unless `--seed` says otherwise,
and writes the table of that seed. Mutants that were missed have been looked at, and formulas pinned by numbers because
of them: a table from after that says what claims and pins notice now, and what they miss that nobody has looked at only
a table from before can say.

"""


def heading(seed: int) -> str:
    """What the table of a seed is of."""
    when = "after" if seed in LOOKED_AT else "before"
    return f"## Seed {seed}: counted {when} formulas were pinned because of its mutants"


def page(old: str, seed: int, text: str) -> str:
    """The page with the table of a seed, and those of other seeds as they were."""
    known = {int(each[2]): each[1].strip() for each in re.finditer(r"(?ms)^(## Seed (\d+).*?)(?=^## |\Z)", old)}
    known[seed] = f"{heading(seed)}\n\n{text}"
    return HEAD + "\n\n".join(known[each] for each in sorted(known, reverse=True)) + "\n"


def main(arguments: list[str] | None = None, say: Callable[..., None] = print) -> int:
    """Draw mutants, measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60, help="mutants of printed formulas, and as many of the library")
    parser.add_argument("--record", type=Path, default=Path("claim_mutants.json"), help="what has been measured so far")
    parser.add_argument("--budget", type=float, default=90.0, help="seconds for a mutant that nothing notices")
    parser.add_argument("--seed", type=int, default=22, help="of the mutants that are drawn")
    given = parser.parse_args(arguments)
    kept = json.loads(given.record.read_text()) if given.record.exists() else {"callers": {}, "mutants": []}
    targets = {f.__code__: (module, name) for module in modules() for name, f in functions(module).items()}
    kept["callers"] = callers(targets, kept["callers"])
    given.record.write_text(json.dumps(kept))
    right = {name: each for name, each in kept["callers"].items() if not each["verdict"].startswith("in error")}
    users: dict[Where, list[str]] = {}
    for name, each in sorted(right.items(), key=lambda item: item[1]["seconds"]):
        for module, function in (at for at in map(tuple, each["calls"]) if at[0] in modules() and at[1] not in GUARDS):
            users.setdefault((module, function), []).append(name)
    done = {(row["module"], row["function"], row["place"]) for row in kept["mutants"]}
    for module, name, place in chosen(set(users), given.count, given.seed):
        if (module, name, place) in done:
            continue
        function = functions(module)[name]
        made = mutated(function, place)
        if made is None:
            continue
        with wrong(function, made[0]):
            claim, how, seconds = noticed(users[module, name], given.budget)
        row = {"module": module, "function": name, "place": place, "words": made[1], "claim": claim, "how": how}
        kept["mutants"].append(row | {"seconds": round(seconds, 2), "tried": len(users[module, name])})
        given.record.write_text(json.dumps(kept))
        say(f"{module}.{name}: {made[1]}: {claim or 'NOT NOTICED'} {how} {seconds:.1f} s", flush=True)
    drawn = set(chosen(set(users), given.count, given.seed))
    rows = [row for row in kept["mutants"] if (row["module"], row["function"], row["place"]) in drawn]
    old = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page(old, given.seed, table(rows)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
