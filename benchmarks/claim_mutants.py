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

import numpy as np

from overlaps.papers import papers
from overlaps.papers.ledger import UNDECIDED, Pin

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
EVERY = "## Every place, by pins alone"
# mutants that give the same numbers, function and places, and why: they count as not noticed
SAME = {
    ("papers.alignment.printed.average", 10): "the rule is symmetric",
    ("papers.alignment.printed._indices", 0): "what is more has another sum",
    ("papers.alignment.printed.eq_65", 1): "what is more is an empty sum",
    ("papers.alignment.printed.eq_65", 5): "what is more has binomials that are zero",
    ("papers.alignment.printed.eq_65", 6): "what is more has a binomial that is zero",
    ("papers.comparison.printed.eq_38", 0): "the rule has converged before",
    ("papers.comparison.printed.eq_38", 2): "the rule is symmetric",
    ("papers.outliers.printed.nodes", 4): "the rule is symmetric",
    ("papers.outliers.printed.eq711", 0): "two normal distribution functions sum to one at any place",
    ("papers.outliers.printed.eq711", 1): "two normal distribution functions sum to one at any place",
    ("papers.outliers.printed.eq711", 8): "it divides by one",
    ("papers.universality.printed.pair", 9): "the rule is symmetric",
    ("papers.universality.printed.pair", 13): "the rule is symmetric",
    ("papers.universality.printed.fractions", 1): "a third row is not looked at",
    ("laws.asymptote.late_modes", 5): "only the symmetric part of it is used",
    ("laws.asymptote._inside", 8): "two units go the way of unequal ones then, to the same numbers",
    ("laws.features.random_basis_floor", 2): "an end of the bracket of a root",
    ("laws.features.random_basis_floor", 3): "an end of the bracket of a root",
    ("laws.features.random_basis_floor", 4): "an end of the bracket of a root",
    ("laws.features.random_basis_floor", 5): "an end of the bracket of a root",
    ("laws.linear.modes", 6): "the common factor is fixed by the sum afterwards",
    ("laws.linear.linear_error", 8): "a time before which the error is that of the start, to rounding",
    ("laws.linear.linear_error", 9): "a time before which the error is that of the start, to rounding",
    ("laws.linear.linear_error", 10): "a time before which the error is that of the start, to rounding",
    ("laws.linear._critical", 2): "the sign changes at the same place",
    ("laws.linear._critical", 3): "the sign changes at the same place",
    ("laws.linear._critical", 12): "the sign changes at the same place",
    ("laws.linear._critical", 13): "an end of the bracket of a root",
    ("laws.plateaus._coefficients", 16): "where the search for a root begins",
    ("laws.plateaus._coefficients", 17): "where the search for a root begins",
    ("laws.powerlaw._bracket", 4): "between one and two both forms are exact",
    ("laws.powerlaw._lower", 1): "a number in place of one that is not used",
    ("laws.xor.xor_flow", 0): "any length to scale a unit by gives the same flow",
    ("laws.xor.xor_flow", 1): "any length to scale a unit by gives the same flow",
    ("laws.xor.xor_flow", 2): "any length to scale a unit by gives the same flow",
    ("laws.xor.xor_flow", 6): "a sign is its own reciprocal",
    ("laws.xor._motion", 8): "a sign is its own reciprocal",
    ("laws.xor._landed", 0): "any number that is not below the length of a direction",
    ("laws.xor.xor_outliers", 0): "it decides on a refusal alone",
    ("laws.xor.xor_outliers", 1): "it decides on a refusal alone",
    ("giant_step.polynomials.polynomial_scores", 0): "moments that are not used",
    ("giant_step.polynomials.polynomial_scores", 2): "moments that are not used",
    ("giant_step.sphere._invariants", 0): "a power that is not used",
    ("giant_step.hermite.power_moments", 0): "only the shape is used",
    ("giant_step.hermite.power_moments", 2): "it is zero either way",
    ("giant_step.hermite.hermite_product", 12): "what is more has a binomial that is zero",
}
LONGEST = 120.0  # seconds for one claim, which take a minute at most: what takes longer is in error
LONGEST_PIN = 5.0  # and for one pin, which take a second at most
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
        why = f"; {SAME[at(row)]}, so it changes nothing" if at(row) in SAME else ""
        lines.append(f"- `{at(row)[0]}`: {row['words']} ({row['tried']} claims{why})")
    return "\n".join(lines if lost else lines[:-3])


def at(row: dict[str, Any]) -> tuple[str, int]:
    """Function and place of a mutant, as in SAME."""
    return f"{row['module'].removeprefix('overlaps.')}.{row['function']}", row["place"]


