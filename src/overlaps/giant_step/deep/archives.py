"""CARS196 and CUB200, as their authors distribute them, unpacked.

J. Krause, M. Stark, J. Deng and L. Fei-Fei, 3D object representations for fine-grained categorization (2013);
C. Wah, S. Branson, P. Welinder, P. Perona and S. Belongie, The Caltech-UCSD Birds-200-2011 dataset (2011).

Classes keep the order of their official numbers, so that `Images.split` gives the split of metric learning: the first
98 of 196 and the first 100 of 200 are seen.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...interface.errors import InputError, shown
from .images import Images, folder, read_files


def read_cub200(path: str | os.PathLike[str], size: int = 32, *, progress: bool = True) -> Images:
    """CUB200-2011: the folder CUB_200_2011 with images.txt, image_class_labels.txt, classes.txt and images/.

    Parameters
    ----------
    path: that folder.
    size, progress: as for `read_folder`.
    """
    root = folder("path", path)
    names, files, labels = (_lines(root / f"{n}.txt") for n in ("classes", "images", "image_class_labels"))
    if files.keys() != labels.keys():
        raise InputError(f"path: images.txt and image_class_labels.txt of {root} do not number the same images")
    try:
        rows = [(_inside(root / "images", file), int(labels[key])) for key, file in files.items()]
        numbered = {int(key): name for key, name in names.items()}
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"path: a class in {root} has no whole number ({error}); unpack the archive again") from None
    return _numbered(rows, numbered, size, progress)


def read_cars196(path: str | os.PathLike[str], size: int = 32, *, progress: bool = True) -> Images:
    """CARS196: cars_annos.mat with car_ims/, or devkit/ with cars_train/ and cars_test/.

    The second layout also needs cars_test_annos_withlabels.mat, in the folder itself or in devkit/.

    Parameters
    ----------
    path: the folder with these.
    size, progress: as for `read_folder`.
    """
    root = folder("path", path)
    if (root / "cars_annos.mat").is_file():
        names = _matlab(root / "cars_annos.mat", "class_names")
        rows = _rows(root / "cars_annos.mat", "relative_im_path", root)
    else:
        devkit, test = root / "devkit", "cars_test_annos_withlabels.mat"
        names = _matlab(devkit / "cars_meta.mat", "class_names")
        rows = _rows(devkit / "cars_train_annos.mat", "fname", root / "cars_train")
        rows += _rows(root / test if (root / test).is_file() else devkit / test, "fname", root / "cars_test")
    return _numbered(rows, {i: str(name) for i, name in enumerate(names, start=1)}, size, progress)


def _numbered(files: Sequence[tuple[Path, int]], names: dict[int, str], size: int, progress: bool) -> Images:
    """Images of files with official class numbers; a class lost would move the boundary of seen and unseen."""
    order = sorted(names)
    position = {number: i for i, number in enumerate(order)}
    stray = {number for _, number in files} - names.keys()
    if stray:
        raise InputError(f"path: images are of class {min(stray)}, which has no name among the {len(names)} classes")
    images = read_files([(file, position[n]) for file, n in files], [names[n] for n in order], size, progress=progress)
    if len(images.names) < len(names):
        lost = next(name for name in names.values() if name not in images.names)
        raise InputError(
            f"path: no image of class {lost!r} could be read, nor of {len(names) - len(images.names) - 1} others; "
            "unpack the archive again"
        )
    return images


def _lines(file: Path) -> dict[str, str]:
    """The second word of each line by the first."""
    _present(file)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"path: {file} cannot be read as text in UTF-8 ({error}); unpack the archive again") from None
    pairs = [line.split(maxsplit=1) for line in text.splitlines() if line.strip()]
    if not pairs or any(len(pair) < 2 for pair in pairs):
        raise InputError(f"path: expected lines of a number and a word in {file}")
    return {key: value.strip() for key, value in pairs}


def _rows(file: Path, path: str, root: Path) -> list[tuple[Path, int]]:
    """Images and class numbers in the annotations of a MATLAB file; `path` is the field with the path in `root`."""
    table = _matlab(file, "annotations")
    if not {path, "class"} <= set(table.dtype.names or ()):
        raise InputError(f"path: expected annotations with {path} and class in {file}, got {table.dtype.names}")
    try:
        return [(_inside(root, str(row[path])), int(row["class"])) for row in table]
    except (TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"path: a class in {file} is no whole number ({error}); unpack the archive again") from None


def _inside(root: Path, name: str) -> Path:
    """The file that a list names, which must be in the folder that the list is about."""
    if "\0" in name or not (root / name).resolve().is_relative_to(root.resolve()):
        raise InputError(f"path: expected files in {root}, a list names {shown(name)}; unpack the archive again")
    return root / name


def _matlab(file: Path, name: str) -> NDArray[Any]:
    """The array of this name in a MATLAB file."""
    from scipy.io import loadmat

    _present(file)
    try:
        return np.atleast_1d(loadmat(file, squeeze_me=True)[name])
    except Exception as error:  # the reader raises whatever a broken file leads it to
        raise InputError(f"path: {file} is not a MATLAB file with {name} ({error}); unpack the archive again") from None


def _present(file: Path) -> None:
    if not file.is_file():
        raise InputError(f"path: expected the file {file}, which is not there; unpack the official archive")
