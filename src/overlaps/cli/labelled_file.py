"""The labelled rows that `overlaps learn` reads from a file: target, groups and options as `Samples` has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..data import Samples
from ..data.columns import columns_of
from ..data.labels import quantities, split
from ..interface.errors import InputError, shown


def rows_of(file: Path, target: str, groups: str | None, regression: bool, **options: Any) -> Samples:
    """The rows of a file with their labels.

    target: the column of the labels, by its name or number.
    groups: a number of clusters in each class, ``auto``, or the name of a column that holds the group of each row and
        is not learned from. Columns without a name are no groups, since their numbers are those of clusters.
    regression: whether the labels are quantities.
    """
    if regression:
        if groups is not None:
            raise InputError("groups: they are parts of classes, and labels are quantities; leave one of both out")
        features, labels, _ = split(file, None, target)
        return Samples(features, quantities(labels), **options)
    if groups is None or groups == "auto" or groups.lstrip("-").isdigit():
        way: Any = int(groups) if groups is not None and groups != "auto" else groups
        return Samples(file, target=target, groups=way, **options)
    table = columns_of(file)
    if table.names is None or table.names.count(groups) != 1:
        known = "none has a name" if table.names is None else f"columns: {', '.join(table.names[:12])}"
        raise InputError(
            f"groups: expected a number of clusters, auto, or the name of one column, got {shown(groups)} ({known})"
        )
    place = table.names.index(groups)
    counted = target not in table.names and target.lstrip("-").isdigit()
    column: Any = int(target) if counted else target
    if isinstance(column, int) and column < 0:
        column += len(table)
    if column in (groups, place):
        raise InputError(f"groups: column {groups} is the target, whose parts they are to be; name another column")
    kept = table.table.iloc[:, [i for i in range(len(table)) if i != place]]
    if isinstance(column, int) and column > place:
        column -= 1  # counted in the whole table
    return Samples(kept, target=column, groups=np.asarray(table.column(place)), **options)
