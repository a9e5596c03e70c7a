"""Scores of unseen classes after a giant step, measured or predicted, under the same names.

| variable | meaning |
|---|---|
| alignment, elasticity | E[F(x)·F(x')] and E\\|F(x) − F_0(x)\\|² of the class |
| alignment_before | alignment of the features before the step |
| similarity, similarity_variance | b·μ and bᵀΣb, mean and variance of b·x in the class, b = Xᵀy/n |
| saturation | η c_1 √((b·μ)² + bᵀΣb) √(heads/N), shift of a field by the rank-one gradient: polynomials need it small |
| recall, recall_inner | Recall@1 of the class against its mirror image −x, by cosine and inner product (micro only) |
| recall_before, recall_inner_before | the same before the step |
| gradient_error | \\|G − A\\|/\\|G\\| of the step, one per run (micro only) |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..interface.checks import checked
from ..interface.errors import InputError, unknown
from ..trajectory.citations import ONE_STEP
from .hermite import hermite_coefficients

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

    from .setting import GiantStepSetting

Array = NDArray[np.float64]
COMPARED = ("alignment", "elasticity")
LABELS = {
    "value": "unseen class",
    "similarity": "train-unseen similarity $b\\cdot\\mu$",
    "alignment": "alignment",
    "elasticity": "elasticity",
    "recall": "Recall@1",
}


def saturation(setting: GiantStepSetting, similarity: Array, variance: Array) -> Array:
    """The typical shift of a field by the rank-one gradient, of the shape of similarity and variance."""
    c1 = hermite_coefficients(setting.g, 1).c[1]
    return setting.eta * abs(c1) * np.sqrt((similarity**2 + variance) * setting.algorithm.heads / setting.count[2])


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of each unseen class.

    Attributes
    ----------
    data: xarray.Dataset with dimensions (run, unseen), a prediction being one run; `value` is the coordinate that marks
        the classes.
    scale: ``"micro"`` or ``"macro"``.
    setting: what was trained.
    """

    data: xr.Dataset
    scale: str
    setting: GiantStepSetting

    @property
    def runs(self) -> int:
        """Number of runs, one for a prediction."""
        return self.data.sizes["run"]

    def mean(self, name: str) -> Array:
        """Mean over runs of a variable, (unseen,)."""
        return self._variable(name).mean("run").values

    def standard_error(self, name: str) -> Array:
        """Standard error of that mean, (unseen,): zero for a prediction; needs two runs."""
        values = self._variable(name)
        if self.scale == "macro":
            return np.zeros(values.sizes["unseen"])
        if self.runs < 2:
            raise InputError("runs: a standard error needs at least 2 runs, got 1")
        return (values.std("run", ddof=1) / np.sqrt(self.runs)).values

    def against(self, theory: Scores) -> xr.Dataset:
        """These measured scores against predicted ones: their relative difference and z = difference/standard error.

        Variables ``alignment``, ``elasticity`` (relative) and ``z_alignment``, ``z_elasticity``, each (unseen,).
        """
        import xarray as xr

        if self.scale != "micro" or theory.scale != "macro":
            raise InputError(
                f"theory: expected measured scores against predicted ones, got {self.scale}, {theory.scale}"
            )
        if self.data.sizes["unseen"] != theory.data.sizes["unseen"]:
            raise InputError(
                f"theory: expected the same {self.data.sizes['unseen']} classes, got {theory.data.sizes['unseen']}"
            )
        out: dict[str, Any] = {}
        floor = 1e-12 * self.setting.count[2]  # what quadrature leaves of a score that is zero
        for name in COMPARED:
            difference, predicted = self.mean(name) - theory.mean(name), theory.mean(name)
            with np.errstate(divide="ignore", invalid="ignore"):
                out[name] = (
                    "unseen",
                    np.where(np.abs(predicted) < floor, np.inf * np.sign(difference), difference / predicted),
                )
                out[f"z_{name}"] = ("unseen", difference / self.standard_error(name))
        return xr.Dataset(out, {"value": self.data["value"]})

    @checked
    def plot(self, name: str = "alignment", x: str = "value", ax: Axes | None = None, **style: Any) -> Axes:
        """Draw a variable against the `value` of the classes or their `similarity`: measured ones with standard errors.

        Parameters
        ----------
        name: the variable; x: ``"value"`` or ``"similarity"``; ax: where to draw, a new figure by default.
        """
        import matplotlib.pyplot as plt

        if x not in ("value", "similarity"):
            raise unknown("x", x, ("value", "similarity"))
        if ax is None:
            ax = plt.subplots(layout="constrained")[1]
        across = self.data["value"].values if x == "value" else self.mean("similarity")
        order = np.argsort(across)
        style = {"label": self.scale, **style}
        if self.runs > 1:
            style = {"fmt": "o", "markersize": 4, "capsize": 2, **style}
            ax.errorbar(across[order], self.mean(name)[order], self.standard_error(name)[order], **style)
        else:
            ax.plot(across[order], self.mean(name)[order], **style)
        ax.set_xlabel(LABELS[x])
        ax.set_ylabel(LABELS.get(name, name.replace("_", " ")))
        return ax

    def citations(self) -> list[str]:
        """References for giant steps, alignment and elasticity."""
        return list(ONE_STEP)

    def _variable(self, name: str) -> xr.DataArray:
        known = [str(key) for key, values in self.data.items() if "unseen" in values.dims]
        if name not in known:
            raise unknown("variable", name, known)
        return self.data[name]

    def __repr__(self) -> str:
        count = self.data.sizes["unseen"]
        how = f"{self.runs} run{'s' * (self.runs > 1)}" if self.scale == "micro" else self.data.attrs["method"]
        ends = ", ".join(
            f"{name} {values.min():.3g} to {values.max():.3g}" for name in COMPARED for values in (self.mean(name),)
        )
        return f"Scores({self.scale}, {how}, {count} unseen class{'es' * (count > 1)}: {ends})"
