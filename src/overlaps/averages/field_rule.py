"""Which points average a function of d Gaussian fields h = μ + X z, z ~ N(0, I): lattice, panels or Sobol points.

A lattice follows the width of the integrand. With fields of sharpness n_a (an integrand that varies like
exp(−n_a h_a²/2) in field a) the integrand times the Gaussian weight varies like exp(−zᵀ A z/2), A = 1 + Xᵀ n X, and has
exp(−kᵀ A⁻¹ k/2) of frequency k. A lattice of spacings h_j reads the frequencies 2π m_j/h_j, m integer, as zero, so

    h_j = h √(A⁻¹)_jj √(min_m mᵀ B m),        B the matrix A⁻¹ scaled to a unit diagonal,

leaves an error of exp(−2π²/h²), whatever the covariance: h is in units of the width of the integrand, which is that of
the weight while fields vary little, and that of the activation when they vary much.

>>> rule = FieldRule([(), ()])
>>> rule.spacings(np.diag([0.01, 10.0])).round(3)
array([0.5 , 0.05])
"""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, gamma

from . import rules
from .panels import first_change, last_along, no_margin, panel_rule

Array = NDArray[np.float64]

BUDGET = 1_200_000  # points per average
# for d fields, to begin with: spacing in units of the width, and the probability left outside the ball; beyond
# these d a lattice of useful accuracy no longer fits the budget
SPACING = {1: (0.4, 1e-15), 2: (0.5, 1e-14), 3: (0.6, 1e-10), 4: (0.7, 1e-8)}
LABEL_SPACING = {1: (0.5, 1e-12), 2: (0.7, 1e-11), 3: (0.9, 1e-9), 4: (1.0, 1e-7)}
PANEL_SPACING = {1: (0.4, 1e-15), 2: (0.5, 1e-13), 3: (0.7, 1e-10), 4: (0.9, 1e-8)}
STEP = 1.1  # of spacings, where laws share a lattice
SOBOL_START, LABEL_SOBOL_START, SOBOL_LIMIT = 13, 10, 17  # log2 of the number of points, before mirroring


