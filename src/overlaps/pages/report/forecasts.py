"""The reports on `overlaps learn`, labelled rows, and on `overlaps spectrum`, rows without labels."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ...interface.errors import InputError
from ...papers import papers
from ...plot import interactive
from .document import Document, Shown, Table
from .runs import PACKAGES

CAPTIONS = {
    "learning curve": "Error against samples seen, with bands of two standard deviations; the dotted line is the least "
    "that a linear map can reach.",
    "schedule": "The learning rate that leaves the smallest error, and the best that stays constant.",
    "spectrum": "Eigenvalues of the covariance of the rows, the largest first.",
    "plateaus": "Height of the plateau (left axis) and the time at which it is left (right axis) against units.",
}
HOW = [
    "Theory of a linear student of the square loss on fresh rows: the exact mean over runs, less the bias of the fit.",
    "Bands are two standard deviations, of the estimates (a bootstrap over rows) and of single runs.",
    "Whether it may be trusted is told by trainings on the rows, and by a pass tested on rows held out.",
]


def of_rows(folder: Path, curves: xr.Dataset, summary: dict[str, Any]) -> Document:
    """Read what `overlaps learn` has written."""
    try:
        trusted, words, papers_behind = summary["trusted"], summary["verdict"], list(map(str, summary["citations"]))
        figures, tables, asked = (
            interactive.forecast_of_rows(curves, summary),
            tables_of(curves, summary),
            asks(summary),
        )
    except (KeyError, TypeError, ValueError):
        raise InputError(f"report: {folder} is not what `overlaps learn` writes; run it again") from None
    about = curves.attrs
    return Document(
        title="What SGD will do on these rows",
        question=asked,
        verdict="Theory may be trusted on these rows." if trusted else "Theory may not be trusted on these rows.",
        answer=[words],
        figures=_shown(figures),
        tables=tables,
        how=HOW,
        command=_again(about, summary),
        versions={name: str(about[name]) for name in PACKAGES if name in about},
        citations=papers_behind,
        spec=str(about.get("spec", "")),
    )


def asks(summary: Mapping[str, Any]) -> str:
    """What was asked of the rows."""
    return (
        f"What will SGD do on these {summary['rows']} rows of {summary['columns']} columns, in {summary['samples']} "
        "samples?"
    )


def tables_of(curves: xr.Dataset, summary: Mapping[str, Any]) -> list[Table]:
    """The numbers to expect, and the learning curve."""
    epochs = summary["epochs_before_overfitting"]
    rows = [
        ["best constant rate", f"{summary['best_constant_rate']:.4g}"],
        ["error with it", f"{summary['error_constant']:.4g}"],
        ["error with the best schedule", f"{summary['error_plan']:.4g}"],
        ["of the error above the floor it saves, predicted", _share(summary["gain_predicted"], "not promised")],
        ["and in trainings on the rows", _share(summary["gain_trained"], _lost(summary))],
        ["no linear map goes below", f"{summary['floor']:.4g} ± {summary['floor_error']:.1g}"],
        ["of the labels' variance a linear map tells", f"{summary['explained']:.1%}"],
        ["epochs before overfitting", "still improves at the end" if epochs is None else f"{epochs:.3g}"],
        ["error with ten times the samples", f"{summary['error_10_times_the_samples']:.4g}"],
        ["error of the best ridge regression", f"{summary['ridge']:.4g}"],
    ]
    return [Table("What to expect", ["quantity", "value"], rows), _curve(curves)]


def _share(value: float | None, otherwise: str) -> str:
    return otherwise if value is None else f"{value:.1%}"


def _lost(summary: Mapping[str, Any]) -> str:
    """How many trainings diverged."""
    told = summary["diverged"]
    return f"of {told['trainings']}, {told['planned']} diverged with the schedule, {told['constant']} with the rate"


def _again(about: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """The command that forecasts the same rows again, or the lines of Python where they came from no file."""
    seed, samples, rows = int(about["seed"]), int(summary["samples"]), int(summary["rows"])
    try:
        data = tomllib.loads(str(about["spec"]))["data"]
        words = ["overlaps", "learn", str(data["source"]), "--target", str(data["target"]), "--out", "again"]
    except (KeyError, tomllib.TOMLDecodeError):
        more = f", samples={samples}" * (samples != rows) + f", seed={seed}" * (seed != 0)
        return f"ov.forecast(ov.Samples(rows, labels){more}).write(folder)  # in Python; the rows came from no file"
    words += ["--samples", str(samples)] * (samples != rows) + ["--standardise"] * bool(data.get("standardise"))
    words += ["--bias"] * bool(data.get("bias"))
    return shlex.join(words + ["--seed", str(seed)] * (seed != 0))


def of_spectrum(folder: Path, data: xr.Dataset) -> Document:
    """Read what `overlaps spectrum` has written."""
    error, law = data["error"].values, data["error"].attrs["law"]
    ends = data["time"].values[[0, -1]]
    plateau = data.isel(unit=0)
    rows = [
        [f"{float(n):g}", f"{float(p):.4g}", f"{float(t):.4g}"]
        for n, p, t in zip(data["unit"].values, data["plateau"].values, data["escape_time"].values, strict=True)
    ]
    units = int(plateau["unit"])
    return Document(
        title="What to expect of learning on this spectrum",
        question=f"How fast is learning on {data.attrs['spectrum']} at rate {data.attrs['rate']:g}?",
        verdict=f"The error of a linear student falls from {error[0]:.3g} to {error[-1]:.3g} by time {ends[1]:.3g}.",
        answer=[
            f"Error {law}, from time {ends[0]:.3g} on, in samples per input dimension.",
            f"An erf committee of {units} units waits on a plateau at error {float(plateau['plateau']):.4g} and leaves "
            f"it after some {float(plateau['escape_time']):.4g}.",
        ],
        figures=_shown(interactive.forecast_of_spectrum(data)),
        tables=[Table("Plateaus of erf committees", ["units", "error on the plateau", "escape time"], rows)],
        how=["Closed forms for the measured spectrum: modes of a linear student, plateaus of committees."],
        command=f"overlaps spectrum DATA --rate {data.attrs['rate']:g} --out {folder.name or 'DIR'}",
        citations=[papers()["scaling"].citation],
    )


def _shown(figures: dict[str, Any]) -> list[Shown]:
    return [Shown(name[0].upper() + name[1:], CAPTIONS[name], figure) for name, figure in figures.items()]


def _curve(curves: xr.Dataset) -> Table:
    """The learning curve at some numbers of samples, with its bands."""
    some = np.unique(np.linspace(1, curves.sizes["sample"] - 1, 8).round().astype(int))
    rows = []
    for i in some:
        at = curves.isel(sample=i)
        told = (_band(at, name) for name in ("constant", "plan"))
        rows.append([f"{int(at['sample'])}", *told, f"{float(at['rate_plan']):.3g}"])
    columns = ["samples", "error, best constant rate", "error, best schedule", "its rate"]
    return Table("Learning curve", columns, rows, "In brackets: two standard deviations either way.")


def _band(at: xr.Dataset, name: str) -> str:
    middle, low, high = (float(at[f"error_{name}{end}"]) for end in ("", "_low", "_high"))
    return f"{middle:.4g} ({low:.3g} to {high:.3g})" if np.isfinite(high) else f"{middle:.4g} (no bound)"
