"""Setups 3 and 4: deep networks trained on images, each once for the figures, tables and claims that share it.

In print setup 3 is a ResNet18 with d = N = 2048, 48 images of a class, Adam at rate .001 for 20 epochs, and setup 4 a
ResNet50, normalised softmax, batches of 3 x 25 images, 30 epochs, both with four seeds. Networks here are residual ones
of three stages with 256 outputs in setup 3 and 64 in setup 4, trained from random weights.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import xarray as xr

import overlaps as ov

from .images import image_sets


class Training(NamedTuple):
    """Epochs and runs, images of a class at most, channels of the stages, and outputs of the network."""

    epochs: int
    runs: int
    images: int
    widths: tuple[int, ...]
    outputs: int

    @classmethod
    def pair(cls, quick: bool) -> Training:
        """Of setup 3."""
        return cls(10, 4, 48, (16, 32), 256) if quick else cls(20, 4, 48, (16, 32, 64), 256)

    @classmethod
    def metric(cls, quick: bool) -> Training:
        """Of setup 4."""
        return cls(4, 4, 40, (8, 16), 32) if quick else cls(30, 4, 1000, (16, 32, 64), 64)

    @property
    def network(self) -> ov.deep.Residual:
        """A block in each stage."""
        return ov.deep.Residual(self.outputs, self.widths, tuple(1 for _ in self.widths))

    def note(self, name: str) -> str:
        """What a figure or table is made with."""
        text = f"{name}: residual network of {len(self.widths)} stages, {self.outputs} outputs, {self.epochs} epochs, "
        return text + f"{self.runs} runs, at most {self.images} images of a class"


@cache
def pairs(quick: bool, data: Path | None) -> dict[str, xr.Dataset]:
    """Setup 3 for each set as the one trained on: two of its seen classes, and unseen ones of every set."""
    chosen = Training.pair(quick)
    split = {name: images.split() for name, images in image_sets(data).items()}
    unseen = {name: held for name, (_, held) in split.items()}
    return {
        name: ov.deep.train_pair(
            train,
            unseen,
            chosen.network,
            units=chosen.outputs,
            images=chosen.images,
            epochs=chosen.epochs,
            runs=chosen.runs,
            progress=not quick,
        ).data
        for name, (train, _) in split.items()
    }


@cache
def metrics(quick: bool, data: Path | None) -> dict[str, xr.Dataset]:
    """Setup 4 for each set: its first classes are seen, the others unseen."""
    chosen = Training.metric(quick)
    found = {}
    for name, images in image_sets(data).items():
        train, unseen = images.truncated(chosen.images).split()
        rate = 0.01 if name == "cars196" else 0.001
        found[name] = ov.deep.train_metric(
            train, unseen, chosen.network, rate=rate, epochs=chosen.epochs, runs=chosen.runs, progress=not quick
        ).data
    return found
