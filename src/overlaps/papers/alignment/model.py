"""The paper's two-layer network, its three training sets, and the sizes that figures and claims have.

d = n = N = 2¹¹, η = n^.25, |v| = 5 for ball and sphere (the r of v = 5r²u is not given in print; |v| of order one is
what its theorems need), v = (1, …, 1) for the truncated Gaussian. The activation is not named in print; it is bounded
with c_0 = 0 there, and tanh here.

>>> task = setting("truncated", 256)
>>> task.count, round(task.eta, 6), str(task.algorithm.window)
((256, 256, 256), 4.0, 'exponent 0.25 is on the boundary of the windows of order 1 and 2')
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import overlaps as ov

KINDS = ("ball", "truncated", "sphere")  # Data 1, 2, 3
NAMES = {kind: f"Data {i} ({kind})" for i, kind in enumerate(KINDS, 1)}
EXPONENT = 0.25
STEPS = {"step": (0.1, 0.4)}  # exponents that may be set in figures


def setting(
    kind: str = "sphere",
    size: int = 2048,
    *,
    exponent: float = EXPONENT,
    rate: float = 1.0,
    distance: float | None = None,
    activation: str | ov.Activation = "tanh",
) -> ov.giant_step.GiantStepSetting:
    """One of the three training sets at d = n = N = `size`, and the step η = rate·n^exponent."""
    data = ov.giant_step.TwoClasses(kind, distance)
    return ov.giant_step.GiantStepSetting(data, ov.GiantStep(rate, exponent), size=size, activation=activation)


class Scale(NamedTuple):
    """Size d = n = N, runs, points of a class, scales e up to .9, small ones, rotations, and exponent of the step."""

    size: int
    runs: int
    points: int
    scales: int
    small: int
    rotations: int
    step: float = EXPONENT

    @classmethod
    def of(cls, quick: bool, step: float = EXPONENT) -> Scale:
        """The paper's size, or a small one."""
        return cls(256, 6, 256, 3, 4, 12, step) if quick else cls(2048, 30, 512, 9, 8, 300, step)

    @classmethod
    def of_claims(cls, quick: bool) -> Scale:
        """The paper's size, with as many runs and rotations as a claim needs."""
        return cls.of(True) if quick else cls.of(False)._replace(runs=10, rotations=40)

    @property
    def e(self) -> list[float]:
        """Scales of setup 1: evenly from −.9 to .9, and small ones above zero, evenly on a logarithmic axis."""
        even = np.linspace(-0.9, 0.9, 2 * self.scales + 1).round(6)
        return sorted({*even.tolist(), *np.geomspace(1e-4, 0.05, self.small).round(8).tolist()})

    @property
    def c(self) -> list[float]:
        """Sizes ε√d of the rotations of setup 2, from 0 to 3, and a few large ones, where β·μ is near zero."""
        few = max(2, self.rotations // 10)
        return [*np.linspace(0, 3, self.rotations - few).tolist(), *np.geomspace(4, 40, few).tolist()]

    def note(self) -> str:
        """What figures are drawn with."""
        step = f"{self.step:g}".removeprefix("0")
        text = (
            f"d = n = N = {self.size}, η = n^{step}, tanh, |v| = 5 (Data 2: √d), {self.runs} runs, standard deviations"
        )
        full = Scale.of(False, self.step)
        if self == full:
            return text
        text += f"\nquick: size {self.size} instead of {full.size}, {self.runs} runs instead of {full.runs}, "
        return text + f"{2 * self.scales + 1} even scales e instead of 19, {self.rotations} rotations instead of 300"
