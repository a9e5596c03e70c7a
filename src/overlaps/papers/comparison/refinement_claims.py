"""Claims about finite size: the comparison theorem, continuation to z² = −1, and Algorithm 1.

Variances are those of the training error over runs, times m. Ratios to brute force, which is training sampled exactly,
have standard errors from fourth moments; tests are at level 1e-3 over all that a claim compares.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.stats import norm

import overlaps as ov

from ..estimates import variance_error
from ..ledger import POWER, UNDECIDED, Measurement, told
from . import loops
from .algorithm import Passes
from .mean_field import Limit
from .model import COUPLING, LOSSES, problem, start
from .paper import PAPER

Array = NDArray[np.float64]
LEVEL = 1e-3


def scaled_variance(values: Array, m: int) -> tuple[Array, Array]:
    """m times the variance of values (runs, ...) over runs, and its standard error by fourth moments."""
    variance, error = variance_error(values)
    return m * variance, m * error


@cache
def predicted(loss: str, steps: int, one_pass: bool, coupling: float = COUPLING) -> xr.Dataset:
    """Theory of the fluctuations for the soft ReLU, which depends on no size; figure and claim draw on it."""
    task = problem("softplus", loss, coupling=coupling, steps=steps)
    return ov.full_batch.fluctuations(task, start(task, 1000), one_pass=one_pass, progress=False)


@PAPER.claim(
    "theorem-1",
    where="theorem 1, eqs. (8) to (10)",
    statement="the alternative process (8) and the perturbed training (9) have the same law for every sigma > 0 and z, "
    "at any size",
    expected="holds",
)
def theorem1(quick: bool) -> Measurement:
    """Moments of n = 3, m = 4, 3 steps, against each other by relabelling; ψ at another z must be told apart."""
    runs = 20_000 if quick else 400_000
    cases = [("softplus", "logistic", 0.4, 0.7), ("softplus", "square", 0.5, 0.0), ("relu", "square", 0.3, 1.0)]
    cases = cases[::2] if quick else cases
    holds, largest, control, features, notes = True, 0.0, np.inf, 0, []
    for seed, (activation, loss, sigma, z) in enumerate(cases):
        task = problem(activation, loss, ratio=0.75, steps=2)
        found = ov.full_batch.check_theorem(
            task,
            start(task, 4),
            sigma=sigma,
            z=z,
            # a transposed W shows with ReLU, with twice as many runs
            runs=2 * runs if quick and activation == "relu" else runs,
            seed=seed,
            level=LEVEL / len(cases),
        )
        holds &= found.verdict == "holds in law"
        largest, control, features = max(largest, found.largest_z), min(control, found.control_z), found.features
        notes.append(f"{activation} {loss}, sigma = {sigma:g}, z = {z:g}: {found.verdict}, p = {found.p:.2g}")
    note = f"largest |z-score| of {features} moments; of the controls at least {control:.1f}; {'; '.join(notes)}"
    return Measurement("holds" if holds else "fails", largest, 1.0, note)


def continuation(pairs: list[tuple[str, str]], steps: list[int], m: int, runs: int) -> tuple[float, float, bool, str]:
    """Ratio of m Var by 2 H(0) − H(1) to brute force: the farthest from one and its error; and whether all agree.

    That they agree says something only where the noise Γ matters, so H(0) has to be told from brute force.
    """
    found: dict[float, list[tuple[Array, Array]]] = {-1.0: [], 0.0: []}
    notes = []
    for pair in pairs:
        task = problem(*pair, steps=max(steps))
        begin = start(task, m)
        made = ov.full_batch.continued(task, begin, steps, runs=runs, seed=1, progress=False)
        brute = ov.sample(task, begin, steps, runs=2 * runs, seed=2, progress=False)
        exact, error = scaled_variance(brute.data["training_error"].values, m)
        for z2, each in found.items():
            H, se = (made[name].sel(z2=z2).values for name in ("variance_training_error", "variance_training_error_se"))
            each.append((H / exact, np.hypot(se, H / exact * error) / exact))
        (ratio, width), (plain, _) = found[-1.0][-1], found[0.0][-1]
        listed = (f"{x:.2f} ± {e:.2f} ({p:.2f})" for x, e, p in zip(ratio, width, plain, strict=True))
        notes.append(f"{' '.join(pair)} {', '.join(listed)}")
    (ratio, error), (plain, width) = (np.array(found[z2]).swapaxes(0, 1) for z2 in (-1.0, 0.0))
    z, bound = np.abs(ratio - 1) / error, norm.isf(LEVEL / (2 * ratio.size))
    worst = np.unravel_index(int(z.argmax()), z.shape)
    agrees = bool(z.max() < bound < (np.abs(plain - 1) / width).max())
    at = ", ".join(map(str, steps))
    note = f"ratio to brute force at step {at}, and in brackets at z = 0: {'; '.join(notes)}; m = {m}"
    return float(ratio[worst]), float(error[worst]), agrees, note


@PAPER.claim(
    "claim-1",
    where="claim 1, figure 3",
    statement="statistics of training are those of the alternative process continued to z = sqrt(-1), sigma -> 0, for "
    "m Var by 2 H(0) - H(1) (Claim 1, soft ReLU)",
    expected="holds",
)
def claim1(quick: bool) -> Measurement:
    """m Var of the training error by continuation over brute force, soft ReLU, γ = 1."""
    m, runs, steps, losses = (100, 500, [2, 4], LOSSES[:1]) if quick else (200, 30_000, [2, 4, 6], LOSSES)
    ratio, error, agrees, note = continuation([("softplus", loss) for loss in losses], steps, m, runs)
    return Measurement(told("holds" if agrees else "fails", ratio, error), ratio, error, note)


@cache
def one_pass(pair: tuple[str, str], m: int, runs: int, passes: int = 1) -> tuple[Array, Array, Array]:
    """m Var at z = 0 after some passes and of the limit of many, over each other: ratio, its error, and the latter."""
    limit = Limit.of(problem(*pair, steps=2), accuracy=2e-3)
    chunk, some, all_ = 200, [], []
    for seed in range(0, runs, chunk):
        go = Passes(limit, m, chunk, seed)
        state = go.begin()
        for i in range(2 * limit.T):
            state = go(state)
            if i + 1 == passes:
                some.append(state.error)
        all_.append(state.error)
    early, late = np.concatenate(some), np.concatenate(all_)
    squares = [(x - x.mean(0)) ** 2 for x in (early, late)]
    ratio = squares[0].mean(0) / squares[1].mean(0)
    spread = (squares[0] - ratio * squares[1]).std(0, ddof=1) / np.sqrt(len(late)) / squares[1].mean(0)
    return ratio, spread, m * squares[1].mean(0)


def single_iteration(pair: tuple[str, str], m: int, runs: int) -> tuple[Array, Array]:
    """2 H(0) − H(1) of m Var after one pass, over brute force, and its error, at steps 1 and 2, (2,) each."""
    task = problem(*pair, steps=2)
    limit, chunk, found = Limit.of(task, accuracy=2e-3), 200, []
    for seed in range(0, runs, chunk):
        passes = [Passes(limit, m, chunk, seed, z) for z in (0.0, 1.0)]  # with the same random numbers
        found.append([go(go.begin()).error for go in passes])
    errors = np.concatenate(found, axis=1)
    squares = (errors - errors.mean(1, keepdims=True)) ** 2
    each = m * (2 * squares[0] - squares[1])[:, 1:]
    brute = ov.sample(task, start(task, m), [1, 2], runs=runs, seed=2, progress=False)
    exact, error = scaled_variance(brute.data["training_error"].values, m)
    ratio = each.mean(0) / exact
    return ratio, np.hypot(each.std(0, ddof=1) / np.sqrt(runs), ratio * error) / exact


@PAPER.claim(
    "relu-remark",
    where="section 6.2, after figure 3",
    statement="refined by a single iteration of Algorithm 1, 2 H(0) - H(1) is not accurate for the exact ReLU, off by "
    "a third, and is, to a tenth, for the soft one; the explanation that is offered, that ReLU does not allow "
    "continuation, is not borne out (relu-continuation); steps 1 and 2, for a literal pass is ill-conditioned at later "
    "ones",
    expected="holds",
)
def relu_remark(quick: bool) -> Measurement:
    """m Var of the training error by 2 H(0) − H(1) of one pass over brute force, ReLU, step 1; and soft ReLU.

    Accurate is what is not off by more than a tenth, at level 1e-3: one pass is not exact for soft ReLU (iterations).
    """
    m, runs, losses = (200, 3000, LOSSES[:1]) if quick else (1000, 20_000, LOSSES)
    found = {name: [single_iteration((name, loss), m, runs) for loss in losses] for name in ("relu", "softplus")}
    bound = float(norm.isf(LEVEL / (4 * len(losses))))
    off = [max(float(np.max((np.abs(r - 1) - POWER) / e)) for r, e in each) for each in found.values()]
    exact, soft = (most > bound for most in off)
    notes = []
    for name, each in found.items():
        listed = "; ".join(", ".join(f"{x:.2f} ± {s:.2f}" for x, s in zip(r, e, strict=True)) for r, e in each)
        notes.append(f"{name} {listed}")
    ratio, error = (float(x[0]) for x in found["relu"][0])
    # soft ReLU says something if it would show what ReLU has
    shows = abs(ratio - 1) - POWER > bound * max(float(e[0]) for _, e in found["softplus"])
    judged = "fails" if not exact else UNDECIDED if not shows else "fails" if soft else "holds"
    note = f"at steps 1 and 2, {', '.join(losses)} loss: {'; '.join(notes)}; m = {m}, {bound:.1f} errors at level .001"
    return Measurement(judged, ratio, error, note)


@PAPER.claim(
    "relu-continuation",
    where="not in the paper; after figure 3 it supposes the contrary",
    statement="2 H(0) - H(1) of Algorithm 1 taken through all its iterations is accurate for the exact ReLU as it is "
    "for the soft one: its lack of a derivative at zero does no harm",
    expected="found here",
)
def relu_continuation(quick: bool) -> Measurement:
    """m Var of the training error by continuation over brute force, ReLU, step 4."""
    m, runs, losses = (100, 7500, LOSSES[:1]) if quick else (1000, 8000, LOSSES)
    ratio, error, works, note = continuation([("relu", loss) for loss in losses], [4], m, runs)
    return Measurement(told("found here" if works else "fails", ratio, error), ratio, error, note)


@PAPER.claim(
    "iterations",
    where="section 8, Algorithm 1",
    statement="after r iterations of Algorithm 1 statistics are accurate to O(1/m^r), m Var after one to O(1/m); "
    "corrected: after 2 l iterations step l is exact; after fewer m Var is off by a factor that stays as m grows",
    expected="holds corrected",
)
def iterations(quick: bool) -> Measurement:
    """m Var of the training error at step 1 after one pass over that after many, m = 50 and 800."""
    runs = 1600 if quick else 16_000
    found, notes, exact = [], [], 0.0
    for pair in (("relu", "square"), ("softplus", "square")):
        few, many = (one_pass(pair, m, count) for m, count in ((50, runs), (800, runs // 4)))
        found.append((few[0][1], few[1][1], many[0][1], many[1][1]))
        notes.append(f"{' '.join(pair)} {few[0][1]:.2f} ± {few[1][1]:.2f} and {many[0][1]:.2f} ± {many[1][1]:.2f}")
        exact = max(exact, *(float(np.abs(one_pass(pair, 50, 200, 2 * l)[0][: l + 1] - 1).max()) for l in (1, 2)))
    # O(1/m) would take 15/16 of the deviation at m = 50 away
    stays = all(abs(b - 1) > 4 * db + abs(a - 1) / 4 for a, _, b, db in found)
    vanishes = all(abs(b - 1) <= 4 * db + abs(a - 1) / 4 for a, _, b, db in found)
    judged = "holds" if vanishes else "holds corrected" if stays and exact < 1e-4 else "fails"
    note = f"m = 50 and 800: {'; '.join(notes)}; after 2 l passes within {exact:.0e} of the limit at steps l = 1, 2"
    return Measurement(judged, found[0][2], found[0][3], note)


@PAPER.claim(
    "fluctuations",
    where="section 6.2, eq. (33)",
    statement="fluctuations of order 1/sqrt(m) of the kernels (33) give the statistics to order 1/m; corrected: with "
    "(33) corrected and taken through all steps, and not by one pass",
    expected="holds corrected",
)
def fluctuations(quick: bool) -> Measurement:
    """m Var of training error and |θ|², and m bias of the error, over those of training, soft ReLU, last step."""
    steps, m, runs = (2, 128, 20_000) if quick else (6, 400, 40_000)
    found, notes, holds, once_holds = [], [], True, True
    for loss in LOSSES[:1] if quick else LOSSES:
        task = problem("softplus", loss, steps=steps)
        begin = start(task, m)
        theory, once = (predicted(loss, steps, one) for one in (False, True))
        made = loops.train(task, begin, runs, seed=m)
        for name, values in (("training_error", made.error), ("Q", np.sum(made.theta**2, axis=2))):
            exact, error = (x[1:] for x in scaled_variance(values, m))
            ratio, early = (data[f"variance_{name}"].values.ravel()[1:] / exact for data in (theory, once))
            tolerance = 0.01 + 4 / m + 3 * error / exact  # 1 %, what a finite m adds, and the noise of the runs
            holds &= bool((np.abs(ratio - 1) < tolerance).all())
            once_holds &= bool((np.abs(early - 1) < tolerance).all())
            found.append((float(ratio[-1]), float((error / exact)[-1])))
            notes.append(f"{loss} {name} {ratio[-1]:.3f} ± {found[-1][1]:.3f}, one pass {early[-1]:.2f}")
        # small sizes have the larger bias
        limit, few = ov.solve(task, begin, accuracy=2e-4), loops.train(task, start(task, 48), 2 * runs, 48).error[:, -1]
        bias = 48 * (few.mean() - float(limit.data["training_error"][0, -1]))
        claimed, accuracy = float(theory["bias_training_error"][-1]), theory["bias_training_error"].attrs["accuracy"]
        error = 48 * float(np.hypot(few.std() / np.sqrt(len(few)), limit.accuracy("training_error")))
        holds &= abs(bias - claimed) < 4 * error + accuracy
        notes.append(f"m bias {claimed:.4f} ± {accuracy:.4f}, in training {bias:.4f} ± {error:.4f}")
    judged = "holds" if once_holds else "holds corrected" if holds else "fails"
    note = f"ratio that is farthest from one; step {steps}: {'; '.join(notes)}; m = {m}"
    ratio, error = max(found, key=lambda x: abs(x[0] - 1))
    return Measurement(judged, ratio, error, note)
