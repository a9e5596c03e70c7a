"""The way to average the square loss of activations that are sums of error functions and moduli."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..data.inputs import Components
from ..network.activations import Activation
from .result import Averages, over_components
from .sum_averages import averages, square, terms
from .sums import FEWEST, MOST, fitted

Array = NDArray[np.float64]


class SumForm:
    """Closed-form averages of sums; where these are fits of the activations, of that many terms.

    Students have no moduli: their slopes would not be Gaussians.
    """

    def __init__(
        self,
        student: Activation,
        teacher: Activation,
        teacher_readout: Array,
        label_noise: float,
        components: Components,
        fit_terms: int = 5,
    ) -> None:
        self.student, self.teacher, self.fit_terms = student, teacher, fit_terms
        self.teacher_readout = np.ascontiguousarray(teacher_readout)
        self.label_noise, self.components = label_noise, components
        sums = fitted(student, fit_terms), fitted(teacher, fit_terms)
        assert sums[0] is not None and sums[1] is not None and not sums[0].moduli.size
        self.g, self.h = terms(sums[0]), terms(sums[1])
        self.fit_error = max(sums[0].error, sums[1].error)
        names = student.name if student is teacher else f"{student.name} on {teacher.name}"
        self.exact = self.fit_error == 0.0
        how = "" if self.exact else f", {fit_terms} error functions, {self.fit_error:.0e}"
        self.name = f"closed form ({names}{how})"
        self.default_accuracy = 1e-9 if self.exact else 1e-6
        self.gain, self.jumps = 2.0, False

    @staticmethod
    def serves(student: Activation, teacher: Activation) -> bool:
        """Whether these activations are sums that it takes."""
        own = fitted(student, 5)
        if own is None or own.moduli.size:
            return False
        # one number of terms is not enough: a fit is judged by its neighbour
        return _fits(student, teacher, 5) and (_fits(student, teacher, 6) or _fits(student, teacher, 4))

    def __call__(self, C: Array, v: Array, means: Array | None = None) -> Averages:
        """Averages at field covariance C (K+M, K+M) and readout v (K,); components differ in their variances alone."""
        weights, variances, _ = self.components
        if weights.size == 1 and variances[0] == 1.0:
            return self.single(C, v)
        parts = [replace(self.single(s * C, v), E=np.zeros((v.size, 1))) for s in variances.tolist()]
        return replace(over_components(parts, weights, variances), E=np.zeros((v.size, 0)))

    def single(self, C: Array, v: Array) -> Averages:
        """Averages of one component, of that covariance."""
        K = v.size
        w = np.concatenate([v, -self.teacher_readout])
        D, S, dv = np.empty((K, w.size)), np.empty((K, K)), np.empty(K)
        error = averages(np.ascontiguousarray(C), w, K, self.label_noise, self.g, self.h, D, S, dv)
        return Averages(D, S, dv, max(error, 0.0), np.zeros((K, 0)))

    def errors(self, C: Array, v: Array, means: Array | None = None) -> Array:
        """Generalisation error for a batch: C (n, K+M, K+M), v (n, K)."""
        weights, variances, _ = self.components
        out = np.empty(len(C))
        for i, readout in enumerate(v):
            w, K = np.concatenate([readout, -self.teacher_readout]), readout.size
            each = [square(np.ascontiguousarray(s * C[i]), w, K, self.g, self.h) for s in variances.tolist()]
            out[i] = max(0.5 * float(weights @ each), 0.0)
        return out

    def _with(self, fit_terms: int) -> SumForm | None:
        """The same by fits of so many terms, or None where there is no such fit, as for steep activations."""
        if not _fits(self.student, self.teacher, fit_terms):
            return None
        return SumForm(self.student, self.teacher, self.teacher_readout, self.label_noise, self.components, fit_terms)

    def check(self) -> SumForm:
        """The same averages by a fit of one term more or less, of other widths; where nothing is fitted, the same."""
        other = self._with(self.fit_terms + 1) or self._with(self.fit_terms - 1)
        assert other is not None, "fits have a neighbour"
        return other

    def coarser(self) -> SumForm:
        return self._with(max(self.fit_terms - 1, FEWEST)) or self

    def finer(self) -> SumForm | None:
        """A more accurate version, or None where there is nothing to refine."""
        if self.exact or self.fit_terms + 1 >= MOST:
            return None
        better = self._with(self.fit_terms + 1)
        return better if better is not None and better.fit_error < self.fit_error else None


def _fits(student: Activation, teacher: Activation, fit_terms: int) -> bool:
    """Whether both activations are sums of so many terms."""
    return fitted(student, fit_terms) is not None and fitted(teacher, fit_terms) is not None
