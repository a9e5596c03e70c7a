"""Images with classes: from arrays, or from a folder with one sub-folder per class.

Photographs are cut to the largest square in their middle and scaled to `size` x `size` pixels. A file that cannot be
read is left out, named in `Images.skipped` and counted in a warning.

>>> from overlaps.giant_step.deep.images import Images
>>> images = Images.from_arrays([[[0, 255]], [[255, 0]], [[128, 128]], [[0, 0]]], [7, 3, 7, 5])
Traceback (most recent call last):
...
overlaps.InputError: images: expected values from 0 to 1, or bytes (dtype uint8), got 0 to 255; divide by 255
>>> import numpy as np
>>> images = Images.from_arrays(np.zeros((4, 8, 8), np.uint8), [7, 3, 7, 5])
>>> images.names, images.labels.tolist(), images.counts.tolist()
(('3', '5', '7'), [2, 0, 2, 1], [1, 1, 2])
>>> seen, unseen = images.split()
>>> seen.names, unseen.names
(('3',), ('5', '7'))
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...data.digits import digit_labels
from ...data.digits import digits as pixels
from ...interface.checks import listed, numbers, path_to, whole
from ...interface.errors import InputError, shown, unknown
from ...interface.progress import along


@dataclass(frozen=True, eq=False)
class Images:
    """Images of one size, each of a class.

    Parameters
    ----------
    images: (n, height, width, channels), float32 from 0 to 1.
    labels: (n,), the class of each, from 0 to the number of classes less one.
    names: of the classes, in the order of their labels.
    skipped: what could not be read, as pairs of a path and a reason.
    """

    images: NDArray[np.float32]
    labels: NDArray[np.int64]
    names: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for name, of in (("names", "text"), ("skipped", "pairs of a file and a reason")):
            object.__setattr__(self, name, tuple(listed(name, getattr(self, name), of)))
        if not all(isinstance(name, str) for name in self.names):
            raise InputError(f"names: expected text, got {shown(self.names)}")
        if not all(isinstance(pair, tuple) and len(pair) == 2 for pair in self.skipped):
            raise InputError(f"skipped: expected pairs of a file and a reason, got {shown(self.skipped)}")
        shape = numbers("images", self.images).shape
        numbers("labels", self.labels)
        if len(shape) != 4 or 0 in shape:
            raise InputError(f"images: expected shape (n, height, width, channels), got {shape}")
        low, high = float(np.min(self.images)), float(np.max(self.images))
        if not 0 <= low <= high <= 1:
            hint = (
                "remove entries that are not finite"
                if not np.isfinite([low, high]).all()
                else "scale them"
                if low < 0
                else f"divide by {high:g}"
            )
            raise InputError(
                f"images: expected values from 0 to 1, or bytes (dtype uint8), got {low:g} to {high:g}; {hint}"
            )
        if np.shape(self.labels) != shape[:1]:
            raise InputError(f"labels: expected one for each of {shape[0]} images, got shape {np.shape(self.labels)}")
        if len(set(self.names)) < len(self.names):
            raise InputError(f"names: expected different ones, got {shown(self.names)}; merge classes of one name")
        if not np.array_equal(np.unique(self.labels), np.arange(len(self.names))):
            raise InputError(
                f"labels: expected 0 to {len(self.names) - 1}, one for each name and all used, got "
                f"{np.unique(self.labels)!r:.80}; use Images.from_arrays for any other labels"
            )
        object.__setattr__(self, "images", np.asarray(self.images, np.float32))
        object.__setattr__(self, "labels", np.asarray(self.labels, np.int64))

    @classmethod
    def from_arrays(cls, images: ArrayLike, labels: ArrayLike, names: Sequence[str] | None = None) -> Images:
        """Images of your own.

        Parameters
        ----------
        images: (n, height, width) or (n, height, width, channels); bytes (uint8), or numbers from 0 to 1.
        labels: (n,), of any type that can be sorted.
        names: of the classes, in the sorted order of their labels; the labels themselves by default.
        """
        pixels, given = np.asarray(images), np.asarray(labels)
        if pixels.dtype.kind not in "buif":
            raise InputError(f"images: expected an array of numbers, got dtype {pixels.dtype}")
        if given.ndim != 1:
            raise InputError(f"labels: expected one for each image, got shape {given.shape}")
        if pixels.ndim == 3:
            pixels = pixels[..., None]
        scale = 255 if pixels.dtype == np.uint8 else 1
        kinds, positions = np.unique(given, return_inverse=True)
        if names is not None and len(names) != kinds.size:
            raise InputError(f"names: expected {kinds.size}, one for each class, got {len(names)}")
        return cls(
            np.asarray(pixels, np.float32) / np.float32(scale),
            positions,
            tuple(str(name) for name in (kinds if names is None else names)),
        )

    @property
    def counts(self) -> NDArray[np.int64]:
        """Images of each class, (classes,)."""
        return np.bincount(self.labels, minlength=len(self.names))

    def select(self, names: Sequence[str]) -> Images:
        """The images of some classes, which are numbered in the order given."""
        if isinstance(names, str):
            raise InputError(f"names: expected a list of classes, got {shown(names)}; use [{names!r}]")
        names = listed("names", names, "classes")
        if not names:
            raise InputError("names: expected at least one class, got none")
        for name in names:
            if not isinstance(name, str) or name not in self.names:
                raise unknown("class", name, self.names)
        number = np.full(len(self.names), -1)
        number[[self.names.index(name) for name in names]] = np.arange(len(names))
        mine = number[self.labels] >= 0
        return replace(self, images=self.images[mine], labels=number[self.labels[mine]], names=tuple(names))

    def split(self, seen: int | None = None) -> tuple[Images, Images]:
        """The first `seen` classes and the others; the first half of them by default, as in metric learning."""
        if len(self.names) < 2:
            raise InputError(f"split: expected at least two classes, got {len(self.names)}")
        count = whole("seen", len(self.names) // 2 if seen is None else seen, least=1, most=len(self.names) - 1)
        return self.select(self.names[:count]), self.select(self.names[count:])

    def truncated(self, count: int) -> Images:
        """The first `count` images of every class, or all of a class that has fewer."""
        count = whole("count", count, least=1)
        first = [np.flatnonzero(self.labels == c)[:count] for c in range(len(self.names))]
        kept = np.sort(np.concatenate(first))
        return replace(self, images=self.images[kept], labels=self.labels[kept])

    def __repr__(self) -> str:
        n, height, width, channels = self.images.shape
        low, high = self.counts.min(), self.counts.max()
        count = f"{low} images each" if low == high else f"{low} to {high} images"
        text = f"Images({n} images of {height} x {width} x {channels}, {len(self.names)} classes with {count}"
        return text + f", {len(self.skipped)} files skipped" * bool(self.skipped) + ")"


def digits() -> Images:
    """The handwritten digits of `overlaps.digits` with their classes "0" to "9", 8 × 8 pixels: something to try on."""
    return Images.from_arrays(pixels().reshape(-1, 8, 8) / 16, digit_labels().astype(str))


def read_folder(path: str | os.PathLike[str], size: int = 32, *, progress: bool = True) -> Images:
    """Images in a folder with one sub-folder per class, whose name is that of the class.

    Parameters
    ----------
    path: the folder. Files of any format known to Pillow, at any depth in a sub-folder; hidden files are ignored.
    size: height and width in pixels.
    progress: show a bar on a terminal.
    """
    root, side = folder("path", path), whole("size", size, least=1, most=4096)
    try:
        entries = sorted((e for e in os.scandir(root) if not e.name.startswith(".")), key=lambda e: e.name)
    except OSError as error:
        raise InputError(f"path: the folder {shown(root)} cannot be read ({error.strerror})") from None
    classes = [entry for entry in entries if entry.is_dir()]
    if not classes:
        raise InputError(f"path: expected one sub-folder per class in {root}, got none; put images into sub-folders")
    left_out = [(entry.path, "in no sub-folder of a class") for entry in entries if not entry.is_dir()]
    files = [(file, c) for c, entry in enumerate(classes) for file in _files_below(entry.path, left_out)]
    return read_files(files, [entry.name for entry in classes], side, left_out, progress=progress)


def _files_below(folder: str, left_out: list[tuple[str, str]]) -> list[Path]:
    """Files at any depth, sorted; none that is hidden, nor those in hidden folders, such as .ipynb_checkpoints.

    left_out: takes folders that cannot be read.
    """

    def note(error: OSError) -> None:
        left_out.append((str(error.filename), f"cannot be read ({error.strerror})"))

    found: list[Path] = []
    for where, folders, names in os.walk(folder, onerror=note):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += (Path(where, name) for name in names if not name.startswith("."))
    return sorted(path for path in found if os.path.isfile(path))  # no pipes and devices, which may never end


def folder(name: str, path: str | os.PathLike[str]) -> Path:
    """`path` as a folder that is there."""
    root = path_to(name, path)
    try:
        there = root.is_dir()
    except OSError as error:  # a name that is too long
        raise InputError(f"{name}: cannot open the folder {shown(root)} ({error.strerror})") from None
    if not there:
        raise InputError(
            f"{name}: expected a folder, got {root}, which is {'a file' if root.exists() else 'not there'}"
        )
    return root


def read_files(
    files: Sequence[tuple[Path, int]],
    names: Sequence[str],
    size: int,
    skipped: Sequence[tuple[str, str]] = (),
    *,
    progress: bool,
) -> Images:
    """Images of the files (path, class); what cannot be read joins `skipped`, which a warning lists.

    Classes without a readable image are left out.
    """
    side = whole("size", size, least=1, most=4096)
    try:
        pixels = np.empty((len(files), side, side, 3), np.float32)
    except MemoryError:
        amount = len(files) * side**2 * 12e-9
        raise InputError(
            f"size: {len(files)} images of {side} pixels are {amount:.0f} GB; use a smaller size"
        ) from None
    labels = []
    left_out = list(skipped)
    for file, label in along(files, "images", "file", shown=progress):
        try:
            pixels[len(labels)] = _pixels(file, side)
        except Exception as error:  # decoders raise whatever a broken file leads them to
            left_out.append((str(file), f"{type(error).__name__}: {error}"))
        else:
            labels.append(label)
    if not labels:
        reason = f"the first: {left_out[0][0]} ({left_out[0][1]})" if left_out else "there are no files"
        raise InputError(f"path: none of {len(files)} files could be read as an image; {reason}")
    kept, positions = np.unique(labels, return_inverse=True)
    left_out += [(name, "no image could be read") for c, name in enumerate(names) if c not in kept]
    if left_out:
        first = ", ".join(Path(file).name for file, _ in left_out[:3])
        warnings.warn(
            f"{len(left_out)} files or classes are left out, beside {len(labels)} images: {first}"
            f"{', ...' * (len(left_out) > 3)}; their names and the reasons are in .skipped",
            stacklevel=3,
        )
    return Images(
        pixels[: len(labels)], positions, tuple(name for c, name in enumerate(names) if c in kept), tuple(left_out)
    )


def _pixels(file: Path, side: int) -> NDArray[np.float32]:
    from PIL import Image, ImageOps

    with Image.open(file) as opened:
        upright = ImageOps.exif_transpose(opened)
        if upright.mode.startswith("I;16"):  # Pillow clips 16 bits at 255 rather than scale them
            upright = Image.fromarray((np.asarray(upright) >> 8).astype(np.uint8))
        elif upright.mode in ("I", "F"):
            raise ValueError(f"pixels of Pillow's mode {upright.mode} have no known range; save with 8 or 16 bits")
        upright = upright.convert("RGB")
        return np.asarray(ImageOps.fit(upright, (side, side)), np.float32) / np.float32(255)