class FieldRule:
    """Points for d fields at once.

    Parameters
    ----------
    kinks: of each field, the places where the integrand is not smooth in it.
    joint: whether there are kinks in several fields at once, found by a margin.
    sharpness: n_a of each field.
    refinement: 0 to begin with, each step finer (or, negative, coarser).
    labelled: for losses of labels, whose fields vary over little of the width of a logistic function: they begin with
        fewer points.
    shifted: the independent rule of about the same cost: a lattice moved by half its spacings, which are a little
        smaller, in a larger ball; other panels.
    points_set: which of many independent sets of random points.
    """

    def __init__(
        self,
        kinks: list[tuple[float, ...]],
        refinement: int = 0,
        labelled: bool = False,
        *,
        joint: bool = False,
        sharpness: Array | None = None,
        shifted: bool = False,
        points_set: int = 0,
    ) -> None:
        self.kinks, self.joint, self.refinement, self.labelled, self.shifted = (
            kinks,
            joint,
            refinement,
            labelled,
            shifted,
        )
        self.points_set = points_set
        d = self.fields = len(kinks)
        self.sharpness = np.ones(d) if sharpness is None else sharpness
        self.is_tensor = d <= 4
        self.has_panels = self.is_tensor and (joint or any(kinks))
        # where points do not move with the fields, averages jump a little as one of them crosses a kink
        self.jumps = not self.is_tensor and (joint or any(kinks))
        # what a refinement must gain on an integrand that is smooth, but for the kinks that are known
        self.gain = 3.0 if self.is_tensor else 1.0
        # panels of four fields are dear: what they gain beyond this is bought on request
        self.default_accuracy = 1e-3 if not self.is_tensor else 1e-5 if self.has_panels and d == 4 else 1e-6
        if not self.is_tensor:
            self.log2 = (LABEL_SOBOL_START if labelled else SOBOL_START) + refinement
            self.name = f"Sobol, 2^{self.log2 + 1} points"
            return
        start = PANEL_SPACING if self.has_panels else LABEL_SPACING if labelled else SPACING
        spacing, outside = start[d]
        self.spacing = spacing / 1.3**refinement
        self.radius = float(np.sqrt(chdtri(d, outside / 100.0 ** (refinement + shifted))))
        self.least = max(2, (5 if d < 4 else 4) + refinement)  # nodes of a panel
        if shifted:
            self.spacing, self.least = self.spacing / 1.12, self.least + 1
        kind = "tensor rule of panels" if self.has_panels else "tensor rule"
        self.name = f"{kind}, spacing {spacing / 1.3**refinement:.2g}"

    def _with(self, refinement: int, shifted: bool, points_set: int) -> FieldRule:
        return FieldRule(
            self.kinks,
            refinement,
            self.labelled,
            joint=self.joint,
            sharpness=self.sharpness,
            shifted=shifted,
            points_set=points_set,
        )

    def check(self) -> FieldRule:
        """A rule independent of this one, of the same cost and accuracy, by which this one is judged."""
        if not self.is_tensor:
            return self.drawn(self.points_set ^ 1)
        return self._with(self.refinement, not self.shifted, 0)

    def drawn(self, points_set: int) -> FieldRule:
        """The same by another set of random points; sets of other numbers are independent."""
        return self._with(self.refinement, self.shifted, points_set)

    def coarser(self) -> FieldRule:
        return self._with(self.refinement - 1, self.shifted, self.points_set)

    def finer(self) -> FieldRule | None:
        """The next refinement, or None where the budget of points is spent."""
        better = self._with(self.refinement + 1, self.shifted, self.points_set)
        if not self.is_tensor:
            return better if better.log2 <= SOBOL_LIMIT else None
        return better if self._most(better.refinement) <= BUDGET else None

    def _most(self, refinement: int) -> float:
        """Points that a refinement may have."""
        return (
            (30_000 if self.labelled else 200_000) * 1.3 ** (self.fields * refinement) * (1.5 if self.shifted else 1.0)
        )

    def spacings(self, X: Array, gain: float = 1.0) -> Array:
        """Spacing of each coordinate, (r,), for fields X z, X (d, r), amplified by `gain` in the output.

        Infinite for coordinates that nothing depends on; all larger by a factor where there would be too many points.
        """
        found = self._spacings(X[None], np.array([gain]))[0]
        # laws of labels come in batches, of which those of about one width share a lattice
        return STEP ** _in_steps(found) if self.labelled else found

    def _spacings(self, X: Array, gains: Array) -> Array:
        """Spacings (n, r) for n laws of the fields, X (n, d, r), gains (n,)."""
        alive = np.asarray(X.any(axis=1))
        found = np.full(alive.shape, np.inf)
        for pattern in alive if len(X) == 1 else np.unique(alive, axis=0):
            laws, places = np.flatnonzero((alive == pattern).all(axis=1)), np.flatnonzero(pattern)
            if places.size:
                resolving = self._resolving(X[laws][:, :, places], gains[laws])
                found[np.ix_(laws, places)] = self._affordable(resolving)
        return found

    def _resolving(self, X: Array, gains: Array) -> Array:
        d, r = X.shape[1:]
        sharpness = np.broadcast_to(self.sharpness, (len(X), len(self.sharpness)))
        if self.labelled:
            sharpness = np.maximum(sharpness, gains[:, None] ** 2)
        if sharpness.shape[1] != d:
            sharpness = np.repeat(sharpness.max(axis=1, initial=0.0)[:, None], d, axis=1)
        transposed = X.swapaxes(1, 2)
        inverse = np.linalg.inv(np.eye(r) + (transposed * sharpness[:, None, :]) @ X)
        width = np.sqrt(np.diagonal(inverse, axis1=1, axis2=2))
        least = np.ones(len(X))
        if r > 1:
            B, steps = inverse / (width[:, :, None] * width[:, None, :]), _steps(r)
            least = ((steps @ B) * steps).sum(axis=2).min(axis=1)
        return self.spacing * width * np.sqrt(np.maximum(least, 1e-3))[:, None]

    def _affordable(self, spacings: Array) -> Array:
        d = spacings.shape[1]
        points = np.pi ** (d / 2) / gamma(d / 2 + 1) * np.prod(self.radius / spacings, axis=1)
        return spacings * (np.maximum(1.0, points / self._most(self.refinement)) ** (1 / d))[:, None]

    def points(
        self,
        X: Array,
        mean: Array | None = None,
        gain: float = 1.0,
        margin: Any = no_margin,
        at: tuple[int, int, Array, Array] | None = None,
        in_order: bool = True,
    ) -> tuple[Array, Array, NDArray[np.int64]]:
        """Nodes z (points, r), weights (points,) of sum one, and for each the first coordinate that is not as before.

        margin, at: of kinks in several fields, and its arguments (K, label, v, u). in_order: whether the last of the
        three is wanted; otherwise it may be zeros.
        """
        d, r = X.shape
        if not self.is_tensor:
            z, w = rules.sobol(r, self.log2, 1959 + 100 * self.points_set, 3 if self.jumps else 5)
            return z, w, np.zeros(len(w), np.int64)
        alive = np.flatnonzero(X.any(axis=0))
        if alive.size == 0:
            return np.zeros((1, r)), np.ones(1), np.zeros(1, np.int64)
        spacings = self.spacings(X, gain)
        if self.has_panels:
            K, label, v, u = (d, 0, np.ones(d), np.zeros(0)) if at is None else at
            kinks = np.full((r, max(1, *map(len, self.kinks))), np.nan)
            for j, own in enumerate(self.kinks):
                kinks[j, : len(own)] = own
            centre = np.zeros(d) if mean is None else mean
            if any(self.kinks):
                z, w = panel_rule(X, centre, kinks, margin, K, label, v, u, spacings, self.radius, self.least)
            else:
                turn = last_along(margin, X, centre, K, label, v, u)
                rest = self.spacings(X @ turn, gain)
                z, w = panel_rule(X @ turn, centre, kinks, margin, K, label, v, u, rest, self.radius, self.least)
                z = z @ turn.T
            return z, w, first_change(z) if in_order else np.zeros(len(w), np.int64)
        some, w, moved = rules.lattice(spacings[alive], self.radius, 0.5 if self.shifted else 0.0)
        if alive.size == r:
            return some, w, moved
        z = np.zeros((len(some), r))
        z[:, alive] = some
        moved = alive[moved]
        moved[0] = 0
        return z, w, moved

    def steps(self, X: Array, gains: Array) -> Array:
        """Spacings in steps of a factor, (n, r), for `stepped`, of n laws of the fields: X (n, d, r), gains (n,)."""
        return _in_steps(self._spacings(X, gains))

    def stepped(self, steps: Array) -> tuple[Array, Array]:
        """Nodes and weights of the lattice with spacings of so many steps."""
        alive = np.flatnonzero(np.isfinite(steps))
        if alive.size == 0:
            return np.zeros((1, len(steps))), np.ones(1)
        some, w, _ = rules.lattice(STEP ** steps[alive], self.radius, 0.5 if self.shifted else 0.0)
        z = np.zeros((len(some), len(steps)))
        z[:, alive] = some
        return z, w


def _in_steps(spacings: Array) -> Array:
    """Powers of `STEP`, whole numbers, that are next below."""
    return np.floor(np.log(spacings) / np.log(STEP) + 1e-9)


@cache
def _steps(r: int) -> Array:
    """Integer vectors (…, r) with entries −1, 0, 1, but zero."""
    return np.array([m for m in product((-1.0, 0.0, 1.0), repeat=r) if any(m)])
