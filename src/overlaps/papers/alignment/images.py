"""Images for setups 3 and 4: a user's folder, or the handwritten digits with their classes.

A folder is read as CARS196 or CUB200 if it holds their official files, as two sets if it has sub-folders ``cars196``
and ``cub200``, and as one sub-folder per class otherwise. Digits are not the paper's data: ten classes of 8 x 8 pixels,
five of which are seen and five unseen.
"""

from __future__ import annotations

from pathlib import Path

import overlaps as ov

PIXELS = 64  # height and width that photographs are read at


def image_sets(data: Path | None) -> dict[str, ov.deep.Images]:
    """Sets of images by name."""
    if data is None:
        return {"digits": ov.deep.digits()}
    pair = [data / name for name in ("cars196", "cub200")]
    return {folder.name: _read(folder) for folder in (pair if all(p.is_dir() for p in pair) else [data])}


def _read(folder: Path) -> ov.deep.Images:
    if (folder / "cars_annos.mat").is_file() or (folder / "devkit").is_dir():
        return ov.deep.read_cars196(folder, PIXELS)
    if (folder / "image_class_labels.txt").is_file():
        return ov.deep.read_cub200(folder, PIXELS)
    return ov.deep.read_folder(folder, PIXELS)
