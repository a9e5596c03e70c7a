"""Setups 1 and 2: scores of unseen classes after the step, measured and predicted, each computed once.

Unseen classes are projected Gaussians around ν = e v (setup 1) or R v (setup 2). Training sets, weights, heads and
points are drawn anew in every run. Theory depends on a rotation through v·Rv alone, so that of setup 2 is a curve: ν
turned by angles from 0 to 90 degrees in one plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import xarray as xr

import overlaps as ov

from .model import EXPONENT, Scale, setting

SCORES = ("alignment", "elasticity")
KEPT = {
    "beta_mu": "train-unseen similarity β·μ",
    "alignment": "alignment",
    "elasticity": "elasticity",
    "recall": "Recall@1 after the step",
    "recall_before": "Recall@1 before the step",
    "recall_inner": "Recall@1 by inner product after the step",
    "recall_inner_before": "Recall@1 by inner product before the step",
}


@cache
def setup1(kind: str, quick: bool, step: float = EXPONENT) -> xr.Dataset:
    """Scores against the scale e: (run, unseen) measured, and (curve,) predicted for the same classes."""
    scale = Scale.of(quick, step)
    task = setting(kind, scale.size, exponent=scale.step)
    unseen = ov.giant_step.scaled(task.direction, scale.e)
    return _scored(task, unseen, unseen, scale, "e", seed=1)


@cache
def setup1_line(kind: str, quick: bool, step: float = EXPONENT) -> xr.Dataset:
    """Theory of setup 1 on a fine grid of scales e on both sides of zero, with the small ones, for lines of figures."""
    scale = Scale.of(quick, step)
    task = setting(kind, scale.size, exponent=scale.step)
    even, small = np.linspace(0.05, 0.9, 12), np.geomspace(1e-4, 0.03, 6)
    e = np.concatenate([-even[::-1], -small[::-1], small, even])
    theory = ov.giant_step.solve(task, ov.giant_step.scaled(task.direction, e), progress=not quick).data.isel(run=0)
    found = {
        f"line_{name}": ("line", theory[name].values, {"long_name": f"{KEPT[name]}, theory on a fine grid"})
        for name in SCORES
    }
    return xr.Dataset(found, {"line_e": ("line", e, {"long_name": "scale e of the fine grid"})})


def setup1_drawn(kind: str, quick: bool, step: float = EXPONENT) -> xr.Dataset:
    """Setup 1 with its lines."""
    return setup1(kind, quick, step).merge(setup1_line(kind, quick, step), combine_attrs="override")


def setup2(kind: str, quick: bool, step: float = EXPONENT) -> xr.Dataset:
    """Scores against the size of a rotation, with those of figures."""
    return rotations(kind, Scale.of(quick, step))


@cache
def rotations(kind: str, scale: Scale) -> xr.Dataset:
    """Scores against the size c of a rotation, and predicted ones against the angle."""
    task = setting(kind, scale.size, exponent=scale.step)
    v = task.direction
    beside = np.zeros(v.size)
    beside[:2] = np.sqrt(v @ v / 2) * np.array([1, -1])  # orthogonal to v, of its length
    angles = np.radians(np.linspace(0, 90, 7 if scale == Scale.of(True, scale.step) else 31))
    curve = [ov.giant_step.UnseenClass(np.cos(t) * v + np.sin(t) * beside, value=t) for t in angles]
    unseen = ov.giant_step.rotated(v, scale.c, seed=2)
    return _scored(task, unseen, curve, scale, "c", seed=2)


def _scored(
    task: ov.giant_step.GiantStepSetting,
    unseen: Sequence[ov.giant_step.UnseenClass],
    curve: Sequence[ov.giant_step.UnseenClass],
    scale: Scale,
    name: str,
    seed: int,
) -> xr.Dataset:
    root = np.sqrt(task.count[2])
    long = scale == Scale.of(False, scale.step)
    runs = ov.giant_step.train(task, unseen, scale.runs, scale.points, seed, progress=long).data
    runs = runs.assign(beta_mu=runs["similarity"] / root)
    found = {key: (("run", "unseen"), runs[key].values, {"long_name": text}) for key, text in KEPT.items()}
    if curve:
        theory = ov.giant_step.solve(task, curve, progress=long).data.isel(run=0)
        theory = theory.assign(beta_mu=theory["similarity"] / root)
        found |= {
            f"theory_{key}": ("curve", theory[key].values, {"long_name": f"{KEPT[key]}, theory"})
            for key in ("beta_mu", *SCORES)
        }
    axis = ("unseen", runs["value"].values, {"long_name": {"e": "scale e", "c": "size of the rotation"}[name]})
    return xr.Dataset(found, {name: axis}, {"parameters": scale.note()})
