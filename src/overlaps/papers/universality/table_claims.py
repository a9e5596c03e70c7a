"""Claims about the measure of distance, tLog-RMSE, and its values in tables I and II.

The tables are for standardised mixtures of two components, N = 1000, D = 500, K = M = 2, 10⁵ steps. Initial weights and
the times of M are not given in print, and 10 of 20 mixtures are left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import overlaps as ov

from ..estimates import mean, mean_error, power
from ..ledger import UNDECIDED, Measurement, verdict
from . import printed
from .mixture_claims import ACTIVATIONS, Ground, row
from .model import RATE, SIZE, STEPS, VARIABLES, listed, start
from .paper import PAPER

Array = NDArray[np.float64]


@PAPER.claim(
    "eq-18",
    where="eq. (18)",
    statement="tLog-RMSE, (18), is (1/T) sum_t (v^2 - vhat^2)^1/2; corrected: [(1/T) sum_t (v - vhat)^2]^1/2",
    expected="holds corrected",
)
def eq_18(quick: bool) -> Measurement:
    """Power of h in the distance between v_0 at rates .2 and .2 (1 + h), which is one for a distance."""
    size, h = 200 if quick else SIZE, np.geomspace(0.001, 0.01, 4)
    times = ov.logtimes(1 / size, 20.0, 40)

    def readout(rate: float) -> Array:
        student, data = ov.Committee(2, "erf", train_readout=True), ov.HiddenManifold(latent_ratio=0.5)
        task = ov.Problem(data=data, teacher=ov.Committee(2, "erf"), student=student, algorithm=ov.OnlineSGD(rate))
        return ov.solve(task, start(task, size, seed=1), times).data["v"].values[0, 1:, 0]

    v, others = readout(RATE), [readout(RATE * (1 + x)) for x in h]
    literal = np.array([printed.eq_18(v, other) for other in others])
    mean = np.array([np.sqrt(np.mean((v - other) ** 2)) for other in others])
    wrong, right = power(h, np.abs(literal))[0], power(h, mean)[0]
    ground = Ground("erf", size, 20.0)
    made = ground.train(None, runs=4)
    run = ov.tlog_rmse(ground.theory, made, VARIABLES)
    # and that of the library, by which the other claims measure, is this one: mean over entries and runs
    apart = ((made.data[name] - ground.theory.data[name].isel(run=0)).isel(time=slice(1, None)) for name in VARIABLES)
    own = [float(np.sqrt((each**2).mean("time")).mean()) for each in apart]
    same = bool(np.allclose(own, row(run.rmse), rtol=1e-9))
    note = (
        f"power as printed, corrected {right:.3f}; {abs(literal[-1]):.4f} and {mean[-1]:.5f} at h = .01; for SGD on "
        f"the normal latent the root is imaginary at {listed(100 * row(run.imaginary), 0)} % of the times and its real "
        f"part is {listed(row(run.printed))} where M is {listed(row(run.rmse))}, Q, R, v"
    )
    judged = verdict(abs(wrong - 1), abs(right - 1), 0.05) if same else "fails"
    return Measurement(judged, wrong, abs(right - 1), note)


@PAPER.claim(
    "tables-level",
    where="tables I and II",
    statement="M of SGD on the normal latent is as in tables I and II: .065, .034, .013 (erf) and .038, .026, .006 "
    "(ReLU) for Q, R, v, mean over entries; start, times and the selection of mixtures are not printed: the readings "
    "tried miss these numbers, which says that one is missing and not that the tables are wrong",
    expected="cannot be told",
)
def tables_level(quick: bool) -> Measurement:
    """Printed M at α = 0 over that of single runs from several starts and features, mean over entries."""
    # at a smaller size runs scatter farther, so that a smaller M there is smaller yet at the paper's
    size, starts = (200, 3) if quick else (SIZE, 8)
    largest, error, notes = 0.0, 0.0, []
    for activation in ACTIVATIONS:
        grounds = (Ground(activation, size, STEPS / SIZE, seed) for seed in range(starts))
        found = np.array([row(ground.distance(None, runs=1, seed=ground.seed).rmse) for ground in grounds])
        M, spread = mean_error(found)
        literal = np.array([values[0].mean() for values in printed.table(activation).values()])
        worst = int(np.argmax(literal / M))
        if literal[worst] / M[worst] > largest:
            largest = float(literal[worst] / M[worst])
            error = float(largest * spread[worst] / M[worst])
        notes.append(f"{activation} printed {listed(literal)}, here {listed(M, 4)} ± {listed(spread, 4)}")
    note = f"largest ratio; {', '.join(VARIABLES)}: {'; '.join(notes)}; N = {size}, {starts} starts"
    return Measurement("holds" if largest < 1.5 else UNDECIDED, largest, error, note)


@PAPER.claim(
    "tables-symmetry",
    where="tables I and II",
    statement="M of Q_01 and of Q_10 differ (tables I, II); Q is symmetric, so that they are the same number",
    expected="fails",
)
def tables_symmetry(quick: bool) -> Measurement:
    """Difference of the columns of Q_01 and Q_10 in table I over their mean; the largest |Q_01 − Q_10| of SGD."""
    shares: dict[str, tuple[float, float]] = {}
    for activation in ACTIVATIONS:
        Q = printed.table(activation)["Q"]
        share = 2 * (Q[:, 0, 1] - Q[:, 1, 0]) / (Q[:, 0, 1] + Q[:, 1, 0])
        shares[activation] = mean(share)
    Q = Ground("erf", 100, 5.0).train(None, runs=2).data["Q"].values
    skew = float(np.abs(Q[..., 0, 1] - Q[..., 1, 0]).max())
    possible = all(abs(value) < 3 * error for value, error in shares.values()) or skew > 0.01
    value, error = shares["relu"]
    note = f"mean over alpha; table II {value:.3f} ± {error:.3f}; |Q_01 - Q_10| of SGD at most {skew:.0e}"
    return Measurement("holds" if possible else "fails", *shares["erf"], note)
