"""The room *outliers*, what it computes: a block of the Hessian of softmax regression on a mixture, along training.

At each time the eigenvalues of the block on a batch of samples, and what theory says of them from the weights at that
time: the edges of the bulk and the outliers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import xarray as xr

from ...algorithms import OnlineSGD
from ...data import GaussianMixture
from ...network.architectures import Softmax
from ...problem.start import Start, draw
from ...problem.statement import Problem
from ...spectra import Batch, Observer, hessian, predicted_outliers
from ...trajectory.scales import train
from .choice import Choice

MOMENTS = 12  # observed times, the start among them
FIRST, LAST = 0.2, 50.0
TIMES = np.concatenate([[0.0], np.geomspace(FIRST, LAST, MOMENTS - 1)])
DECAY = 0.01
SAMPLES = 10  # of the batch, per dimension


@dataclass(frozen=True)
class Mixed(Choice):
    """Classes, their variance, the rate, the size, and which of the observed times is looked at."""

    ROOM: ClassVar[str] = "outliers"
    LIMITS: ClassVar[Mapping[str, tuple[float, float]]] = {
        "classes": (2, 10),
        "variance": (0.02, 1.0),
        "rate": (0.1, 3.0),
        "size": (50, 300),
        "moment": (0, MOMENTS - 1),
    }

    classes: int = 3
    variance: float = 0.1
    rate: float = 1.0
    size: int = 150
    moment: int = MOMENTS - 1

    @property
    def problem(self) -> Problem:
        return Problem(
            data=GaussianMixture(means=self.classes, variance=self.variance),
            student=Softmax(self.classes),
            loss="cross-entropy",
            algorithm=OnlineSGD(self.rate, decay=DECAY),
        )

    @property
    def at_all_times(self) -> Mixed:
        """The same for every moment: what is computed once."""
        return replace(self, moment=0)

    def code(self) -> str:
        return f"""import matplotlib.pyplot as plt
import numpy as np

import overlaps as ov
from overlaps import spectra

problem = ov.Problem(
    data=ov.GaussianMixture(means={self.classes}, variance={self.variance!r}),
    student=ov.Softmax({self.classes}),
    loss="cross-entropy",
    algorithm=ov.OnlineSGD({self.rate!r}, decay={DECAY}),
)
size, samples = {self.size}, {SAMPLES * self.size}
start = ov.draw(problem, size, seed=0)
times = np.concatenate([[0.0], np.geomspace({FIRST}, {LAST}, {MOMENTS - 1})])
watch = spectra.Observer(kinds="hessian", blocks=[0], samples=samples, keep_weights=True)
run = ov.train(problem, start, times, runs=1, seed=0, observe=watch)

here = ov.Start.from_weights(problem, student=run.data["weights"].values[0, {self.moment}])
batch = spectra.Batch.draw(problem, start, samples, 1)
eigenvalues = spectra.hessian(problem, here, batch).block(0).spectrum()
law = spectra.predicted_outliers(problem, here, samples)
observed, aligned = run.data["observed"].values, run.data["hessian_alignment"].values[0, :, 0]

figure, (spectrum, alignment) = plt.subplots(2, figsize=(7, 8), layout="constrained")
spectrum.hist(eigenvalues, bins=120, log=True, label="eigenvalues")
spectrum.axvspan(law.low, law.high, color="C2", alpha=0.2, label="predicted bulk")
for i, outlier in enumerate(law.values):
    spectrum.axvline(outlier, color="C1", ls="--", label="predicted outliers" if i == 0 else None)
spectrum.set(xlabel="eigenvalue", ylabel="eigenvalues in a bin", title=f"time {{observed[{self.moment}]:.3g}}")
spectrum.legend()
alignment.plot(observed, aligned, "o-")
alignment.plot(observed[{self.moment}], aligned[{self.moment}], "o", ms=10)
alignment.set(xlabel="time", ylabel="alignment", ylim=(0, 1.02))
figure.savefig("overlaps.png")
"""


def along_training(chosen: Mixed) -> xr.Dataset:
    """Eigenvalues (observed, eigenvalue), edges (observed, end), outliers (observed, outlier) and alignment (observed).

    Outliers that are not there are NaN.
    """
    problem, samples = chosen.problem, SAMPLES * chosen.size
    start = draw(problem, chosen.size, seed=0)
    watch = Observer(kinds="hessian", blocks=[0], samples=samples, keep_weights=True)
    run = train(problem, start, TIMES, runs=1, seed=0, observe=watch)
    batch = Batch.draw(problem, start, samples, 1)
    spectra, edges = [], []
    outliers = np.full((MOMENTS, chosen.size), np.nan)
    for i in range(MOMENTS):
        here = Start.from_weights(problem, student=run.data["weights"].values[0, i])
        law = predicted_outliers(problem, here, samples)
        spectra.append(hessian(problem, here, batch).block(0).spectrum())
        edges.append((law.low, law.high))
        outliers[i, : len(law.values)] = law.values
    most = int(np.isfinite(outliers).sum(1).max())
    return xr.Dataset(
        {
            "eigenvalues": (("observed", "eigenvalue"), np.array(spectra)),
            "edges": (("observed", "end"), np.array(edges)),
            "outliers": (("observed", "outlier"), outliers[:, :most]),
            "alignment": (("observed",), run.data["hessian_alignment"].values[0, :, 0]),
        },
        coords={"observed": run.data["observed"].values},
        attrs={"spec": chosen.to_toml()},
    )
