"""Statistics of training at finite size, from the alternative process by continuation to z² = −1.

φ′ (`overlaps.full_batch.perturbed`) is training with noise of size √((1 + z²)/m), which would be gone at z² = −1. No
run has such a z, but H(z), a mean or m times a variance over runs of ψ, is affine in z² up to terms of relative order
1/m:

    H at z² = −1  =  2 H(0) − H(1) + O(1/m).

Runs at z = 0 and z = 1 share their random numbers, so that part of the noise cancels. Standard errors are those of a
mean over pairs of runs, of 2 x − x′ for means and of 2 (x − x̄)² − (x′ − x̄′)² for variances (hence by fourth moments).

It is no fast way to these numbers: `overlaps.sample` draws training itself, equal in law at every size, and has less
noise, as no two variances are subtracted.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from ..interface.checks import checked, whole
from ..problem.start import Start
from ..problem.statement import Problem
from .comparison_processes import alternative
from .task import FullBatchTask

Array = NDArray[np.float64]
NAMES = ("Q", "R", "m", "error", "training_error")


@checked
def continued(
    problem: Problem, start: Start, times: ArrayLike | None = None, runs: int = 2000, seed: int = 0, *,
    sigma: float = 1e-3, progress: bool = True,
) -> xr.Dataset:  # fmt: skip
    """Mean, and samples times variance, of what evolves, by continuation of the alternative process to z² = −1.

    Parameters
    ----------
    problem, start, times, seed: as in `alternative`.
    runs: at each of z = 0 and z = 1.
    sigma: of both; the result is that of training up to O(sigma²).

    Returns
    -------
    For `training_error`, `error`, `Q`, `R` and `m`, as far as they are there: `mean_` and name, and `variance_` and
    name, samples times the variance of a run as in `fluctuations`, with dimensions (z2, time, ...); z2 is 0, 1 or −1,
    the last being 2 H(0) − H(1). Each has its standard error beside it, ``variance_Q_se`` and so on.
    """
    whole("runs", runs, least=3)
    zero, one = (
        alternative(problem, start, times, runs, seed, sigma=sigma, z=z, progress=progress).data for z in (0.0, 1.0)
    )
    samples = FullBatchTask(problem, start).samples
    out: dict[str, xr.DataArray] = {}
    for name in NAMES:
        for statistic, per_run in (("mean", _itself), ("variance", _squares)) if name in zero else ():
            each = [per_run(side[name], samples) for side in (zero, one)]
            three = xr.concat([*each, 2 * each[0] - each[1]], xr.Variable("z2", [0.0, 1.0, -1.0]))
            three = three.transpose("z2", "run", "time", ...)
            out[f"{statistic}_{name}"] = three.mean("run")
            out[f"{statistic}_{name}_se"] = three.std("run", ddof=1) / np.sqrt(runs)
    attrs = {"runs": runs, "samples": samples, "sigma": sigma, "seed": seed, "description": repr(problem)}
    return xr.Dataset(out, attrs=attrs)


def _itself(x: xr.DataArray, samples: int) -> xr.DataArray:
    """Numbers whose mean over runs is the mean of x, (run, time, ...)."""
    return x


def _squares(x: xr.DataArray, samples: int) -> xr.DataArray:
    """Numbers whose mean over runs is samples times the variance of x, (run, time, ...)."""
    n = x.sizes["run"]
    shifted = x - x.isel(run=0)  # so that what does not fluctuate has no variance at all, not that of rounding
    return samples * n / (n - 1) * (shifted - shifted.mean("run")) ** 2
