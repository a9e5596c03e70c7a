"""What to expect of learning on a spectrum, before anything is trained.

From the eigenvalues ω_b on fractions φ_b of the dimensions alone, the laws of `overlaps.laws` give

- the learning curve of a linear student from zero weights, of which a power-law spectrum makes a power law in time,
- what is left of its error if only the directions of largest variance are trained,
- the plateau on which an erf committee waits before its units specialise, and the time it takes to leave it.

The participation (Σ φ ω)²/Σ φ ω² is the share of the dimensions that carry the variance. All of this is for Gaussian
inputs; `train` on `Samples` tells how well it holds for the data themselves. Learning curves are those of infinite
size, or at a given size N the exact mean over runs, which diverges at smaller rates. A spectrum measured from data has
a size: one dimension per level. Floors and plateaus are always those of infinite size.

>>> import overlaps as ov
>>> ov.forecast(ov.PowerLaw(levels=100, exponent=0.5), rate=0.1, units=2)
forecast for PowerLaw(levels=100, exponent=0.5)
  eigenvalues: 100 levels, 0.04144 to 41.44, participation 0.04844 of the dimensions
  power law: eigenvalues fall as rank^-(1+β), β = 0.50 [0.50, 0.50] over ranks 1 to 100 of 100
  linear student at rate 0.1, which must stay below 2 (1.3 with one input per level); error at infinite size:
    time              0.00616    0.0555     0.501      3.76      33.9       305
    error               0.488      0.41     0.196    0.0804    0.0188  0.000391
    no power law in time: it would be time^-0.333, the slope of the curve goes from -0.33 to -1.4, times 0.139 to 84.7
    trained levels          1         3         6        17        42       100
    error left          0.299     0.186     0.126    0.0604    0.0233         0
  erf committee of 2 on 2 at infinite size: plateau at error 0.005805, escape time 14.73
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..algorithms import GradientFlow
from ..data import GaussianInputs, PowerLaw, Spectrum
from ..data.power_law import PowerFit
from ..interface import files
from ..interface.checks import checked, folder_for, whole
from ..interface.errors import InputError
from ..laws import (
    Modes,
    Plateau,
    Window,
    critical_rate,
    feature_floor,
    finite_size_error,
    linear_modes,
    plateau,
    window,
)
from ..laws.levels import AnySpectrum, levels
from ..network.architectures import Committee
from ..problem.statement import Problem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
LEFT = 1e-3  # of the first error: where the learning curve ends
EVERY = 8  # units up to which every plateau is drawn; beyond, some up to `units`
STEP = 32  # levels: what a step costs before any
AGREES = 0.2  # of the exponent: how far the slope of the curve may be from that of a power law in time
LONG = 3.0  # ratio of times over which it must agree
WORK = 1e10  # steps × levels, some seconds: up to here the exact mean at finite size is computed


@dataclass(frozen=True, eq=False)
class Forecast:
    """What to expect of learning on a spectrum; made by `forecast`.

    Attributes
    ----------
    spectrum, rate, units, size: what it was made for; size None is infinite size.
    participation: share of the dimensions that carry the variance; one if all eigenvalues are equal.
    fit: the power law of the eigenvalues, or how they depart from one; None where none can be fitted.
    unfitted: why there is no fit; empty if there is one.
    window: times between which the error falls as a power of time, the slope of the curve itself being within a fifth
        of the exponent; or None.
    drift: where the spectrum promises a power of time and the curve does not keep it, what its slope does; or empty.
    data: dataset with eigenvalue (level), error (time), floor (trained), plateau and escape_time (unit); the attribute
        `law` of the error says whether it is the exact mean at `size` or that of infinite size.
    """

    spectrum: AnySpectrum
    rate: float
    units: int
    size: int | None
    participation: float
    fit: PowerFit | None
    unfitted: str
    window: Window | None
    drift: str
    data: xr.Dataset

    def __repr__(self) -> str:
        d, count = self.data, self.data.sizes["level"]
        values = d["eigenvalue"].values
        limit, part = f"{critical_rate(self.spectrum, self.size):.3g}", ""
        if self.size is not None:
            part = f", {self.participation * self.size:.4g} of {self.size}"
        elif count > 1 and _equal_fractions(self.spectrum):
            limit += f" ({critical_rate(self.spectrum, count):.3g} with one input per level)"
        lines = [
            f"forecast for {self.spectrum!r}",
            f"  eigenvalues: {count} level{'s' * (count > 1)}, {values.min():.4g} to {values.max():.4g}, participation "
            f"{self.participation:.4g} of the dimensions{part}",
            f"  {self._law}",
            f"  linear student at rate {self.rate:g}, which must stay below {limit}; error {d['error'].attrs['law']}:",
            *_table(d["error"], np.linspace(0, d.sizes["time"] - 1, 6), "time", "error"),
        ]
        if self.window is not None:
            low, high, exponent = self.window
            lines.append(
                f"    power law: error ~ time^-{exponent:.3g} from time {low:.3g} to {high:.3g}, where the slope of "
                "the curve is within a fifth of it"
            )
        elif self.drift:
            lines.append(f"    {self.drift}")
        some = np.searchsorted(d["trained"], np.geomspace(1, count, 6).round())
        if self.size is not None:
            lines.append("    after long training, at infinite size:")
        lines += _table(d["floor"], some, "trained levels", "error left")
        at = d.sel(unit=self.units)
        lines.append(
            f"  erf committee of {self.units} on {self.units} at infinite size: plateau at error "
            f"{float(at['plateau']):.4g}, escape time {float(at['escape_time']):.4g}"
        )
        return "\n".join(lines)

    @property
    def _law(self) -> str:
        if self.fit is None:
            return f"power law: no fit; {self.unfitted}"
        if not self.fit.is_power_law:
            return repr(self.fit)
        (low, high), ranks = self.fit.range, self.data["rank"].values
        over = f"β = {self.fit.beta} over ranks {low:.4g} to {high:.4g} of {ranks[-1]:.4g}"
        if (low, high) != (ranks[0], ranks[-1]):
            over += ", the longest such range (the interval does not count this choice)"
        if self.fit.beta.value <= 0:
            return f"no scaling law: too flat, eigenvalues fall as rank^-(1+β) and β is not above zero; {over}"
        return f"power law: eigenvalues fall as rank^-(1+β), {over}"

    def _repr_html_(self) -> str:
        from ..plot.notebook import card

        def draw(ax: Any) -> None:
            ax.loglog(self.data["time"], self.data["error"])
            ax.set(xlabel="time (samples per input dimension)", ylabel="error")

        return card(repr(self), draw, describe="error of a linear student against time")

    def plot(self) -> Figure:
        """Spectrum with its fit, learning curve, error against trained levels, plateaus against units."""
        from ..plot.log_axes import label
        from ..plot.palette import COLOURS, panels

        d, (blue, orange) = self.data, COLOURS[:2]
        figure, ((spectrum, curve), (features, plateaus)) = panels(2, 2, (10, 7))
        seen = d["eigenvalue"] > 0
        spectrum.loglog(d["rank"][seen], d["eigenvalue"][seen], ".", label="eigenvalues")
        if self.fit is not None and self.fit.is_power_law:
            ends = np.array(self.fit.range)
            middle = float(
                np.exp(np.interp(np.log(ends).mean(), np.log(d["rank"][seen]), np.log(d["eigenvalue"][seen])))
            )
            line = middle * (ends / np.sqrt(ends.prod())) ** self.fit.value
            spectrum.loglog(ends, line, "k-", lw=1, label=f"β = {self.fit.beta}")
        spectrum.set(
            xlabel="rank",
            ylabel="eigenvalue",
            title=f"spectrum, participation {self.participation:.3g} of the dimensions",
        )
        spectrum.legend()
        curve.loglog(d["time"], d["error"])
        if self.window is not None:
            curve.axvspan(self.window.low, self.window.high, color="k", alpha=0.08, lw=0, label="power law in time")
            curve.legend()
        curve.set(
            xlabel="time (samples per input dimension)",
            ylabel=f"error {d['error'].attrs['law']}",
            title=f"linear student, rate {self.rate:g}",
        )
        left = (d["trained"] > 0) & (d["floor"] > 0)
        features.loglog(d["trained"][left], d["floor"][left], ".-")
        features.set(
            xlabel="trained levels, largest eigenvalue first",
            ylabel="error",
            title="after long training, infinite size",
        )
        plateaus.plot(d["unit"], d["plateau"], "o-", color=blue)
        plateaus.set(xlabel="units of student and teacher", title="erf committee: plateau, infinite size")
        plateaus.set_ylabel("error", color=blue)
        escape = plateaus.twinx()
        escape.semilogy(d["unit"], d["escape_time"], "s--", color=orange)
        escape.set_ylabel("escape time", color=orange)
        for ax in figure.axes:
            label(ax)
        return figure

    @checked
    def write(self, folder: str | os.PathLike[str]) -> tuple[Path, Path]:
        """Picture and numbers into a folder, made if it is not there: the paths of forecast.png and forecast.nc."""
        import matplotlib.pyplot as plt

        where = folder_for("folder", folder)
        paths = where / "forecast.png", where / "forecast.nc"
        picture = self.plot()
        files.write_picture(paths[0], picture, dpi=150)
        plt.close(picture)
        files.write_dataset(paths[1], self.data)
        return paths


def forecast_spectrum(spectrum: AnySpectrum, rate: float, units: int, size: int | None) -> Forecast:
    """See `overlaps.forecast`."""
    units = whole("units", units, least=2, most=1000)
    omega, phi, _ = levels(spectrum)
    if size is None and isinstance(spectrum, Spectrum) and spectrum.source and _equal_fractions(spectrum):
        size = len(spectrum.eigenvalues)
    if size is not None:
        size = whole("size", size, least=1)
        finite_size_error(spectrum, size, rate, [0.0])  # refuses rates at which the mean diverges
    times, error, law = _curve(spectrum, rate, size, linear_modes(spectrum, rate))
    ranks, ranked = spectrum.ranked
    trained = np.unique(np.concatenate([[0], np.geomspace(1, ranked.size, 60).round().astype(int)]))
    some = np.geomspace(EVERY, max(EVERY, units), 8).round().astype(int)
    committees = np.union1d(np.arange(2, EVERY + 1), some).tolist()
    found = [_plateau(spectrum, rate, n) for n in committees]
    try:
        fit, unfitted = spectrum.power_law(), ""
    except InputError as reason:
        fit, unfitted = None, str(reason).removeprefix("power_law: ")
    data = xr.Dataset(
        {
            "eigenvalue": ("level", ranked),
            "error": ("time", error, {"law": law}),
            "floor": ("trained", [feature_floor(spectrum, int(n), rate=rate) for n in trained]),
            "plateau": ("unit", [p.error for p in found]),
            "escape_time": ("unit", [p.escape_time for p in found]),
        },
        {
            "rank": ("level", ranks),
            "time": ("time", times, {"units": "samples per input dimension"}),
            "trained": trained,
            "unit": committees,
        },
        {"spectrum": repr(spectrum), "rate": rate},
    )
    relative = omega / omega.max()
    participation = float(phi @ relative) ** 2 / float(phi @ relative**2)
    lasting, drift = _kept(_window(spectrum, rate, fit), times, error)
    return Forecast(spectrum, float(rate), units, size, participation, fit, unfitted, lasting, drift, data)


def _curve(spectrum: AnySpectrum, rate: float, size: int | None, modes: Modes) -> tuple[Array, Array, str]:
    """Times, errors at them, both (60,), until `LEFT` of the error is left; and what the errors are."""
    fastest = float(modes.rates.max())
    first, last = 0.05 / fastest, 1 / fastest
    while modes([last])[0] > LEFT * modes([0.0])[0]:
        last *= 1.1
    times = np.geomspace(first, last, 60)
    if size is None:
        return times, modes(times), "at infinite size"
    work = size * max(STEP, len(spectrum.eigenvalues))
    if last * work > WORK:
        return times, modes(times), f"at infinite size, since the exact mean at size {size} takes too long"
    error = finite_size_error(spectrum, size, rate, times)
    # it decays more slowly than at infinite size, not at all at the critical rate
    while error[-1] > LEFT * error[0] and 4 * times[-1] * work <= WORK:
        times = np.geomspace(first, 4 * times[-1], 60)
        error = finite_size_error(spectrum, size, rate, times)
    return times, error, f"as the exact mean at size {size}"


def _equal_fractions(spectrum: AnySpectrum) -> bool:
    return len(set(spectrum.fractions or ())) == 1


def _plateau(spectrum: AnySpectrum, rate: float, units: int) -> Plateau:
    net = Committee(units, "erf", 1 / np.sqrt(units))
    return plateau(Problem(data=GaussianInputs(spectrum), teacher=net, student=net, algorithm=GradientFlow(rate)))


def _window(spectrum: AnySpectrum, rate: float, fit: PowerFit | None) -> Window | None:
    """The window of a power law with as many levels as the range has ranks, which begins at the range's eigenvalue."""
    if fit is None or not fit.is_power_law or fit.beta.value <= 0:
        return None
    low, high = fit.range
    law = PowerLaw(max(1, round(high / low)), fit.beta.value)
    ranks, eigenvalues = spectrum.ranked
    first = float(eigenvalues[np.searchsorted(ranks, low * (1 - 1e-9))])
    return window(law, rate * first / law.eigenvalues[0])


