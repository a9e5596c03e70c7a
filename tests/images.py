"""Handwritten digits as images with classes, and networks whose outputs are known without training."""

from __future__ import annotations

from functools import cache
from typing import Any

import equinox as eqx
import jax
from sklearn.datasets import load_digits

from overlaps.giant_step.deep import Images


@cache
def digits() -> tuple[Images, Images]:
    """Digits 0 to 4, and 5 to 9."""
    held = load_digits()
    return Images.from_arrays(held.images / 16, held.target).split()


class Flat(eqx.Module):
    """The pixels of an image as they are."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return x.ravel()


def flat(channels: int, *, key: Any) -> Flat:
    """Recipe of a network that has nothing to learn."""
    return Flat()


class Linear(eqx.Module):
    """A matrix times the pixels."""

    matrix: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.matrix @ x.ravel()
