"""Saad and Solla 1995: on-line learning in soft committee machines, isotropic inputs, K = M.

Teacher vectors are orthonormal, all readouts one, g = erf(x/√2). For small rates the symmetric plateau has

    Q* = 1/(2K−1)      R* = 1/√(K(2K−1))      error* = (K/π) [π/6 − K asin(1/(2K))]

and is left along R_in − R* ∝ (δ_in − 1/K) e^{λt} with

    λ = (2η/π) K (2K−1)^-½ (2K+1)^-3/2.

From random lengths (Q_ii uniform in [0, 1/2], everything else tiny) the difference of the students outside the
teachers' space decays only algebraically, so that the plateau is never quite reached before it is left: the figure
starts there, as the paper does. The formulas are measured from equal students. At rate η the noise of SGD keeps
students √η apart; values are extrapolated to rate zero in powers of √η.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import overlaps as ov

from ..ledger import Measurement, Paper
from ..panels import ERROR, TIME, finish, headroom, panels, titled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER = Paper(
    handle="committee",
    title="On-line learning in soft committee machines",
    citation="D. Saad and S. A. Solla, Phys. Rev. E 52, 4225 (1995); Phys. Rev. Lett. 74, 4337 (1995)",
)


def problem(units: int, rate: float) -> ov.Problem:
    """K students learn K orthonormal teachers."""
    net = ov.Committee(units=units, activation="erf", readout=1.0)
    return ov.Problem(
        data=ov.GaussianInputs(ov.Isotropic()), teacher=net, student=net, algorithm=ov.OnlineSGD(rate=rate)
    )


def random_start(units: int, rate: float, size: int | None = None) -> ov.Start:
    """Random lengths, all other overlaps tiny, in as many dimensions."""
    rng = np.random.default_rng(0)
    Q = np.diag(rng.uniform(0, 0.5, units))
    R = rng.uniform(0, 1e-6, (units, units))
    return ov.Start.from_overlaps(problem(units, rate), Q=Q, R=R, T=np.eye(units), size=size)


def equal_start(units: int, rate: float) -> ov.Start:
    """Equal students at the plateau's overlaps, up to tiny differences in R."""
    rng = np.random.default_rng(0)
    R = np.full((units, units), 1 / np.sqrt(units * (2 * units - 1))) + 1e-7 * rng.uniform(-1, 1, (units, units))
    # on the plateau students lie in the space of the teachers, so that Q = R Rᵀ
    return ov.Start.from_overlaps(problem(units, rate), Q=R @ R.T, R=R, T=np.eye(units))


def plateau_height(units: int) -> float:
    """Error of the symmetric plateau for vanishing rate."""
    return units / np.pi * (np.pi / 6 - units * np.arcsin(1 / (2 * units)))


def escape_rate(units: int) -> float:
    """λ/η of the symmetric plateau for vanishing rate."""
    return 2 / np.pi * units / (np.sqrt(2 * units - 1) * (2 * units + 1) ** 1.5)


def _plateau(units: int, rate: float) -> tuple[float, float]:
    """(error, growth rate of the specialisation over the rate) on the plateau, at this rate."""
    times = np.linspace(40, 80, 41) / rate
    result = ov.solve(problem(units, rate), equal_start(units, rate), times)
    R = result.data["R"].values[0]
    # a student prefers a teacher: spread of R within its row
    split = np.sqrt(((R - R.mean(2, keepdims=True)) ** 2).sum((1, 2)))
    growth = np.polyfit(times, np.log(split), 1)[0]
    return float(result.data["error"].values[0, 0]), float(growth / rate)


RATES = np.array([0.0025, 0.005, 0.01, 0.02])


def _to_zero_rate(at: NDArray[np.float64]) -> tuple[float, float]:
    """Value at rate zero by a cubic in the root of the rate; its change from the quadratic one as error."""
    roots = np.sqrt(RATES)
    cubic, quadratic = np.polyfit(roots, at, 3)[-1], np.polyfit(roots[:3], at[:3], 2)[-1]
    return float(cubic), float(abs(cubic - quadratic))


@cache
def _extrapolated(units: int) -> tuple[tuple[float, float], tuple[float, float]]:
    """((error, its error), (growth, its error)) at rate zero."""
    pairs = np.array([_plateau(units, rate) for rate in RATES])
    return _to_zero_rate(pairs[:, 0]), _to_zero_rate(pairs[:, 1])


