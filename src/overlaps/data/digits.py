"""Handwritten digits: 1797 images of 8 × 8 pixels with values 0 to 16, a small real data set to try things on.

E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository (1998),
doi:10.24432/C50P49, under the licence CC BY 4.0; here its test set, unchanged, one image per row.

>>> from overlaps.data.digits import digits
>>> digits().shape
(1797, 64)
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PATH = Path(__file__).with_name("digits.npz")


def digits() -> NDArray[np.uint8]:
    """The images, (1797, 64)."""
    with np.load(PATH) as archive:
        return archive["X"]


def digit_labels() -> NDArray[np.uint8]:
    """Which digits they show, (1797,)."""
    with np.load(PATH) as archive:
        return archive["y"]
