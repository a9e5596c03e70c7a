"""One question, three kinds of data: what to expect of learning on a spectrum, on rows with labels, or with classes."""

from __future__ import annotations

from typing import Any, Literal, cast, overload

from ..data import SPECTRA, Samples
from ..interface.checks import checked
from ..interface.errors import InputError, shown, unknown
from ..laws.levels import AnySpectrum
from ..network.architectures import Committee, Softmax
from .class_forecast import ClassForecast, forecast_classes
from .rows_forecast import RowsForecast
from .rows_forecasting import forecast_rows
from .spectrum_forecast import Forecast, forecast_spectrum

CLASS_LOSSES = ("logistic", "hinge", "cross-entropy")  # losses of classifiers that can be forecast


@overload
def forecast(
    data: AnySpectrum, rate: float | None = ..., units: int | None = ..., size: int | None = ...
) -> Forecast: ...


@overload
def forecast(
    data: Samples,
    *,
    loss: Literal["logistic", "hinge", "cross-entropy"],
    student: Committee | Softmax | None = ...,
    samples: int | None = ...,
    runs: int | None = ...,
    seed: int | None = ...,
    progress: bool = ...,
) -> ClassForecast: ...


@overload
def forecast(
    data: Samples,
    *,
    loss: Literal["square", "logistic", "hinge", "cross-entropy"] | None = ...,
    student: Committee | Softmax,
    samples: int | None = ...,
    runs: int | None = ...,
    seed: int | None = ...,
    progress: bool = ...,
) -> ClassForecast: ...


@overload
def forecast(
    data: Samples, *, samples: int | None = ..., runs: int | None = ..., seed: int | None = ..., progress: bool = ...
) -> RowsForecast: ...


@checked
def forecast(
    data: AnySpectrum | Samples,
    rate: float | None = None,
    units: int | None = None,
    size: int | None = None,
    *,
    loss: str | None = None,
    student: Committee | Softmax | None = None,
    samples: int | None = None,
    runs: int | None = None,
    seed: int | None = None,
    progress: bool = True,
) -> Forecast | RowsForecast | ClassForecast:
    """Predict learning on `data`: of a spectrum by closed forms, of labelled rows by theory and a few trainings.

    Labels that are real numbers, and two classes as −1 and +1, are learned by linear regression; name a loss of
    classes, or a student, to forecast a classifier instead.

    Parameters
    ----------
    data: a spectrum, for instance `Spectrum.from_data` of your data (mean eigenvalue one, or times change their unit),
        or `Samples` with labels.
    rate: learning rate on a spectrum, of the linear student and of the committee, 0.1 by default; below
        `laws.critical_rate` at this size.
    units: hidden units of the erf committee on a spectrum, of student and teacher alike, with readouts 1/√units; at
        least two, 4 by default.
    size: number of input dimensions of a spectrum, at least one per level; by default one per level for a spectrum
        measured from data (one with a `source`), infinite otherwise. Where the exact mean takes more than 1e10 updates
        of a level, the curve is that of infinite size, and says so.
    loss: of rows whose labels are classes: ``"logistic"`` or ``"hinge"`` of two, ``"cross-entropy"`` of any number. By
        default the square loss of a linear student, which more than two classes do not have.
    student: of rows whose labels are classes: the network that learns them, for instance ``Committee(3, "erf")``, from
        random weights; by default a linear one from zero. Its loss is the square one unless `loss` says otherwise.
    samples: of labelled rows, how many a training sees; as many as there are by default.
    runs, seed: of the trainings on labelled rows that the verdict rests on; from 12 for large sets to 200 for small
        ones, and seed 0, by default.
    progress: whether to show what is being done, on a terminal.
    """
    given: dict[str, Any] = {"rate": rate, "units": units, "size": size}
    of_rows: dict[str, Any] = {"loss": loss, "student": student, "samples": samples, "runs": runs, "seed": seed}
    rows = cast("Samples", data)
    if getattr(data, "table", None) is not None:
        _refuse(given, "is found, or that of the rows, for labelled rows")
        if not rows.labelled:
            raise InputError(
                "data: these rows have no labels; give them as y, or forecast their spectrum, data.spectrum"
            )
        if loss not in (None, "square", *CLASS_LOSSES):
            raise unknown("loss", str(loss), ["square", *CLASS_LOSSES])
        if student is not None or loss in CLASS_LOSSES:
            known = "square" if loss is None else str(loss)
            return forecast_classes(rows, known, student, samples, runs, 0 if seed is None else seed, progress)
        return forecast_rows(rows, samples, runs, 0 if seed is None else seed, progress)
    if not isinstance(data, SPECTRA):
        wanted = " or ".join(kind.__name__ for kind in (*SPECTRA, Samples))
        raise InputError(f"data: expected {wanted}, got {shown(data)}")
    _refuse(of_rows, "is for labelled rows, Samples(X, y)")
    return forecast_spectrum(
        cast("AnySpectrum", data), 0.1 if rate is None else rate, 4 if units is None else units, size
    )


def _refuse(options: dict[str, Any], why: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(f"{name}: {why}; leave it out")