def _kept(promised: Window | None, times: Array, error: Array) -> tuple[Window | None, str]:
    """The part of a promised window in which the curve has the slope of the power law, or what its slope does."""
    if promised is None:
        return None, ""
    slopes = np.gradient(np.log(error), np.log(times))
    inside = (times >= promised.low) & (times <= promised.high)
    agrees = inside & (np.abs(slopes + promised.exponent) <= AGREES * promised.exponent)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], agrees, [False]]).astype(int)))
    runs = [(times[a], times[b - 1]) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    low, high = max(runs, key=lambda run: run[1] / run[0], default=(1.0, 1.0))
    if high / low >= LONG:
        return Window(float(low), float(high), promised.exponent), ""
    seen = slopes[inside] if inside.any() else slopes
    ends = times[inside][[0, -1]] if inside.any() else times[[0, -1]]
    return None, (
        f"no power law in time: it would be time^-{promised.exponent:.3g}, the slope of the curve goes from "
        f"{seen[0]:.2g} to {seen[-1]:.2g}, times {ends[0]:.3g} to {ends[1]:.3g}"
    )


def _table(values: xr.DataArray, some: Array | NDArray[np.intp], x: str, y: str) -> list[str]:
    """Two lines with the values at the positions `some`."""
    part = values.isel({values.dims[0]: np.unique(some.round().astype(int))})
    return [
        f"    {name:<15}" + "".join(f"{number:>10.3g}" for number in numbers)
        for name, numbers in ((x, part[str(values.dims[0])].values), (y, part.values))
    ]
