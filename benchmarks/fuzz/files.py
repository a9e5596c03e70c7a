"""Saved files with bits flipped, or cut short: told, or loaded as they were written."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import overlaps as ov

from .answers import Found, judged
from .problems import TIMES, P


def fuzz_files(count: int, seed: int = 0) -> Found:
    """Half of them a saved trajectory, half a cell of a store."""
    rng, found = np.random.default_rng(seed), Found()
    kept = ov.sample(P, ov.draw(P, 20, seed=1), TIMES, runs=3, progress=False)
    with tempfile.TemporaryDirectory() as folder:
        saved = kept.save(Path(folder) / "a.nc")
        swept = ov.sweep(P, {"size": [20]}, times=TIMES, scales="meso", store=f"{folder}/store", progress=False)
        (cell,) = Path(folder).glob("store/cells/??/*.npz")
        cases = [(path, path.read_bytes(), ov.load(path).data) for path in (saved, cell)]
        assert swept.counts == {"done": 1}
        for i in range(count):
            path, content, data = cases[i % 2]
            damaged, place = bytearray(content), int(rng.integers(len(content)))
            if i % 5:
                damaged[place] ^= 1 << int(rng.integers(8))
            else:
                del damaged[place:]
            path.write_bytes(damaged)

            def same(path: Path = path, data: Any = data) -> None:
                if not ov.load(path).data.identical(data):
                    raise AssertionError("other numbers in silence")

            judged(found, "load", same, f"{path.suffix} {'flip' if i % 5 else 'cut'} at {place}", replaced=["load"])
    return found
