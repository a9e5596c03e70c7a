"""Claims about deep networks on images, setups 3 and 4, measured on digits, which are not the paper's data."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2, pearsonr

from ..estimates import mean
from ..ledger import UNDECIDED, Measurement
from .deep_runs import metrics, pairs
from .paper import PAPER


@PAPER.claim(
    "setup-3",
    where="section 5, setup 3, figure 4",
    statement="while a deep network learns two classes, |beta.mu|, alignment and elasticity of five unseen ones rank "
    "alike, Kendall's W at least .5 in the middle of training; measured on digits, not on CARS196 and CUB200",
    expected="holds",
)
def setup3(quick: bool) -> Measurement:
    """Least W (mean over runs) where the loss is .8 to .3 of that at the start; print does not define the middle."""
    data = pairs(quick, None)["digits"]
    loss = data["training_error"].mean("run").values
    middle = np.flatnonzero((loss < 0.8 * loss[0]) & (loss > 0.3 * loss[0]))
    W = data["concordance"].isel(set=0).values[:, middle]
    least = int(W.mean(0).argmin())
    value, error = mean(W[:, least])
    note = f"epochs {middle[0]} to {middle[-1]}, {len(W)} runs, mean over these epochs {W.mean():.2f}; of rankings "
    note += "that have nothing in common 1/3 is expected"
    return Measurement("holds" if value >= 0.5 else "fails", value, error, note)


@PAPER.claim(
    "setup-4",
    where="section 5, setup 4, table 1",
    statement="in metric learning Recall@1 and alignment correlate positively over unseen classes, r about .26 with a "
    "combined p-value near zero (table 1); CARS196 and CUB200 are not to be had here, and five classes of digits, on "
    "which it is measured, would show p < .001 at that r hardly ever, where 98 classes do nine times in ten",
    expected="cannot be told",
)
def setup4(quick: bool) -> Measurement:
    """Mean correlation at the end (the value), the combined p-value, below .001 in print, and the chance of that."""
    data = metrics(quick, None)["digits"]
    r, p = data["correlation"].values, data["combined_p_value"].values
    value, error = mean(r[:, -1])
    recalls = np.corrcoef(data["recall"].isel(epoch=-1).values)
    alike = recalls[np.triu_indices(len(recalls), 1)].mean()
    # all runs have the same unseen classes: neither p-values nor this standard error are of independent tests
    note = (
        f"{len(r)} runs, combined p = {p[-1]:.2g}; before training r = {r[:, 0].mean():.2f}, p = {p[0]:.2g}; Fisher's "
    )
    note += f"method is for independent tests, and Recall@1 of classes correlates by {alike:.2f} between runs"
    classes = data.sizes["unseen"]
    chance = power(classes, len(r))
    note += f"; at r = {PRINTED:g} and {classes} classes p < .001 comes with a chance of {chance:.2f}"
    judged = "holds" if value > 0 and p[-1] < 0.001 else "fails" if chance > 0.8 else UNDECIDED
    return Measurement(judged, value, error, note)


PRINTED = 0.26  # the correlation of table 1


def power(classes: int, runs: int, draws: int = 400) -> float:
    """Chance that `runs` correlations of Gaussian pairs, r as printed, over `classes` have a combined p below .001."""
    x, noise = np.random.default_rng(4).standard_normal((2, draws, runs, classes))
    y = PRINTED * x + np.sqrt(1 - PRINTED**2) * noise
    p = np.asarray(pearsonr(x, y, axis=2)[1])
    return float(np.mean(chi2.sf(-2 * np.log(p).sum(1), 2 * runs) < 1e-3))
