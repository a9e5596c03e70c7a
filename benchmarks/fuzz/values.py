"""Values that have no business where they are put."""

from __future__ import annotations

import datetime
import decimal
import fractions
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import overlaps as ov

from .problems import LAW, NET, P


def nested(depth: int) -> list[Any]:
    value: list[Any] = [1.0]
    for _ in range(depth):
        value = [value]
    return value


class Rude:
    """An object that raises whatever is asked of it."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __float__(self) -> float:
        raise RuntimeError("no number")

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no array")


def hostile() -> list[Any]:
    """A list of them, the same every time."""
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    return [
        None,
        True,
        False,
        "",
        "text",
        "0.5",
        "a\0b",
        "λ" * 300,
        b"bytes",
        0,
        -1,
        1,
        2,
        3,
        7,
        10**5000,
        -(10**5000),
        2**63,
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.5,
        1e-300,
        1e300,
        -1e300,
        np.inf,
        -np.inf,
        np.nan,
        1j,
        1 + 0j,
        np.nextafter(1, 2),
        np.float16(0.5),
        np.longdouble("1e4000"),
        np.float32("nan"),
        np.bool_(True),
        np.complex128(1),
        np.int8(-3),
        decimal.Decimal("0.5"),
        decimal.Decimal("NaN"),
        fractions.Fraction(1, 3),
        datetime.date(2020, 1, 1),
        datetime.timedelta(1),
        np.datetime64("2020-01-01"),
        np.timedelta64(3, "s"),
        pd.Timestamp("2020-01-01"),
        pd.NaT,
        pd.NA,
        [],
        [[]],
        {},
        set(),
        (),
        [None],
        ["a", "b"],
        [1, [2, 3]],
        [[1.0, 2.0], [3.0]],
        nested(60),
        nested(500),
        range(3),
        iter([1.0, 2.0]),
        (x for x in [1.0]),
        [True, False],
        [1.0, np.nan],
        [np.inf],
        [0.0, 0.0],
        [2.0, 1.0],
        [1e300, 1e300],
        np.array(0.5),
        np.array([0.5]),
        np.array([]),
        np.zeros((0, 3)),
        np.zeros((3, 0)),
        np.zeros((2, 2, 2)),
        np.ones(2),
        np.eye(2),
        -np.eye(2),
        np.eye(3),
        1e200 * np.eye(2),
        np.eye(2) * 1j,
        np.ones((2, 2)),
        np.array(["a", "b"]),
        np.array([1, "a", None], dtype=object),
        np.array([0.5, 1.0], dtype=object),
        np.array(["2020", "2021"], "M8[Y]"),
        np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]),
        np.ones(2, np.uint8),
        np.ones(2, ">f8"),
        masked,
        np.ma.masked,
        np.ma.masked_array(np.eye(2), np.eye(2)),
        np.ma.masked_array(0.5, True),
        [1.0, 2.0, np.ma.masked],
        [masked, masked],
        (masked, np.array([1.0, 2.0])),
        np.array([1.0, np.ma.masked], dtype=object),
        pd.Series([1.0, 2.0]),
        pd.Series(["a", "b"]),
        pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}),
        pd.DataFrame({"a": ["x"]}),
        pd.Series([1, None], dtype="Int64"),
        pd.date_range("2020", periods=2),
        pd.Categorical(["a", "b"]),
        xr.DataArray([1.0, 2.0], dims="x"),
        xr.Dataset({"a": ("x", [1.0])}),
        object(),
        Rude(),
        type,
        int,
        len,
        lambda x: x,
        lambda: 1 / 0,
        Path("nothing"),
        Path("."),
        "/dev/null",
        "nothing.npy",
        P,
        NET,
        LAW,
        ov.GaussianInputs(),
        ov.Isotropic(),
        slice(None),
        Ellipsis,
        NotImplemented,
        Exception("x"),
        np.random.default_rng(0),
        io.StringIO("x"),
        "erf",
        "hessian",
        "auto",
    ]


def mutated(value: Any, rng: np.random.Generator, work: bool = False) -> Any:
    """A value near one that works: another sign, size, shape, type or order.

    work: whether more of it is more to compute, so that a thousand times as much is an answer that takes its time.
    """
    try:
        array = np.asarray(value)
        if array.dtype.kind not in "biuf" or isinstance(value, bool):
            return None
        scale = float(rng.choice([-1.0, 0.0, 1e-9, 1e-3, 2.0, 10.0, 1e3, 1e9, 1e150, np.nan]))
        if work and scale in (1e3, 1e9):
            scale = 3.0
        if array.ndim == 0:
            return type(value)(value * scale) if np.isfinite(scale) else scale
        how = rng.integers(6)
        changed = array.astype(float) * (scale if how == 0 else 1.0)
        if how == 1:
            changed = changed[::-1]
        if how == 2:
            changed = changed[:-1]
        if how == 3:
            changed = np.concatenate([changed, changed])
        if how == 4:
            changed = np.ma.masked_array(changed, rng.random(changed.shape) < 0.5)
        if how == 5:
            changed = changed + rng.normal(size=changed.shape)
        return changed
    except (OverflowError, ValueError):
        return np.nan
