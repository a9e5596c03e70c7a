"""Calls of public functions with one or two of their arguments replaced."""

from __future__ import annotations

from typing import Any

import numpy as np

from .answers import Found, judged
from .problems import Case
from .values import hostile, mutated

WORK = {
    "times",
    "time",
    "runs",
    "seeds",
    "size",
    "sizes",
    "samples",
    "points",
    "steps",
    "count",
    "levels",
    "units",
    "last",
}


# what an argument is, where refusals call it so
RELATED = {
    "A": {"matrix"},
    "function": {"activation"},
    "derivative": {"activation"},
    "kinks": {"activation"},
    "g": {"activation"},
    "handle": {"paper"},
    "name": {"variable"},
    "names": {"class"},
    "path": {"load"},
    "problem": {"student", "teacher", "data", "loss", "algorithm"},
    "rates": {"over"},
    "sizes": {"size"},
    "text": {"spec"},
    "kinds": {"kind"},
    "variables": {"variable"},
    "what": {"A", "v", "vector"},
    "y": {"variable"},
    "color": {"at"},
    "covariances": {"eigenvalues"},
    "which": {"activation"},
}


def fuzz_calls(family: dict[str, Case], calls: int, seed: int = 0) -> Found:
    """Calls of all functions of a family, in turn, with arguments replaced."""
    rng, found, pool = np.random.default_rng(seed), Found(), hostile()
    names = list(family)
    for name, (function, arguments) in family.items():  # each works, and is compiled before it is timed
        try:
            function(**arguments)
        except Exception as error:
            if arguments.get("path") is None:  # readers of files that there are not
                raise AssertionError(f"{name}: the call that should work does not: {error}") from error
    for i in range(calls):
        name = names[i % len(names)]
        function, arguments = family[name]
        changed = dict(arguments)
        for which in rng.choice(list(arguments), min(len(arguments), int(rng.integers(1, 3))), replace=False):
            near = mutated(arguments[which], rng, str(which) in WORK) if rng.random() < 0.4 else None
            if near is None:
                # one that an earlier call has used up would be an empty one
                value = pool[int(rng.integers(len(pool)))]
                near = iter([1.0, 2.0]) if hasattr(value, "__next__") else value
            changed[str(which)] = near
        words = ", ".join(f"{k}={_short(v)}" for k, v in changed.items() if v is not arguments[k])
        replaced = {k for k, v in changed.items() if v is not arguments[k]}
        stands_for = {k: {*RELATED.get(k, ()), getattr(v, "__name__", k)} for k, v in changed.items()}
        named = replaced.union(*(stands_for[k] for k in replaced))
        others = {*changed, name.partition(".")[0].lower()}.union(*stands_for.values())  # or what is made of them
        judged(found, name, lambda f=function, c=changed: f(**c), words, replaced=named, others=others)
        _close_pictures()
    return found


def _short(value: Any) -> str:
    try:
        return f"{value!r:.60}"
    except Exception:
        return f"<{type(value).__name__}>"


def _close_pictures() -> None:
    import matplotlib.pyplot as plt

    if plt.get_fignums():
        plt.close("all")
