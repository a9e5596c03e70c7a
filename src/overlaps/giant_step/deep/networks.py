"""Small networks from one image (channels, height, width) to a vector (outputs,), for images of any size.

A network is given to `train_pair` and `train_metric` as a recipe: any function of the number of channels and a JAX
random key that makes an `equinox.Module` which maps one image to a vector. `Convolutional` and `Residual` are two such
recipes; a function of your own may stand in their place.

>>> import jax
>>> from overlaps.giant_step.deep.networks import Residual
>>> recipe = Residual(outputs=5, widths=(8, 16), blocks=(1, 1))
>>> jax.eval_shape(lambda key, image: recipe(1, key=key)(image), jax.random.key(0), jax.numpy.ones((1, 8, 8))).shape
(5,)

K. He, X. Zhang, S. Ren and J. Sun, Deep residual learning for image recognition, CVPR (2016).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import equinox as eqx
import jax
import jax.numpy as jnp

from ...interface.checks import listed, whole
from ...interface.errors import InputError, shown


class Recipe(Protocol):
    """Makes a network for images of so many channels, with random weights."""

    def __call__(self, channels: int, *, key: jax.Array) -> Any: ...


@dataclass(frozen=True)
class Convolutional:
    """A plain convolutional network: per width a 3 x 3 convolution, norm and ReLU; the mean over pixels; a linear map.

    Every convolution but the first halves height and width.

    Parameters
    ----------
    outputs: length of the vector.
    widths: channels of the layers.
    """

    outputs: int = 64
    widths: Sequence[int] = (16, 32, 64)

    def __post_init__(self) -> None:
        object.__setattr__(self, "outputs", whole("outputs", self.outputs, least=2))
        object.__setattr__(self, "widths", _widths(self.widths))

    def __call__(self, channels: int, *, key: jax.Array) -> eqx.Module:
        """The network for images of so many channels."""
        keys = iter(jax.random.split(key, len(self.widths) + 1))
        layers, before = [], channels
        for i, width in enumerate(self.widths):
            layers.append(_Layer(before, width, stride=1 if i == 0 else 2, key=next(keys)))
            before = width
        return _Pooled(layers, eqx.nn.Linear(before, self.outputs, key=next(keys)))


@dataclass(frozen=True)
class Residual:
    """A residual network of basic blocks: a stem, stages of blocks, the mean over pixels and a linear layer.

    ``Residual(outputs=2048, widths=(64, 128, 256, 512), blocks=(2, 2, 2, 2), stem=7)`` has the shape of ResNet18.

    Parameters
    ----------
    outputs: length of the vector.
    widths: channels of the stages; every stage but the first halves height and width.
    blocks: number of blocks of the stages.
    stem: 3 for a 3 x 3 convolution, made for small images; 7 for a 7 x 7 convolution and a maximum over 3 x 3 pixels,
        each of which halves height and width, made for photographs of 100 pixels and more.
    """

    outputs: int = 64
    widths: Sequence[int] = (16, 32, 64)
    blocks: Sequence[int] = (1, 1, 1)
    stem: int = 3

    def __post_init__(self) -> None:
        object.__setattr__(self, "outputs", whole("outputs", self.outputs, least=2))
        object.__setattr__(self, "widths", _widths(self.widths))
        blocks = tuple(whole("blocks", count, least=1) for count in listed("blocks", self.blocks, "numbers"))
        if len(blocks) != len(self.widths):
            raise InputError(f"blocks: expected {len(self.widths)} numbers, one for each of widths, got {len(blocks)}")
        object.__setattr__(self, "blocks", blocks)
        if not isinstance(self.stem, int) or self.stem not in (3, 7):
            raise InputError(f"stem: expected 3 (small images) or 7 (photographs), got {shown(self.stem)}")

    def __call__(self, channels: int, *, key: jax.Array) -> eqx.Module:
        """The network for images of so many channels."""
        keys = iter(jax.random.split(key, sum(self.blocks) + 2))
        before = self.widths[0]
        layers: list[Any] = [
            _Layer(channels, before, size=self.stem, stride=1 if self.stem == 3 else 2, key=next(keys))
        ]
        if self.stem == 7:
            layers.append(eqx.nn.MaxPool2d(3, stride=2, padding=1))
        for stage, (width, count) in enumerate(zip(self.widths, self.blocks, strict=True)):
            for block in range(count):
                stride = 2 if stage > 0 and block == 0 else 1
                layers.append(_Block(before, width, stride, key=next(keys)))
                before = width
        return _Pooled(layers, eqx.nn.Linear(before, self.outputs, key=next(keys)))


class _Layer(eqx.Module):
    """Convolution and norm, then a ReLU if asked."""

    convolution: eqx.nn.Conv2d
    norm: eqx.nn.GroupNorm
    rectified: bool = eqx.field(static=True)

    def __init__(
        self, before: int, width: int, *, size: int = 3, stride: int = 1, rectified: bool = True, key: jax.Array
    ) -> None:
        self.convolution = eqx.nn.Conv2d(before, width, size, stride=stride, padding=size // 2, use_bias=False, key=key)
        # Not batch norm: it would make the features of an unseen class depend on which images are measured together,
        # and on a running average. Groups of about 16 channels: even at one pixel there is something to normalise.
        self.norm = eqx.nn.GroupNorm(math.gcd(width, max(1, width // 16)), width)
        self.rectified = rectified

    def __call__(self, x: jax.Array) -> jax.Array:
        normed = self.norm(self.convolution(x))
        return jax.nn.relu(normed) if self.rectified else normed


class _Block(eqx.Module):
    """relu(layers(x) + x); where the shape changes x goes through a 1 x 1 convolution."""

    first: _Layer
    second: _Layer
    shortcut: _Layer | None

    def __init__(self, before: int, width: int, stride: int, *, key: jax.Array) -> None:
        keys = jax.random.split(key, 3)
        self.first = _Layer(before, width, stride=stride, key=keys[0])
        self.second = _Layer(width, width, rectified=False, key=keys[1])
        changed = before != width or stride > 1
        self.shortcut = _Layer(before, width, size=1, stride=stride, rectified=False, key=keys[2]) if changed else None

    def __call__(self, x: jax.Array) -> jax.Array:
        return jax.nn.relu(self.second(self.first(x)) + (x if self.shortcut is None else self.shortcut(x)))


class _Pooled(eqx.Module):
    """Layers, the mean over pixels, a linear layer."""

    layers: list[Any]
    readout: eqx.nn.Linear

    def __call__(self, x: jax.Array) -> jax.Array:
        for layer in self.layers:
            x = layer(x)
        return self.readout(jnp.mean(x, axis=(1, 2)))


def _widths(given: Sequence[int]) -> tuple[int, ...]:
    widths = tuple(whole("widths", width, least=2) for width in listed("widths", given, "numbers of channels"))
    if not widths:
        raise InputError("widths: expected at least one number of channels, got none")
    return widths
