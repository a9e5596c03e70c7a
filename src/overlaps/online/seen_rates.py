"""Whether the steps of a solution have seen the rates: a peak between two of their nodes leaves no trace in an error.

A step from t to t + h sees a rate η at its nodes c_i alone, and takes for its integral

    h Σ_i b_i η(t + c_i h)        instead of        ∫ η(s) ds,

here from Gauss points, at least `PARTS` × 4 of them over the whole solution. With the states y and dy/dt about
proportional to η, missing δ of the integral moves y by about δ |dy/dt|/η, with dy/dt and η at the end of the step. What
the algorithm remembers moves at any rate; with a memory η is the mean of the step. Beyond a share of the largest state
it is refused.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import DOP853, RK45

from ..algorithms.schedules import TimeDependent
from ..algorithms.update import Update
from ..averages.rules import legendre
from ..interface.errors import InputError
from .implicit import STAGES, Collocation
from .integration import Step

Array = NDArray[np.float64]
PARTS = 4096
FACTOR, LEAST = 1e3, 1e-4  # error that may be missed: tolerance times FACTOR, or this share of the largest state
ROUNDING = 1e-12  # share of an integral, or of a step at the rate of its start, below which nothing was missed
HIDDEN = 1e-3  # share of the whole integral that may be missed where the rate is zero


def check_rates(update: Update, steps: list[Step], size: float, rtol: float) -> None:
    """Refuse rates that a solution of that largest state, by these steps and to that tolerance, has not seen."""
    t, h, slopes = (np.array(part) for part in zip(*(step[:3] for step in steps), strict=True))
    kinds = [step.kind for step in steps]
    for name, rate in (("rate", update.rate), ("readout_rate", update.readout_rate)):
        if rate is None:
            continue
        exact = _integrals(rate, t, h)
        missed = np.abs(_seen(rate, t, h, kinds) - exact)
        # a rate that ends at zero is 1e-16 just before: rounding divided by rounding says nothing
        missed[missed <= ROUNDING * (exact + h * rate.at(t))] = 0.0
        own = exact / h if update.rule.limit_rows > 1 else rate.at(np.nextafter(t + h, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            # where the rate is zero, dy/dt says nothing about what a missed peak would have done
            unknown = np.where(missed > HIDDEN * exact.sum(), np.inf, 0.0)
            moved = np.where(own > 0, missed * slopes / own, unknown)
        if moved.sum() > max(FACTOR * rtol, LEAST) * size:
            i = int(np.argmax(moved))
            first, last = t[i], t[i] + h[i]
            raise InputError(
                f"{name}: between the times {first:.6g} and {last:.6g} the integral of {rate!r:.80} is {exact[i]:.3g}, "
                f"and the solver's step missed {missed[i]:.3g} of it; name the times where it changes fast in knots="
            )


def _seen(rate: TimeDependent, times: Array, lengths: Array, kinds: list[type]) -> Array:
    """Integrals of a rate as the steps take them, (steps,)."""
    out = np.empty(times.size)
    for kind in set(kinds):
        nodes, weights = _rule(kind)
        own = np.array([k is kind for k in kinds])
        t, h = times[own], lengths[own]
        # at the end of a step that ends at a knot the rate is the one before it
        at = np.minimum(t[:, None] + nodes * h[:, None], np.nextafter(t + h, 0.0)[:, None])
        out[own] = h * (rate.at(at) @ weights)
    return out


def _rule(kind: type) -> tuple[Array, Array]:
    """Nodes and weights of a method of steps."""
    if kind in (DOP853, RK45):
        return np.asarray(kind.C), np.asarray(kind.B)
    nodes = Collocation(STAGES).c
    powers = np.arange(STAGES)
    return nodes, np.linalg.solve(nodes ** powers[:, None], 1 / (powers + 1))


def _integrals(rate: TimeDependent, times: Array, h: Array) -> Array:
    """Integrals of a rate over the steps, (steps,), by Gauss points in equal parts of each."""
    x, w = legendre(4)
    parts = np.maximum(1, np.ceil(PARTS * h / h.sum())).astype(int)
    of = np.repeat(np.arange(h.size), parts)
    part = np.arange(of.size) - np.repeat(np.cumsum(parts) - parts, parts)
    width = h[of] / parts[of]
    at = times[of, None] + width[:, None] * (part[:, None] + (x + 1) / 2)
    integrals: Array = np.zeros(h.size)
    np.add.at(integrals, of, width * (rate.at(at) @ w) / 2)
    return integrals
