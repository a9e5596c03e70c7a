"""What a visitor of a room has chosen: a frozen value that a link and a TOML file say, and that Python code repeats.

A subclass is a dataclass. Its numbers have limits (`LIMITS`), its words are of a list (`WORDS`) or free text up to a
length (`TEXTS`); whatever comes from a browser is checked by these and by nothing else before it is used.

>>> from overlaps.pages.app.student_teacher import Explored
>>> chosen = Explored.from_link("?rate=0.7&units=3")
>>> chosen.rate, chosen.units, Explored.from_toml(chosen.to_toml()) == chosen
(0.7, 3, True)
>>> Explored.from_link("?units=5000")
Traceback (most recent call last):
...
overlaps.InputError: units: expected at most 6, got 5000
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Self
from urllib.parse import parse_qsl, urlencode

from ...interface import spec
from ...interface.checks import number, whole
from ...interface.errors import InputError, shown, unknown

LONGEST_LINK = 4000  # characters
LONGEST_FILE = 20_000  # characters of TOML


@dataclass(frozen=True)
class Choice:
    """The state of a room; checked when built.

    LIMITS: least and most of each number; whole where both are. WORDS: what each word may be. TEXTS: longest texts.
    """

    ROOM: ClassVar[str] = ""
    LIMITS: ClassVar[Mapping[str, tuple[float, float]]] = {}
    WORDS: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    TEXTS: ClassVar[Mapping[str, int]] = {}

    def __post_init__(self) -> None:
        for name, (least, most) in self.LIMITS.items():
            object.__setattr__(self, name, _within(name, getattr(self, name), least, most))
        for name, known in self.WORDS.items():
            if getattr(self, name) not in known:
                raise unknown(name, getattr(self, name), known)
        for name, longest in self.TEXTS.items():
            text = getattr(self, name)
            if not isinstance(text, str):
                raise InputError(f"{name}: expected text, got {shown(text)}")
            if len(text) > longest:
                raise InputError(f"{name}: expected at most {longest} characters, got {len(text)}")

    def to_mapping(self) -> dict[str, Any]:
        """Names and values of all fields."""
        return asdict(self)

    @classmethod
    def from_mapping(cls, table: Mapping[str, Any]) -> Self:
        """From names and values; numbers may be text, and what is not named has its default."""
        known = [f.name for f in fields(cls)]
        for name in table:
            if name not in known:
                raise unknown("setting", name, known)
        return cls(**table)

    def to_link(self) -> str:
        """The query of an address that restores this state."""
        return "?" + urlencode(self.to_mapping())

    @classmethod
    def from_link(cls, query: str) -> Self:
        """From the query of an address."""
        if len(query) > LONGEST_LINK:
            raise InputError("link: longer than any that this page makes")
        return cls.from_mapping(dict(parse_qsl(query.removeprefix("?"), keep_blank_values=True)))

    def to_toml(self) -> str:
        """A file with one table, named after the room."""
        return spec.write({self.ROOM: self.to_mapping()})

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """From a file as `to_toml` writes it."""
        table = table_of(text).get(cls.ROOM)
        if not isinstance(table, Mapping):
            raise InputError(f"TOML: expected a table [{cls.ROOM}], as this page writes it")
        return cls.from_mapping(table)

    def code(self) -> str:
        """Python that computes and draws what the page shows."""
        raise NotImplementedError


def table_of(text: str) -> dict[str, Any]:
    """The tables of a TOML file of this page, which is short."""
    if len(text) > LONGEST_FILE:
        raise InputError("TOML: longer than any that this page writes")
    return spec.parse(text)


def _within(name: str, value: Any, least: float, most: float) -> float:
    """A number that may have come as text, within its limits."""
    integral = isinstance(least, int) and isinstance(most, int)
    if isinstance(value, str):
        with suppress(ValueError):  # which is refused below, by name
            value = (int if integral else float)(value[:40])
    if integral:
        return whole(name, value, least=int(least), most=int(most))
    result = number(name, value, least=least)
    if result > most:
        raise InputError(f"{name}: expected at most {most:g}, got {result:g}")
    return result
