"""Deep networks and their images; training them takes longer than a call may, and has tests of its own."""

from __future__ import annotations

import numpy as np

import overlaps as ov

from ..problems import QUIET, Case

PIXELS = np.zeros((4, 8, 8, 3), np.float32)
CASES: dict[str, Case] = {
    "Images": (
        ov.deep.Images,
        {"images": PIXELS, "labels": np.array([0, 0, 1, 1]), "names": ("a", "b"), "skipped": ()},
    ),
    "Images.select": (ov.deep.Images(PIXELS, np.array([0, 0, 1, 1]), ("a", "b")).select, {"names": ["a"]}),
    "Images.truncated": (ov.deep.Images(PIXELS, np.array([0, 0, 1, 1]), ("a", "b")).truncated, {"count": 1}),
    "Convolutional": (ov.deep.Convolutional, {"outputs": 4, "widths": (4, 4)}),
    "Residual": (ov.deep.Residual, {"outputs": 4, "widths": (4, 4), "blocks": (1, 1), "stem": 3}),
    "read_folder": (ov.deep.read_folder, {"path": "nothing", "size": 8, **QUIET}),
    "read_cars196": (ov.deep.read_cars196, {"path": "nothing", "size": 8, **QUIET}),
    "read_cub200": (ov.deep.read_cub200, {"path": "nothing", "size": 8, **QUIET}),
}
