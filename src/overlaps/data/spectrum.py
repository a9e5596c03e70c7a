"""Spectra of the input covariance: eigenvalues ω_b, each on a fraction φ_b of the N dimensions.

The power law of L levels has ω_l = ω₊ l^-(1+β), equal fractions 1/L, and ω₊ = L / Σ_l l^-(1+β), so that
the mean eigenvalue is one and |x|² = N on average.

>>> from overlaps import PowerLaw
>>> round(PowerLaw(levels=10, exponent=0.25).eigenvalues[0], 12)
4.213580444351
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..interface.checks import array, checked, number, whole
from ..interface.errors import InputError, shown
from .covariance import principal_axes
from .power_law import DECADE, PowerFit, fit_sorted
from .table import Source

RANGE_ENDS = 40  # ranks tried as ends of a range, evenly spaced in log rank
RANKS = 500  # ranks that a fit uses, evenly spaced in log rank where there are more


class _Levels:
    """What all spectra can say of their levels, from their `eigenvalues` and `fractions`."""

    @property
    def ranked(self: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Ranks and eigenvalues, both (levels,), largest eigenvalue first.

        The rank of an eigenvalue is the share of dimensions with one at least as large, times the number of levels:
        1, 2, 3, ... for equal fractions.
        """
        values = np.array(self.eigenvalues, dtype=float)
        order = np.argsort(-values, kind="stable")
        ranks = np.cumsum(np.array(self.fractions)[order]) * values.size
        whole_ranks = np.rint(ranks)
        return np.where(np.abs(ranks - whole_ranks) < 1e-9 * ranks, whole_ranks, ranks), values[order]

    def power_law(self: Any, confidence: float = 0.95) -> PowerFit:
        """The longest range of ranks over which the eigenvalues fall as a power law, ω_l ∝ l^-(1+β).

        Ranges are judged by the rule of `fit_power`; `fit.beta` is β with its interval, which does not count the
        choice of the range. Where no range is a power law, the fit is that of the longest range without gaps between
        the ranks, and says so.
        """
        ranks, values = self.ranked
        ranks, values = ranks[values > 0], values[values > 0]
        if ranks[-1] < DECADE * ranks[0]:
            raise InputError(
                f"power_law: {values.size} level{'s' * (values.size > 1)} above zero are less than a decade of ranks, "
                "too few to tell a power law from other spectra"
            )
        shown = np.unique(np.searchsorted(ranks, np.geomspace(ranks[0], ranks[-1], RANKS) * (1 - 1e-9)))
        ranks, values = ranks[shown], values[shown]
        ends = np.unique(np.searchsorted(ranks, np.geomspace(ranks[0], ranks[-1], RANGE_ENDS) * (1 - 1e-9)))
        pairs = [(i, k) for i in ends for k in ends if ranks[k] >= DECADE * ranks[i]]
        pairs.sort(key=lambda pair: ranks[pair[0]] / ranks[pair[1]])
        longest: PowerFit | None = None
        for i, k in pairs:
            try:
                fit = fit_sorted(ranks[i : k + 1], values[None, i : k + 1], confidence, "rank")
            except InputError:  # gaps between these ranks
                continue
            if fit.is_power_law:
                return fit
            longest = longest or fit
        return longest or fit_sorted(ranks, values[None], confidence, "rank")  # its error says why


@dataclass(frozen=True)
class Spectrum(_Levels):
    """Any spectrum: `eigenvalues` ω_b ≥ 0 on `fractions` φ_b of the dimensions (equal ones by default).

    `source` says where it comes from, if it was measured; it plays no part in comparing spectra.
    """

    eigenvalues: Sequence[float] | NDArray[np.float64]
    fractions: Sequence[float] | NDArray[np.float64] | None = None
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        values = array("eigenvalues", self.eigenvalues, (None,))
        if values.size == 0:
            raise InputError("eigenvalues: expected at least one, got none")
        if values.min() < 0:
            raise InputError(
                f"eigenvalues: expected none below zero, got {values.min():g} at position {int(values.argmin())}"
            )
        if values.max() == 0:
            raise InputError("eigenvalues: at least one must be above zero, or inputs carry no signal")
        if self.fractions is None:
            shares = np.full(values.size, 1 / values.size)
        else:
            shares = array("fractions", self.fractions, (values.size,))
            if shares.min() <= 0:
                raise InputError(f"fractions: expected numbers above zero, got {shares.min():g}")
            if abs(shares.sum() - 1) > 1e-9:
                raise InputError(f"fractions: expected a sum of one, got {shares.sum():.10g}; divide them by their sum")
        if not isinstance(self.source, str):
            raise InputError(f"source: expected text, got {shown(self.source)}")
        object.__setattr__(self, "eigenvalues", tuple(values.tolist()))
        object.__setattr__(self, "fractions", tuple(shares.tolist()))

    @classmethod
    @checked
    def from_data(cls, source: Source, centre: bool = True) -> Spectrum:
        """The spectrum of the covariance of a data set, one level per eigenvalue, largest first, mean one.

        Parameters
        ----------
        source: a table of samples × columns, more samples than columns: an array, or the path of a .npy file (which is
            memory-mapped), a .npz file (its only array, or the one called X) or a .csv file (a header is skipped).
            Columns that do not vary are left out. It is read once, a block of rows at a time.
        centre: whether the mean of each column is subtracted; if not, these are second moments about zero.
        """
        axes = principal_axes(source, centre)
        return cls(axes.eigenvalues, source=axes.source)

    def __repr__(self) -> str:
        values = list(self.eigenvalues)
        about = f"; {self.source}" if self.source else ""
        if len(values) <= 4:
            return f"Spectrum(eigenvalues={values}, fractions={list(self.fractions or ())}{about})"
        return f"Spectrum({len(values)} levels, eigenvalues {min(values):.3g} to {max(values):.3g}{about})"


@dataclass(frozen=True)
class Isotropic(_Levels):
    """One level: every eigenvalue is one."""

    @cached_property
    def eigenvalues(self) -> tuple[float, ...]:
        return (1.0,)

    @cached_property
    def fractions(self) -> tuple[float, ...]:
        return (1.0,)


@dataclass(frozen=True)
class PowerLaw(_Levels):
    """L `levels` with ω_l ∝ l^-(1 + `exponent`), equal fractions, mean eigenvalue one."""

    levels: int
    exponent: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", whole("levels", self.levels, least=1, most=10**7))
        object.__setattr__(self, "exponent", number("exponent", self.exponent, above=-1))

    @cached_property
    def eigenvalues(self) -> tuple[float, ...]:
        raw = np.arange(1, self.levels + 1, dtype=float) ** -(1 + self.exponent)
        return tuple((raw * (self.levels / raw.sum())).tolist())

    @cached_property
    def fractions(self) -> tuple[float, ...]:
        return (1 / self.levels,) * self.levels


SPECTRA = (Isotropic, PowerLaw, Spectrum)  # what may stand in a `spectrum` field
