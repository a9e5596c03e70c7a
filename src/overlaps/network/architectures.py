"""Networks that read inputs through fields λ_k = w_k·x: the committee Σ_k v_k g(λ_k), and softmax regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..interface.checks import number, whole
from ..interface.errors import InputError, shown
from .activations import BUILT_IN, Activation, activation


@dataclass(frozen=True)
class Committee:
    """A two-layer network, as student or as teacher.

    Parameters
    ----------
    units: number of hidden units.
    activation: ``"erf"`` (of x/√2), ``"relu"``, ``"linear"``, ``"tanh"``, ``"softplus"`` or an `Activation`.
    readout: second-layer weights, one number for all units or one per unit; the initial ones
        where they are trained.
    train_readout: whether the second layer learns too (students only).
    """

    units: int
    activation: str | Activation = "erf"
    readout: float | Sequence[float] | NDArray[np.float64] = 1.0
    train_readout: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "units", whole("units", self.units, least=1, most=10**4))
        own = self.activation
        # a built-in passed as an object is the same network as one passed by name
        if isinstance(own, Activation) and BUILT_IN.get(own.name) is own:
            object.__setattr__(self, "activation", own.name)
        _ = self.g  # which refuses a name that is not known
        if isinstance(self.train_readout, np.bool_):
            object.__setattr__(self, "train_readout", bool(self.train_readout))
        if not isinstance(self.train_readout, bool):
            raise InputError(f"train_readout: expected true or false, got {shown(self.train_readout)}")
        readout = self.readout
        if isinstance(readout, np.ndarray):
            readout = readout.tolist()
        if isinstance(readout, Sequence) and not isinstance(readout, str):
            values = tuple(number(f"readout[{i}]", r) for i, r in enumerate(readout))
            if len(values) != self.units:
                raise InputError(f"readout: expected one number or {self.units} (one per unit), got {len(values)}")
            object.__setattr__(self, "readout", values)
        else:
            object.__setattr__(self, "readout", number("readout", readout))

    @cached_property
    def g(self) -> Activation:
        """The activation itself."""
        return activation(self.activation)

    @property
    def readouts(self) -> NDArray[np.float64]:
        """Second-layer weights, shape (units,)."""
        return np.full(self.units, self.readout, dtype=float) if np.isscalar(self.readout) else np.array(self.readout)


@dataclass(frozen=True)
class Softmax:
    """Softmax regression, as student: class a has probability e^{λ_a}/Σ_b e^{λ_b}, one row of weights per class.

    Parameters
    ----------
    classes: number of classes; the labels of the data are 0 … classes − 1.
    """

    classes: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", whole("classes", self.classes, least=2, most=10**4))

    train_readout = False

    @property
    def units(self) -> int:
        """One field per class."""
        return self.classes

    @property
    def readouts(self) -> NDArray[np.float64]:
        """There is no second layer: ones, shape (classes,)."""
        return np.ones(self.classes)
