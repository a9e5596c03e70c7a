"""Claims about Recall@1 of an unseen class against its mirror image, setups 1 and 2."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from ..estimates import mean_error
from ..ledger import Measurement
from .model import KINDS, Scale
from .paper import PAPER
from .score_claims import beyond_zero
from .setups import rotations, setup1

Array = NDArray[np.float64]


def gain(data: xr.Dataset) -> tuple[Array, Array]:
    """Gain of Recall@1 by the step: mean and standard error over runs, (classes,)."""
    each = (data["recall"] - data["recall_before"]).values
    return mean_error(each)


@PAPER.claim(
    "recall-phases",
    where="appendix K.5, figure 3 (c)",
    statement="Recall@1 in setup 1 has three phases (K.5): no gain by the step for the smallest e, gain in between, "
    "none where the classes are apart already; at |v| = 5, d = 2048 Data 1 and 3 do not quite reach the last",
    expected="holds",
)
def phases(quick: bool) -> Measurement:
    """Gains at the least, the best and the largest e; the value is the best gain of Data 2, where all phases show."""
    holds, notes, best = True, [], (0.0, 0.0)
    for kind in KINDS:
        part = beyond_zero(setup1(kind, quick))[1]
        mean, error = gain(part)
        peak = int(np.argmax(mean))
        # no more than four standard errors of a gain at the least e, or a fifth of the best; less than half of it at .9
        holds &= mean[0] < max(4 * error[0], mean[peak] / 5) and mean[peak] > 10 * error[peak]
        holds &= mean[-1] < mean[peak] / 2 and (kind != "truncated" or mean[-1] < 0.01)
        notes.append(
            f"{kind}: {mean[0]:.3f} ± {error[0]:.3f} at e = {part['e'].values[0]:g}, {mean[peak]:.3f} ± "
            f"{error[peak]:.3f} at {part['e'].values[peak]:g}, {mean[-1]:.3f} ± {error[-1]:.3f} at .9"
        )
        if kind == "truncated":
            best = float(mean[peak]), float(error[peak])
    return Measurement("holds" if holds else "fails", *best, "; ".join(notes))


@PAPER.claim(
    "recall-rotations",
    where="section 5, figure 3 (f)",
    statement="in setup 2 Recall@1 before the step does not vary with beta.mu, and after the step it falls below that "
    "where |beta.mu| is too small",
    expected="holds",
)
def turned(quick: bool) -> Measurement:
    """Data 1 and 3: range of the initial recall over rotations, and gain of the two classes with the least |β·μ|.

    In full at the paper's d = n = N = 2048, with 40 of the 300 rotations, and 10 of the 30 runs.
    """
    holds, notes, value = True, [], (0.0, 0.0)
    for kind in ("ball", "sphere"):
        data = rotations(kind, Scale.of_claims(quick))
        before = data["recall_before"].values
        width = float(before.std(0, ddof=1).mean())
        varies = float(np.ptp(before.mean(0)))
        mean, error = gain(data)
        least = np.argsort(np.abs(data["beta_mu"].values.mean(0)))[:2]
        low, low_error = float(mean[least].mean()), float(np.hypot(*error[least]) / 2)
        holds &= varies < 0.05 and low < -3 * low_error
        value = low, low_error
        notes.append(
            f"{kind}: initial recall {before.mean():.3f}, means of classes within {varies:.3f} (deviation of runs "
            f"{width:.3f}), gain at the least |beta.mu| {low:.3f} ± {low_error:.3f}"
        )
    return Measurement("holds" if holds else "fails", *value, "; ".join(notes))
