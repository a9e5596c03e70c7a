"""How finite-size effects vanish: bias ~ 1/N and spread ~ 1/√N, measured with the exact overlap chain.

From the same overlaps at every size, the mean over runs is compared with the infinite-size theory. One exponent per
variable is fitted to all its entries and times, bias_i(N) = b_i N^-a and spread_i(N) = s_i N^-a', with 99 % intervals
from a bootstrap over runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from ..data.power_law import Exponent
from ..interface.checks import checked, listed, whole
from ..interface.errors import InputError
from ..problem.start import Start, draw
from ..problem.statement import Problem
from ..trajectory.points import fit_decay, fit_spread, holm, points
from ..trajectory.scales import sample, solve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scaling:
    """Measured finite-size scaling.

    Attributes
    ----------
    bias, spread: for each variable that fluctuates, the fitted exponent; bias is None where it was not resolved.
    data: dataset over (size, point): bias, its standard error, spread.
    """

    bias: dict[str, Exponent | None]
    spread: dict[str, Exponent]
    data: xr.Dataset

    def __repr__(self) -> str:
        sizes = ", ".join(str(int(n)) for n in self.data["size"].values)
        lines = [f"finite-size scaling over N = {sizes} ({self.data.attrs['runs']} runs each), 99 % intervals"]
        for name, spread in self.spread.items():
            bias = self.bias[name]
            text = f"N^-{bias}" if bias else "not resolved (more runs or smaller sizes would)"
            lines.append(f"  {name:<6} bias ~ {text}, spread ~ N^-{spread}")
        return "\n".join(lines)

    @checked
    def plot(self, ax: Axes | None = None) -> Axes:
        """Root-mean-square bias and spread of each variable against size."""
        from ..plot.palette import COLOURS, new_axes

        if ax is None:
            ax = new_axes()
        n = self.data["size"].values
        for i, name in enumerate(self.spread):
            part = self.data.isel(point=np.flatnonzero(self.data["variable"].values == name))
            colour = COLOURS[i % len(COLOURS)]
            ax.loglog(n, np.sqrt((part["bias"] ** 2).mean("point")), "o-", color=colour, label=f"{name}: bias")
            ax.loglog(n, np.sqrt((part["spread"] ** 2).mean("point")), "s--", color=colour, label=f"{name}: spread")
        ax.set_xlabel("size N")
        ax.set_ylabel("root mean square over entries and times")
        ax.legend()
        return ax


@checked
def check_scaling(
    problem: Problem,
    sizes: Sequence[int],
    start: Start | None = None,
    times: ArrayLike | None = None,
    runs: int = 1000,
    seed: int = 0,
    *,
    progress: bool = True,
) -> Scaling:
    """Measure bias and spread against size.

    Parameters
    ----------
    sizes: at least two, better three or more sizes over a decade; small ones show the bias best.
    start: overlaps to start from at every size; by default a draw at the largest size with student scale 0.5.
    times, runs, seed: as for `sample`; by default 0.5, 1, 2 and 4, or all steps of `FullBatch`.
    """
    sizes = sorted({whole("sizes", n, least=1) for n in listed("sizes", sizes, "sizes")})
    if len(sizes) < 2:
        raise InputError("sizes: expected at least two different sizes")
    runs = whole("runs", runs, least=10)
    if problem.data.reads_latent:
        raise InputError(
            "data: sizes are compared by the overlap chain, which a hidden manifold does not have; use train"
        )
    if start is None:
        start = draw(problem, sizes[-1], seed=seed, scale=0.5)
    seed = whole("seed", seed, least=0)
    starts = [start.at_size(problem, n) for n in sizes]
    # a theory for each size: the levels have the fractions that are possible there
    if times is None and not problem.algorithm.times_are_steps:
        times = (0.5, 1.0, 2.0, 4.0)
    theories = [solve(problem, s, times) for s in starts]
    reference = points(theories[0])
    values = [
        points(sample(problem, s, times, runs=runs, seed=seed + i, progress=progress)).values
        for i, s in enumerate(starts)
    ]
    alive = np.all([v.std(0) > 1e-12 for v in values], axis=0)
    if not np.any(alive):
        raise InputError("times: nothing fluctuates at these times; use later ones")
    expected = [points(theory).values[0] for theory in theories]
    bias = np.array([v.mean(0) - e for v, e in zip(values, expected, strict=True)])
    spread = np.array([v.std(0, ddof=1) for v in values])
    size_axis = np.array(sizes, float)
    decay: dict[str, Exponent | None] = {}
    width: dict[str, Exponent] = {}
    for name in theories[0].variables:
        mine = alive & (reference.variable == name)
        if not np.any(mine):
            continue
        rows = [v[:, mine] for v in values]
        width[name] = fit_spread(size_axis, rows, seed)
        excess = np.maximum(np.abs(bias[0, mine]) - theories[0].accuracy(name), 0.0)
        t = excess / (spread[0, mine] / np.sqrt(runs))
        resolved = holm(2 * stats.t.sf(t, runs - 1)).min() < 0.01
        decay[name] = fit_decay(size_axis, rows, [e[mine] for e in expected], seed) if resolved else None
    data = xr.Dataset(
        {
            "bias": (("size", "point"), bias[:, alive]),
            "standard_error": (("size", "point"), spread[:, alive] / np.sqrt(runs)),
            "spread": (("size", "point"), spread[:, alive]),
            "variable": ("point", reference.variable[alive]),
            "entry": ("point", reference.entry[alive]),
            "time": ("point", reference.time[alive]),
        },
        {"size": sizes},
        {"runs": runs, "seed": seed},
    )
    return Scaling(decay, width, data)
