"""Specs with fields replaced, dropped or added, or their text damaged, through what ``overlaps check`` does."""

from __future__ import annotations

import datetime
from dataclasses import fields
from typing import Any

import numpy as np

import overlaps as ov
from overlaps.cli.experiment import Experiment, Plan
from overlaps.interface import spec
from overlaps.problem.statement import ROLES

from .answers import Found, judged
from .values import nested

NUMBERS = [0, 1, 2, 3, 10, -1, 0.0, 0.1, 0.5, 1.5, -0.5, 1e-9, 1e300, float("inf"), float("nan"), 10**4, 2**62, 10**30]
VALUES = [
    *NUMBERS,
    *NUMBERS,
    True,
    False,
    "",
    "text",
    "erf",
    "relu",
    "linear",
    "square",
    "hinge",
    "a\0b",
    "nothing.npy",
    [],
    [0.5, 0.5],
    [1.0],
    [[1.0]],
    [[]],
    ["a"],
    [1, "a"],
    [0, 1],
    [2.0, 1.0, 0.5],
    nested(60),
    {},
    {"kind": "PowerLaw"},
    datetime.date(2020, 1, 1),
    datetime.datetime(2020, 1, 1),
    [datetime.date(2020, 1, 1)],
]


def spec_text(rng: np.random.Generator) -> str:
    """A spec: a sensible one with some of its fields replaced, dropped or added, or its text damaged."""
    table: dict[str, Any] = {
        "data": {"spectrum": {"kind": "PowerLaw", "levels": 3, "exponent": 0.5}},
        "teacher": {"units": 2},
        "student": {"units": 2},
        "algorithm": {"rate": 0.5},
        "run": {"size": 60, "last": 2.0, "count": 6, "meso_runs": 2, "micro_runs": 2},
    }
    for _ in range(int(rng.integers(0, 4))):
        role = str(rng.choice(["data", "teacher", "student", "algorithm", "run", "spectrum", "loss", "label_noise"]))
        inner = table["data"].setdefault("spectrum", {}) if role == "spectrum" else table.get(role)
        value = VALUES[int(rng.integers(len(VALUES)))]
        if role in ROLES and rng.random() < 0.4:
            kind = ROLES[role][int(rng.integers(len(ROLES[role])))]
            chosen = [f.name for f in fields(kind) if rng.random() < 0.5]
            new = {name: VALUES[int(rng.integers(len(VALUES)))] for name in chosen}
            (table["data"] if role == "spectrum" else table)[role] = {"kind": kind.__name__, **new}
        elif isinstance(inner, dict) and rng.random() < 0.9:
            kinds = ROLES.get(role, ())
            known = [f.name for kind in kinds for f in fields(kind)] or list(inner) or ["size"]
            inner[str(rng.choice(known))] = value
        else:
            table[role] = value
        if not isinstance(table.get("data"), dict):
            break
    try:
        text = spec.write(table)
    except (ov.InputError, RecursionError):
        text = "[data]\nx = " + "[" * int(rng.integers(1, 600)) + "]" * int(rng.integers(1, 600))
    if rng.random() < 0.1:
        place = int(rng.integers(len(text)))
        text = text[:place] + str(rng.choice(["", "[", "=", '"', "\0", "9" * 5000, "é", "\n"])) + text[place + 1 :]
    return text


def known_fields() -> set[str]:
    """Names of all tables and fields of a spec."""
    kinds = [kind for role in ROLES.values() for kind in role] + [ov.Problem, Experiment, Plan]
    return {*ROLES, "spec", *(f.name for kind in kinds for f in fields(kind))}


def fuzz_specs(count: int, seed: int = 0) -> Found:
    rng, found, names = np.random.default_rng(seed), Found(), known_fields()
    for _ in range(count):
        text = spec_text(rng)
        judged(found, "check", lambda text=text: Experiment.from_toml(text).describe(), text[-300:], replaced=names)
    return found
