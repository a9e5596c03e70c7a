"""Second moments of a table of samples, in one pass over blocks of rows, and their principal axes.

With n rows of mean m and scatter S = Σ (x − m)(x − m)ᵀ, a block of k rows of mean m' and scatter S' is merged by

    S ← S + S' + (n k/(n + k)) (m' − m)(m' − m)ᵀ,        m ← m + (k/(n + k)) (m' − m),

which subtracts no large numbers from each other (T. F. Chan, G. H. Golub and R. J. LeVeque, The American Statistician
37, 242 (1983)). Memory: columns² and a block. The covariance is C = S/n, about zero instead of the mean C = S/n + m mᵀ,
and its eigenvalues are given in units of their mean, so that inputs in these units have |x|² = N on average. A bias is
one more column, whose mean is not subtracted and which is one in these units.

>>> import numpy as np
>>> from overlaps.data.covariance import principal_axes
>>> axes = principal_axes(np.array([[3.0, 1.0], [-3.0, 1.0], [3.0, -1.0], [-3.0, -1.0]]))
>>> axes.eigenvalues.tolist(), axes.unit
([1.8, 0.2], 5.0)
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..interface.errors import InputError, shown
from .table import Source, blocks, count_header

Array = NDArray[np.float64]
MOST_COLUMNS = 20_000  # 3.2 GB of covariance, and as much again to diagonalise it


@dataclass(frozen=True, eq=False)
class PrincipalAxes:
    """Eigenvalues and eigenvectors of the covariance of a table, for the columns that carry signal.

    Attributes
    ----------
    eigenvalues: (N,), descending, mean one; below rounding they are zero.
    vectors: (N, N), one axis per column.
    centre: (N,), what is subtracted from the rows: their mean, or zero.
    scale: (N,), what the columns are divided by before anything else: their standard deviations, or one.
    kept: (columns,), which columns of the table are among the N.
    unit: mean eigenvalue of the covariance itself.
    count: number of samples.
    digest: SHA-256 of the table as doubles, whatever its source.
    source: in words, what was read and done.
    bias: whether a column of ones follows the N columns, so that there are N + 1 eigenvalues and axes.
    """

    eigenvalues: Array
    vectors: Array
    centre: Array
    scale: Array
    kept: NDArray[np.bool_]
    unit: float
    count: int
    digest: str
    source: str
    bias: bool = False

    def coordinates(self, block: Array) -> Array:
        """Rows (rows, columns) of the table in the principal axes, (rows, N), in units of mean eigenvalue one."""
        columns = ((block[:, self.kept] - self.centre) / self.scale) / np.sqrt(self.unit)
        if self.bias:
            columns = np.column_stack([columns, np.ones(len(columns))])
        coordinates = columns @ self.vectors
        coordinates[:, self.eigenvalues == 0] = 0.0
        return coordinates


def principal_axes(source: Source, centre: bool = True, standardise: bool = False, bias: bool = False) -> PrincipalAxes:
    """Diagonalise the covariance of `source`, see `overlaps.data.table` for what may stand there.

    Columns without signal are left out: constant ones, or zero ones if the mean is not subtracted. `standardise`
    divides each column by its standard deviation, or by its root mean square if the mean is not subtracted. `bias` adds
    a column of ones.
    """
    centre, standardise = true_or_false("centre", centre), true_or_false("standardise", standardise)
    count, mean, scatter, kept, digest = _moments(source, centre)
    columns, N = kept.size, int(np.count_nonzero(kept))
    constant = "constant" if centre else "zero"
    if N == 0:
        raise InputError(f"source: all {columns} columns are {constant}, so there is nothing to learn from")
    if count - centre < N:
        raise InputError(
            f"source: {count} samples of {N} columns have a singular covariance, whose spectrum says more about the "
            f"number of samples than about the data; give at least {N + centre} samples, better {10 * N}, or fewer "
            "columns"
        )
    covariance = scatter[np.ix_(kept, kept)] / count
    mean = left = mean[kept]
    if centre:
        left = np.zeros(N)
    else:
        covariance += np.outer(mean, mean)
        mean = np.zeros(N)
    scale = np.sqrt(np.diag(covariance)) if standardise else np.ones(N)
    covariance /= np.outer(scale, scale)
    unit = float(np.trace(covariance)) / N
    if not unit > 1e-280:
        raise InputError("source: the squares of these data underflow; multiply all data by a constant")
    covariance /= unit
    if bias:
        ones = left / scale / np.sqrt(unit)  # products of the columns with one
        covariance = np.block([[covariance, ones[:, None]], [ones[None], np.ones((1, 1))]])
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = values[::-1].copy(), vectors[:, ::-1].copy()
    # an eigenvalue this small is rounding, as that of two equal columns
    lost = values <= values.size * np.finfo(float).eps * values[0]
    values[lost] = 0.0
    values *= values.size / values.sum()
    notes = [f"{count} samples x {N} columns"]
    if columns > N:
        notes[0] += f" ({columns - N} {constant} one{'s' * (columns - N > 1)} dropped)"
    if header := count_header(source):
        notes.append(f"header {header} skipped")
    notes.append("centred" if centre else "not centred")
    notes += ["standardised"] * standardise + ["with a column of ones"] * bias
    if lost.any():
        zeros = int(np.count_nonzero(lost))
        notes.append(f"{zeros} eigenvalue{'s' * (zeros > 1)} zero within rounding")
    if count < 10 * N:
        low, high = (1 - np.sqrt(N / count)) ** 2, (1 + np.sqrt(N / count)) ** 2
        notes.append(f"few samples: they spread equal eigenvalues by factors {low:.2g} to {high:.2g}")
    return PrincipalAxes(
        values,
        vectors,
        mean,
        scale,
        kept,
        unit,
        count,
        digest,
        f"{', '.join(notes)}; eigenvalues in units of {unit:.6g}",
        bias,
    )


def true_or_false(name: str, value: bool | np.bool_) -> bool:
    """`value`, or a refusal of what is no truth value."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name}: expected true or false, got {shown(value)}")
    return bool(value)


def _moments(source: Source, centre: bool) -> tuple[int, Array, Array, NDArray[np.bool_], str]:
    """Count, mean (columns,), scatter about it (columns, columns), columns with signal (columns,), digest."""
    count, shift = 0, np.empty(0)
    mean, scatter, kept = shift, np.empty((0, 0)), np.empty(0, bool)
    digest = hashlib.sha256()
    for block in blocks(source, digest):
        if count == 0:
            columns = block.shape[1]
            if columns > MOST_COLUMNS:
                raise InputError(
                    f"source: the covariance of {columns} columns has {8e-9 * columns**2:.0f} GB; use at most "
                    f"{MOST_COLUMNS} columns, for instance every other pixel"
                )
            shift = block[0].copy()  # means are taken about the first row, so that large ones cost no digits
            mean, scatter, kept = np.zeros(columns), np.zeros((columns, columns)), np.zeros(columns, bool)
        kept |= np.any(block != (shift if centre else 0.0), axis=0)
        block = block - shift
        k = len(block)
        block_mean = block.mean(0)
        block -= block_mean
        difference = block_mean - mean
        scatter += block.T @ block
        scatter += (count * k / (count + k)) * np.outer(difference, difference)
        mean += (k / (count + k)) * difference
        count += k
    return count, mean + shift, scatter, kept, digest.hexdigest()
