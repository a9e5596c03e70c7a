"""Reading images: nothing is lost silently, and official archives give the official classes."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from overlaps.giant_step.deep import Images, read_cars196, read_cub200, read_folder
from overlaps.interface.errors import InputError


def write(file: Path, colour: tuple[int, int, int], shape: tuple[int, int] = (6, 4)) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", shape, colour).save(file)


def test_folder(tmp_path: Path) -> None:
    write(tmp_path / "red" / "a.png", (255, 0, 0))
    write(tmp_path / "red" / "deeper" / "b.png", (127, 0, 0))
    write(tmp_path / "blue" / "c.png", (0, 0, 255))
    images = read_folder(tmp_path, size=4)
    assert images.names == ("blue", "red")
    assert images.images.shape == (3, 4, 4, 3)
    assert images.labels.tolist() == [0, 1, 1]
    np.testing.assert_allclose(images.images[:, 0, 0], [[0, 0, 1], [1, 0, 0], [127 / 255, 0, 0]], atol=1e-6)


def test_middle_of_a_photograph(tmp_path: Path) -> None:
    """A wide picture is cut left and right, not squeezed."""
    pixels = np.zeros((8, 24, 3), np.uint8)
    pixels[:, 8:16] = 255
    (tmp_path / "only").mkdir()
    Image.fromarray(pixels).save(tmp_path / "only" / "wide.png")
    assert read_folder(tmp_path, size=8).images.min() == 1


def test_unreadable_files_are_counted(tmp_path: Path) -> None:
    write(tmp_path / "good" / "a.png", (1, 2, 3))
    write(tmp_path / "good" / "cut.png", (9, 9, 9), (200, 200))
    whole = (tmp_path / "good" / "cut.png").read_bytes()
    (tmp_path / "good" / "cut.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "good" / "words.jpg").write_text("not an image")
    (tmp_path / "good" / ".hidden").write_text("not looked at")
    (tmp_path / "bad").mkdir()
    (tmp_path / "loose.png").write_text("")
    with pytest.warns(UserWarning, match=r"4 files or classes are left out, beside 1 images: loose.png, cut.png"):
        images = read_folder(tmp_path)
    assert images.names == ("good",)
    assert [Path(file).name for file, _ in images.skipped] == ["loose.png", "cut.png", "words.jpg", "bad"]
    assert all(reason for _, reason in images.skipped)
    assert "4 files skipped" in repr(images)


def test_folders_that_may_not_be_read_are_left_out_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As below the root of a disk; nor is a pipe opened, which would wait for somebody to write into it."""
    write(tmp_path / "good" / "a.png", (1, 2, 3))
    write(tmp_path / "good" / "closed" / "b.png", (4, 5, 6))
    os.mkfifo(tmp_path / "good" / "pipe.png")
    scandir = os.scandir

    def guarded(path: str | Path) -> Any:
        if Path(path).name == closed:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    closed = "closed"
    with pytest.warns(UserWarning, match="1 files or classes are left out, beside 1 images: closed"):
        images = read_folder(tmp_path)
    assert images.skipped == ((str(tmp_path / "good" / "closed"), "cannot be read (Permission denied)"),)
    closed = tmp_path.name
    with pytest.raises(InputError, match=r"path: the folder .* cannot be read \(Permission denied\)"):
        read_folder(tmp_path)


def test_nothing_readable(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="path: expected a folder"):
        read_folder(tmp_path / "none")
    with pytest.raises(InputError, match="path: expected one sub-folder per class"):
        read_folder(tmp_path)
    (tmp_path / "a").mkdir()
    with pytest.raises(InputError, match="path: none of 0 files"):
        read_folder(tmp_path)
    (tmp_path / "a" / "words.png").write_text("not an image")
    with pytest.raises(InputError, match=r"path: none of 1 files .*words\.png \(UnidentifiedImageError"):
        read_folder(tmp_path)


