"""How far a computation is and how long it will still take: a bar, once it has taken two seconds.

Bars are shown in a terminal and in a notebook, and nowhere else: what is written to a file or a pipe stays clean. Parts
of a computation that has a bar of its own show none (`without_bars`).

>>> with bar(3, "squares") as shown:
...     for i in range(3):
...         shown.update()
"""

from __future__ import annotations

import sys
import time as clock
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from tqdm import tqdm

Thing = TypeVar("Thing")
DELAY = 2.0  # seconds before a bar is shown
_hidden: ContextVar[bool] = ContextVar("hidden", default=False)


def bar(
    total: float, name: str, unit: str = "it", *, shown: bool = True, initial: int = 0, scaled: bool = False,
    delay: float | None = None,
) -> tqdm[Any]:  # fmt: skip
    """A progress bar, to be updated and closed.

    Parameters
    ----------
    total: steps at its end; `initial` of them are done already.
    name: what is being done. unit: of what `total` counts; scaled: whether to write thousands as k.
    shown: the user's `progress`. delay: seconds before it is, two by default.
    """
    from tqdm.auto import tqdm

    disable = True if _hidden.get() or not shown else (False if in_notebook() else None)
    counted = "{n:.4g}/{total:.4g}" if isinstance(total, float) else "{n_fmt}/{total_fmt}"
    layout = f"{{l_bar}}{{bar}}| {counted} {{unit}} [{{elapsed}}, {{remaining}} left{{postfix}}]"
    delay = DELAY if delay is None else delay
    return tqdm(
        total=total, desc=name, unit=unit, initial=initial, unit_scale=scaled, delay=delay, disable=disable,
        bar_format=layout,
    )  # fmt: skip


def along(things: Sequence[Thing], name: str, unit: str, *, shown: bool = True) -> Iterator[Thing]:
    """The things one after the other, with a bar."""
    with bar(len(things), name, unit, shown=shown) as progress_bar:
        for thing in things:
            yield thing
            progress_bar.update()


@contextmanager
def without_bars(hidden: bool = True) -> Iterator[None]:
    """Show no bars of what is computed within, in this thread."""
    token = _hidden.set(hidden or _hidden.get())
    try:
        yield
    finally:
        _hidden.reset(token)


def in_notebook() -> bool:
    """Whether a notebook shows what is written: its error stream is no terminal, and shows bars all the same."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


class Course:
    """How far a solution has come that may begin again, finer: one bar, which then starts anew.

    There is no bar before two seconds have passed, so that reporting costs next to nothing.
    """

    def __init__(self, name: str, unit: str = "t") -> None:
        self.name, self.unit, self.last, self.attempts = name, unit, 0.0, 0
        self.made = self.began = clock.perf_counter()
        self.bar: tqdm[Any] | None = None

    def begin(self, last: float) -> None:
        """A solution begins, which ends at `last`."""
        self.last, self.began = float(last), clock.perf_counter()
        self.attempts += 1
        if self.bar is not None and not self.bar.disable:
            self.bar.reset(self.last)
            self._name_attempt()

    def at(self, done: float) -> None:
        """Show that `done` is reached."""
        if self.bar is None:
            now = clock.perf_counter()
            if now - self.made < DELAY:
                return
            self.bar = bar(self.last, self.name, self.unit, delay=0.0)
            if not self.bar.disable:
                self.bar.start_t -= now - self.began  # the bar estimates the time left from it
                self._name_attempt()
        if not self.bar.disable:
            self.bar.update(done - self.bar.n)

    def _name_attempt(self) -> None:
        assert self.bar is not None
        if self.attempts > 1:  # solutions are refined until they are accurate
            self.bar.set_postfix_str(f"solution {self.attempts}", refresh=False)

    def close(self) -> None:
        """Close the bar, which stays on the screen."""
        if self.bar is not None:
            self.bar.close()
