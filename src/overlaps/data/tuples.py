"""Probabilities and arrays of a data model as tuples, which compare, hash and go to TOML."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..interface.checks import array, listed, number
from ..interface.errors import InputError, shown

Array = NDArray[np.float64]


def tuples(values: Array) -> Any:
    """Nested tuples, which compare, hash and go to TOML."""
    return tuple(tuples(v) for v in values) if values.ndim > 1 else tuple(values.tolist())


def component_labels(given: Any, count: int) -> tuple[float, ...]:
    """One number per component; whole numbers stay whole, as classes are."""
    labels = listed("labels", given, f"{count} numbers, one per component")
    if len(labels) != count:
        raise InputError(f"labels: expected {count} numbers, one per component, got {shown(given)}")
    values = tuple(number(f"labels[{i}]", label) for i, label in enumerate(labels))
    return tuple(int(value) for value in values) if all(value.is_integer() for value in values) else values


def probabilities(given: Any, count: int) -> tuple[float, ...]:
    """Weights of components, each above zero, that sum to one."""
    weights = array("weights", given, (count,))
    if weights.min() <= 0:
        raise InputError(f"weights: expected numbers above zero, got {weights.min():g}; leave such a component out")
    if abs(weights.sum() - 1) > 1e-9:
        raise InputError(f"weights: expected a sum of one, got {weights.sum():.10g}; divide them by their sum")
    return tuple(weights.tolist())