def _sizes(quick: bool) -> tuple[int, ...]:
    return (2, 3) if quick else (2, 3, 4, 5)


def _judge(measured: dict[int, tuple[float, float]], formula: dict[int, float]) -> Measurement:
    """Holds if every K is within three extrapolation errors, and those are below a tenth of a per cent."""
    ratios = {k: (value / formula[k], error / formula[k]) for k, (value, error) in measured.items()}
    holds = all(abs(ratio - 1) <= 3 * error + 1e-6 and error < 1e-3 for ratio, error in ratios.values())
    worst = max(ratios, key=lambda k: abs(ratios[k][0] - 1))
    note = ", ".join(f"K = {k}: {value:.6g} (formula {formula[k]:.6g})" for k, (value, _) in measured.items())
    return Measurement("holds" if holds else "fails", *ratios[worst], f"measured/formula at K = {worst}; {note}")


@PAPER.claim(
    "plateau",
    where="symmetric subspace at small rates (PRE, section IV)",
    statement="for small rates the symmetric plateau has error (K/pi)(pi/6 - K asin(1/(2K)))",
    expected="holds",
)
def plateau(quick: bool) -> Measurement:
    """Height of the plateau of the solved equations, extrapolated to rate zero."""
    measured = {k: _extrapolated(k)[0] for k in _sizes(quick)}
    return _judge(measured, {k: plateau_height(k) for k in measured})


@PAPER.claim(
    "specialisation",
    where="escape from the symmetric subspace (PRE, section IV)",
    statement="the plateau is left as exp(lambda t), lambda = (2 eta/pi) K (2K-1)^-1/2 (2K+1)^-3/2 for small rates",
    expected="holds",
)
def specialisation(quick: bool) -> Measurement:
    """Growth rate of the spread of R on the plateau, extrapolated to rate zero."""
    measured = {k: _extrapolated(k)[1] for k in _sizes(quick)}
    return _judge(measured, {k: escape_rate(k) for k in measured})


@PAPER.figure(
    "overlaps",
    "error, R and Q against time: symmetric plateau, then specialisation; thin lines are one run of training from the "
    "same overlaps, whose noise of order 1/√N ends the plateau sooner than the R of 1e-6 that the equations start from",
    claims=("plateau", "specialisation"),
    limits={"units": (2, 4), "rate": (0.02, 1.0)},
)
def figure_overlaps(quick: bool, *, units: int = 3, rate: float = 0.1) -> tuple[Figure, xr.Dataset]:
    """The figure of the paper, with the plateau of its formula, and a run of training by its exact law."""

    size = 100 if quick else 1000
    times = np.linspace(0, 800 / rate, 201 if quick else 1001)
    result = ov.solve(problem(units, rate), random_start(units, rate), times)
    run = ov.sample(problem(units, rate), random_start(units, rate, size), times, runs=1, seed=1, progress=False)
    figure, axes = panels(1, 3)
    pairs = {"error": [()], "R": list(np.ndindex(units, units)), "Q": list(zip(*np.triu_indices(units), strict=True))}
    for ax, (name, entries) in zip(axes, pairs.items(), strict=True):
        for i, entry in enumerate(entries):
            label = f"${name}_{{{entry[0] + 1}{entry[1] + 1}}}$" if entry else "equation of motion"
            style: dict[str, Any] = {"color": f"C{i % 7}", "ls": ("-", (0, (6, 2)), ":")[i // 7]}
            at = (0, slice(None), *entry)
            ax.plot(times, result.data[name].values[at], lw=1.6, label=label, **style)
            ax.plot(times, run.data[name].values[at], lw=0.6, alpha=0.7, **style)
        ax.plot([], [], color="0.4", lw=0.6, label=f"a run, N = {size}")
        if name == "error":
            ax.axhline(plateau_height(units), color="0.35", ls="--", label="plateau for vanishing rate")
            ax.set(yscale="log", ylim=(1e-14, 1e3))  # below are errors of rounding, above is the legend
        else:
            headroom(ax, 0.5)
        finish(
            ax,
            {"error": "error"}.get(name, f"overlaps {name}"),
            TIME,
            ERROR if name == "error" else name,
            ncols=2,
            loc="upper right",
        )
    words = f"K = M = {units}, rate {rate:g}, isotropic inputs; thick: equation of motion, thin: one run of training"
    titled(figure, words + "\nquick: a run at N = 100 instead of 1000" * quick)
    return figure, result.data.assign({f"{name}_run": run.data[name] for name in pairs})
