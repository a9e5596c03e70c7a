"""Orders of rows whose first part, however long, holds every class in its share: to train on, or to hold out.

Rows are shuffled, and the i-th of the n_c rows of class c then goes to the place (i + u_c)/n_c of the whole, so that
the first k of n rows have k n_c/n of them, within one. With u_c uniform between 0 and 1 that number is right on average
over shuffles; it is kept a twentieth from either end, so that of five rows one is among the last fifth.

>>> import numpy as np
>>> classes = np.repeat([0, 1], [95, 5])
>>> order = shuffled(np.random.default_rng(0), 100, classes)
>>> np.bincount(classes[order[:80]]).tolist()
[76, 4]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


def shuffled(rng: np.random.Generator, count: int, classes: Numbers | None = None) -> Numbers:
    """Numbers of `count` rows in a random order, spread evenly over it within each of the classes (count,)."""
    order = rng.permutation(count)
    if classes is None:
        return order
    places = np.empty(count)
    for c in np.unique(classes):
        mine = np.flatnonzero(classes[order] == c)
        places[mine] = (np.arange(mine.size) + rng.uniform(0.05, 0.95)) / mine.size
    return order[np.argsort(places, kind="stable")]