def test_cub200(tmp_path: Path) -> None:
    kinds = ["001.Auk", "002.Bunting", "003.Catbird", "010.Jay"]
    files = [f"{kind}/{i}.jpg" for kind in kinds for i in range(2)]
    for i, file in enumerate(files):
        write(tmp_path / "images" / file, (20 * i, 0, 0))
    (tmp_path / "images.txt").write_text("".join(f"{i} {file}\n" for i, file in enumerate(files, 1)))
    (tmp_path / "image_class_labels.txt").write_text("".join(f"{i} {(i + 1) // 2}\n" for i in range(1, 9)))
    with pytest.raises(InputError, match=r"path: expected the file .*classes\.txt"):
        read_cub200(tmp_path)
    (tmp_path / "classes.txt").write_text("".join(f"{i} {kind}\n" for i, kind in enumerate(kinds, 1)))
    images = read_cub200(tmp_path, size=5)
    assert images.images.shape == (8, 5, 5, 3)
    seen, unseen = images.split()
    assert (seen.names, unseen.names) == (tuple(kinds[:2]), tuple(kinds[2:]))
    np.testing.assert_allclose(unseen.images[:, 0, 0, 0] * 255, [80, 100, 120, 140], atol=2)
    for file in files[2:4]:
        (tmp_path / "images" / file).write_text("broken")
    with (
        pytest.warns(UserWarning, match="left out"),
        pytest.raises(InputError, match=r"no image of class '002\.Bunting'"),
    ):
        read_cub200(tmp_path)


def annotations(rows: list[dict[str, Any]]) -> np.ndarray:
    table = np.empty((1, len(rows)), [(name, object) for name in rows[0]])
    for i, row in enumerate(rows):
        table[0, i] = tuple(row.values())
    return table


def test_cars196(tmp_path: Path) -> None:
    names = np.array([["Acura 2012", "BMW 2010"]], object)
    one = tmp_path / "one"
    for i in range(4):
        write(one / "car_ims" / f"{i}.jpg", (0, 50 * i, 0))
    rows = [{"relative_im_path": f"car_ims/{i}.jpg", "class": 2 - i % 2, "test": i % 2} for i in range(4)]
    savemat(str(one / "cars_annos.mat"), {"annotations": annotations(rows), "class_names": names})
    images = read_cars196(one, size=3)
    assert images.names == ("Acura 2012", "BMW 2010")
    assert images.labels.tolist() == [1, 0, 1, 0]
    two = tmp_path / "two"
    for part in ("train", "test"):
        for i in range(2):
            write(two / f"cars_{part}" / f"{i}.jpg", (0, 0, 0) if part == "train" else (255, 255, 255))
    (two / "devkit").mkdir()
    savemat(str(two / "devkit" / "cars_meta.mat"), {"class_names": names})
    rows = [{"bbox_x1": 0, "class": i + 1, "fname": f"{i}.jpg"} for i in range(2)]
    savemat(str(two / "devkit" / "cars_train_annos.mat"), {"annotations": annotations(rows)})
    with pytest.raises(InputError, match=r"cars_test_annos_withlabels\.mat"):
        read_cars196(two)
    savemat(str(two / "cars_test_annos_withlabels.mat"), {"annotations": annotations(rows)})
    images = read_cars196(two, size=3)
    assert images.labels.tolist() == [0, 1, 0, 1]
    np.testing.assert_allclose(images.images.mean((1, 2, 3)), [0, 0, 1, 1], atol=0.02)


def test_arrays() -> None:
    pixels = np.arange(3 * 4 * 5, dtype=np.uint8).reshape(3, 4, 5)
    images = Images.from_arrays(pixels, ["b", "a", "b"])
    np.testing.assert_allclose(images.images[..., 0], pixels / 255, atol=1e-7)
    assert images.select(["b"]).images.shape == (2, 4, 5, 1)
    assert images.truncated(1).labels.tolist() == [1, 0]
    assert Images.from_arrays(pixels, [3, 4, 3], names=["three", "four"]).names == ("three", "four")


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (np.zeros((2, 3)), [0, 1], r"images: expected shape \(n, height, width, channels\), got \(2, 3\)"),
        (np.full((2, 3, 3), 16.0), [0, 1], "images: expected values from 0 to 1.*divide by 16"),
        (np.full((2, 3, 3), np.nan), [0, 1], "images: .* not finite"),
        (np.zeros((2, 3, 3), complex), [0, 1], "images: expected an array of numbers"),
        (np.zeros((2, 3, 3)), [0, 1, 2], "labels: expected one for each of 2 images"),
    ],
)
def test_refused_arrays(images: Any, labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Images.from_arrays(images, labels)


def test_images_need_no_networks() -> None:
    """Reading does not load JAX; asking for a network where it is not installed says what to install."""
    code = (
        "import sys; import overlaps, overlaps.giant_step.deep.images, overlaps.giant_step.deep as deep; "
        "assert not {'jax', 'equinox', 'optax'} & set(sys.modules); sys.modules['jax'] = None\n"
        "try: deep.Residual\nexcept overlaps.InputError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'overlaps[deep]'" in done.stdout