def by_pins(called: set[Where], say: Callable[..., None]) -> str:
    """Every place of the functions that claims use against pins alone: how many are noticed, and which are not."""
    targets = {functions(module)[name].__code__: (module, name) for module, name in called}
    calls: dict[Where, list[Pin]] = {}
    for pin in {pin.value: pin for paper in papers().values() for pins in paper.pins.values() for pin in pins}.values():
        forget()
        seen: set[Where] = set()
        with watched(targets, seen):
            pin.check()
        for each in seen:
            calls.setdefault(each, []).append(pin)
    lost, noticed_ = [], 0
    for module, name in sorted(called):
        function = functions(module)[name]
        for place in range(sites(function)):
            made = mutated(function, place)
            if made is None:
                continue
            with wrong(function, made[0]):
                found = any(fails(pin) for pin in calls.get((module, name), []))
            noticed_ += found
            if not found:
                lost.append({"module": module, "function": name, "place": place, "words": made[1]})
                say(f"{module}.{name} {place}: {made[1]}: no pin notices", flush=True)
    idle, count = sum(at(row) in SAME for row in lost), noticed_ + len(lost)
    text = f"Of {count} places in {len(called)} functions that claims use, pins notice {noticed_}. "
    text += f"Each of {idle} that change nothing has its\nreason in the source. What is left to claims:\n\n"
    return text + "\n".join(f"- `{at(row)[0]}`: {row['words']}" for row in lost if at(row) not in SAME)


def fails(pin: Pin) -> bool:
    """Whether a pin is in error."""
    try:
        with within(LONGEST_PIN), np.errstate(all="ignore"):
            pin.check()
    except Exception:
        return True
    return False


HEAD = """# Mutants noticed by claims

Do the claims of the [papers](papers.md) notice a mistake? A formula is made wrong in one place, by a changed operator,
a number larger by one or a lost minus, and the quick claims that use it are measured. A mutant counts as noticed if one
of them is in error or contradicts the record. Formulas as printed, and laws of the library behind claims, are pinned by
numbers of independent routes as well, which is a part of measuring a claim. `python -m benchmarks.claim_mutants` draws
the mutants by a seed, 22 unless `--seed` says otherwise, and writes the table of that seed; with `--pins` it holds
every place of these formulas against the pins alone. Mutants that were missed have been looked at, and formulas pinned
because of them: a table from after that says what claims and pins notice now, and what they miss that nobody has looked
at only a table from before can say. Every place has been held against the pins since, so later seeds come after that.

"""


def heading(seed: int) -> str:
    """What the table of a seed is of."""
    because = "because of its mutants" if seed in LOOKED_AT else "in every place"
    return f"## Seed {seed}: counted after formulas were pinned {because}"


def parts(old: str) -> dict[str, str]:
    """The sections of a page by their titles."""
    return {each[1]: each[0].strip() for each in re.finditer(r"(?ms)^(## .*?)$.*?(?=^## |\Z)", old)}


def page(old: str, title: str, text: str) -> str:
    """The page with a section that is written anew, and the others as they were."""
    known = parts(old) | {title: f"{title}\n\n{text}"}
    seed = lambda title: int("".join(re.findall(r"^## Seed (\d+)", title)) or -1)  # noqa: E731
    return HEAD + "\n\n".join(known[each] for each in sorted(known, key=lambda each: (-seed(each), each))) + "\n"


def main(arguments: list[str] | None = None, say: Callable[..., None] = print) -> int:
    """Draw mutants, measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=60, help="mutants of printed formulas, and as many of the library")
    parser.add_argument("--record", type=Path, default=Path("claim_mutants.json"), help="what has been measured so far")
    parser.add_argument("--budget", type=float, default=90.0, help="seconds for a mutant that nothing notices")
    parser.add_argument("--seed", type=int, default=22, help="of the mutants that are drawn")
    parser.add_argument("--pins", action="store_true", help="hold every place against the pins alone")
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
    if given.pins:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), EVERY, by_pins(set(users), say)), encoding="utf-8")
        return 0
    done = {(row["module"], row["function"], row["place"]) for row in kept["mutants"]}
    for module, name, place in chosen(set(users), given.count, given.seed):
        if (module, name, place) in done:
            continue
        function = functions(module)[name]
        made = mutated(function, place)
        if made is None:
            continue
        with wrong(function, made[0]):
            same = at({"module": module, "function": name, "place": place}) in SAME  # which no claim can notice
            claim, how, seconds = noticed([] if same else users[module, name], given.budget)
        row = {"module": module, "function": name, "place": place, "words": made[1], "claim": claim, "how": how}
        kept["mutants"].append(row | {"seconds": round(seconds, 2), "tried": len(users[module, name])})
        given.record.write_text(json.dumps(kept))
        say(f"{module}.{name}: {made[1]}: {claim or 'NOT NOTICED'} {how} {seconds:.1f} s", flush=True)
    drawn = set(chosen(set(users), given.count, given.seed))
    rows = [row for row in kept["mutants"] if (row["module"], row["function"], row["place"]) in drawn]
    old = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page(old, heading(given.seed), table(rows)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
