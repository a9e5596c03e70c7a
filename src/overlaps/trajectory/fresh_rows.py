"""Theory from n rows, for training on other rows of the same population: its bias, and its standard error.

Theory is a function f(w) of the rows and of the weights w with which they count, all one. To `train` on these rows they
are the population, and f(1) has no error. Of the population behind them it is an estimate. A bootstrap over rows lets
each count 1 + ε or 1 − ε, by the toss of a coin, with everything fitted again; over many tosses

    standard error² = ⟨(f(1 + ε ξ) − f(1 − ε ξ))²⟩/4ε²        bias = ⟨f(1 + ε ξ) + f(1 − ε ξ) − 2 f(1)⟩/2ε²

are right to the leading order in 1/n. (Weights 0, 1, 2, … of the usual bootstrap leave out a third of the rows, and
with N columns a fit to two thirds of them is another one; small ε is the method of R. E. Fay for repeated surveys.)
Residuals of a fit are too small, since each row pulls it towards itself; in f(w) they are those of fits without the
row. That makes the noise, and so the bias, too large by 1/(1 − N/n), which is taken off again.

On tables of known populations the truth is within two standard errors in 89 to 100 of a hundred tables, 95 on average,
from five rows a column on (`benchmarks/fresh_rows.py`, docs/accuracy.md).

Where a training set is fixed (`MultiPass`, `FullBatch`) other rows give another training set of the same size; nothing
is fitted to the rows tested on, so that there is no bias, and the standard error is that over training and test rows.

>>> import numpy as np
>>> import overlaps as ov
>>> rng = np.random.default_rng(0)
>>> x = rng.standard_normal((400, 10))
>>> data = ov.Samples(x, x[:, 0] + rng.standard_normal(400))
>>> problem = ov.Problem(data=data, student=ov.Committee(1, "linear"), algorithm=ov.OnlineSGD(0.2))
>>> theory = ov.solve(problem, ov.draw(problem, 10, scale=0.0), [20.0], resamples=20).data
>>> print(f"{theory['error'].item():.2f}, of fresh rows {theory['error_fresh'].item():.2f}")
0.55, of fresh rows 0.57
>>> print(f"± {theory['error_standard_error'].item():.2f}")
± 0.03
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.weighted_rows import weighted, without_own_pull
from ..interface.checks import whole
from ..interface.errors import InputError, NumericalError
from ..interface.progress import bar, without_bars
from ..problem.start import Start
from ..problem.statement import Problem
from .dataset import Trajectory

Array = NDArray[np.float64]
SHARE = 0.3  # ε
FEWEST = 10  # resamples, of which the standard error is good to a fifth
FRESH, STANDARD_ERROR = "_fresh", "_standard_error"  # what names of variables are followed by


def check_resamples(problem: Problem, start: Start, resamples: int, system: str) -> int:
    """The number of resamples; refused where theory is not estimated from rows, or not comparable."""
    resamples = whole("resamples", resamples, least=FEWEST)
    if not problem.learns_rows:
        raise InputError(
            "resamples: rows are drawn again, so they must be labelled; use Samples(X, y), or leave it out"
        )
    if problem.classifies_rows:
        raise InputError(
            "resamples: theory of classes does not say what other rows would give, that of a regression does; use the "
            "square loss of a linear student, or solve for another half of the rows"
        )
    if system == "measured-moments":
        raise InputError("resamples: fourth moments of the rows are not drawn again; use system='auto'")
    if start.student is None or np.any(start.student):
        raise InputError(
            "resamples: other rows have other axes, in which weights mean something else; start from zero weights, "
            "draw(problem, size, scale=0.0)"
        )
    data: Any = problem.data
    if len(data.rows) < 1.25 * data.size + 2:
        raise InputError(
            f"resamples: {len(data.rows)} rows of {data.size} columns are too few to say what others would give; give "
            f"at least {int(1.25 * data.size) + 2}"
        )
    return resamples


def with_errors_of_rows(
    result: Trajectory, problem: Problem, start: Start, resamples: int, again: Callable[[Problem, Start], Trajectory]
) -> Trajectory:
    """Add to a theory what it expects of training on other rows, with standard errors; `again` solves it."""
    data: Any = problem.data
    n, N, labels = len(data.rows), data.size, without_own_pull(data)
    rng = np.random.default_rng(0)

    def theory(weights: Array) -> dict[str, Array]:
        other = replace(problem, data=weighted(data, weights, labels))
        zero = Start.from_weights(other, np.zeros((start.v.size, N)))
        solved = again(other, replace(zero, v=start.v, u=start.u, own_readouts=start.own_readouts))
        return {name: solved.data[name].values for name in result.variables if name != "v"}  # v is not trained

    try:
        first = theory(np.ones(n))
        squares, bends = ({name: np.zeros_like(x) for name, x in first.items()} for _ in range(2))
        with bar(resamples, "resamples", "set") as shown, without_bars():
            for _ in range(resamples):
                coin = SHARE * rng.choice([-1.0, 1.0], n)
                up, down = theory(1 + coin), theory(1 - coin)
                for name, value in first.items():
                    squares[name] += ((up[name] - down[name]) / (2 * SHARE)) ** 2 / resamples
                    bends[name] += (up[name] + down[name] - 2 * value) / (2 * SHARE**2) / resamples
                shown.update()
    except NumericalError as error:
        raise NumericalError(
            f"resamples: theory of the rows stands, and is in .partial; of rows drawn again: {error}",
            quantity=error.quantity,
            time=error.time,
            partial=result,
        ) from None
    # where a training set is fixed, the rows tested on are not fitted, and nothing is taken off
    off = 0.0 if "training_error" in result.data else 1 - (N + data.centres_labels) / n
    added = {}
    for name in first:
        variable = result.data[name]
        added[name + FRESH] = (variable.dims, variable.values - off * bends[name])
        added[name + STANDARD_ERROR] = (variable.dims, np.sqrt(squares[name]))
    return replace(result, data=result.data.assign(added).assign_attrs(resamples=resamples))
