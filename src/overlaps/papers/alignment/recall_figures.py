"""Recall@1 of an unseen class against its mirror image, before and after the step: figures K.4 and K.5."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from ..panels import panels, titled
from .curves import all_sets, joined, recall
from .model import EXPONENT, KINDS, NAMES, STEPS
from .paper import PAPER
from .setups import setup1, setup2

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def rows(quick: bool, step: float, name: str) -> tuple[Figure, xr.Dataset]:
    """Rows: training sets. Columns: setup 1 on a logarithmic axis, and setup 2."""
    figure, axes = panels(len(KINDS), 2)
    both = []
    for i, of in enumerate((setup1, setup2)):
        parts, data = all_sets(of, quick, step)
        for ax, (kind, part) in zip(axes[i::2], parts.items(), strict=True):
            recall(ax, part, f"{NAMES[kind]}, setup {i + 1}", name, logarithmic=i == 0)
        kept = data[[f"{kind}_{each}" for kind in KINDS for each in ("beta_mu", name, f"{name}_before")]]
        both.append(kept.rename({str(key): f"setup{i + 1}_{key}" for key in (*kept.data_vars, "unseen")}))
    merged = joined(both)
    return titled(figure, merged.attrs["parameters"]), merged


@PAPER.figure(
    "figK4",
    "Recall@1 before and after the step, all training sets: setup 1 (β·μ > 0, logarithmic) and setup 2",
    claims=("recall-phases", "recall-rotations"),
    limits=STEPS,
)
def figK4(quick: bool, *, step: float = EXPONENT) -> tuple[Figure, xr.Dataset]:
    """By cosine similarity."""
    return rows(quick, step, "recall")


@PAPER.figure(
    "figK5",
    "figure K.4 by inner product in place of the cosine",
    claims=("recall-phases", "recall-rotations"),
    limits=STEPS,
)
def figK5(quick: bool, *, step: float = EXPONENT) -> tuple[Figure, xr.Dataset]:
    """By inner product; print has setup 1 only."""
    return rows(quick, step, "recall_inner")
