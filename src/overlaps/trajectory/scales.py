"""The three scales of a problem. Each asks the algorithm for its engine, and nothing else.

An engine is three modules of this package, with `solve`, `sample` and `train` of the algorithms it serves: those of
`overlaps.online` for one-pass training, of `overlaps.full_batch` for training on a fixed set of samples. The first has
`check_memory`, which refuses a solution that would hold too many numbers before it begins.
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from ..interface.checks import array, checked
from ..interface.progress import without_bars
from ..problem.start import Start, check
from ..problem.statement import Problem
from .finished_runs import FinishedRuns
from .fresh_rows import check_resamples, with_errors_of_rows
from .refinement import Budget

if TYPE_CHECKING:
    from .dataset import Trajectory


MACRO, MESO, MICRO = range(3)


def engine(problem: Problem, scale: int) -> Any:
    """The module that computes one of the three scales for the algorithm of a problem."""
    return import_module(f"overlaps.{problem.algorithm.engine[scale]}")


@checked
def solve(
    problem: Problem,
    start: Start,
    times: ArrayLike | None = None,
    *,
    levels: bool = False,
    accuracy: float | None = None,
    method: str = "auto",
    system: str = "auto",
    max_seconds: float | None = None,
    max_evaluations: int | None = None,
    resamples: int | None = None,
    progress: bool = True,
) -> Trajectory:
    """The infinite-size theory of `problem` from `start`; `Samples` are taken as Gaussian.

    A linear student of labelled rows has the exact mean over runs at its size (see `overlaps.online.labelled_rows`),
    and so has `MultiPass` (see `overlaps.online.multi_pass`).
    On a `HiddenManifold` it is that of Gaussian-equivalent inputs, with the features of `start` where it has a size. Of
    `FullBatch` it is dynamical mean-field theory, and its kernels are in the data (see `overlaps.full_batch`).

    Parameters
    ----------
    times: increasing times, in steps per input dimension; of `FullBatch` whole steps, all by default.
    levels: also record the overlaps of every level (`Q_levels`, `R_levels`).
    accuracy: largest error to accept, relative to the largest value of each variable; not reaching it is a
        `NumericalError`. By default 1e-9 is aimed at for closed forms, 1e-6 for tensor quadrature and 1e-3 for Sobol
        points, and the tightest solution is accepted up to 1e-6, 1e-5 and 1e-2: escaping a plateau amplifies rounding.
        Of `FullBatch` the error is that of sampling: 1e-3 is aimed at, and accepted up to 1e-2.
    method: how the Gaussian averages are evaluated: ``"auto"``, ``"closed"`` or ``"quadrature"``; how the responses of
        `FullBatch` are: ``"auto"``, ``"stein"`` or (for smooth losses) ``"response"``.
    system: ``"levels"``; ``"moments"`` for the moment hierarchy of the papers, which is good for few levels only;
        ``"exact-mean"`` for the mean over runs of linear students at finite size, ``"measured-moments"`` for it with
        the fourth moments of labelled rows; ``"strong-mixture"`` for the equations of strong mixtures of latents (see
        `overlaps.online.strong_mixture`), for which 1e-2 is aimed at and 1e-1 accepted if no `accuracy` is named;
        ``"class-covariances"`` for components whose covariances do not commute (see
        `overlaps.online.class_covariances`), for which it is 5e-3 and 2e-2; or ``"auto"``: strong-mixture and
        class-covariances for these, exact-mean for labelled rows, levels otherwise.
    max_seconds: time after which to stop with a `NumericalError` and what there is, 600 by default.
    max_evaluations: of the averages (of `FullBatch`, exact means and many passes steps of all recursions), after which
        to stop likewise; by default 10⁸ of closed forms, 60 000 of quadratures, and any number of steps.
    resamples: of labelled rows, how often to draw them again; the result then also says what to expect of training on
        *other* rows of the same population, without the bias of a fit (`error_fresh`, …) and with a standard error
        (`error_standard_error`, …), which `compare` counts where rows differ (see `overlaps.trajectory.fresh_rows`).
        30 will do; each costs two solutions.
    progress: whether to show how far it is, in a terminal or a notebook, once it has taken two seconds.
    """
    check(problem, start)
    if resamples is not None:
        resamples = check_resamples(problem, start, resamples, system)
    options = {"accuracy": accuracy, "method": method, "system": system}
    budget = Budget(max_seconds, max_evaluations)

    def solved(problem: Problem, start: Start, levels: bool = False) -> Trajectory:
        return engine(problem, MACRO).solve(problem, start, times, budget=budget, levels=levels, **options)

    with without_bars(not progress):
        try:
            result = solved(problem, start, levels)
        finally:
            budget.course.close()
        return with_errors_of_rows(result, problem, start, resamples, solved) if resamples else result


@checked
def sample(
    problem: Problem,
    start: Start,
    times: ArrayLike | None = None,
    runs: int = 100,
    seed: int = 0,
    *,
    method: str = "exact",
    levels: bool = False,
    kernels: bool = False,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Trajectory:
    """Independent runs of the overlap chain at size `start.size`.

    Equal in law to `train` for Gaussian inputs, whatever the size and the loss; the cost of a step grows with the
    number of levels but not with the number of dimensions. `Samples` are taken as Gaussian. Of `FullBatch` the data
    matrix is never formed, at a cost that grows as N instead of N² (see `overlaps.full_batch`).

    Parameters
    ----------
    times: increasing times, in steps per input dimension; of `FullBatch` whole steps, all by default.
    runs, seed: number of independent runs; the same seed gives the same bits.
    method: ``"exact"``, or ``"diffusion"`` for the approximation of large N, drift plus Gaussian noise, whose cost does
        not grow with the number of steps (see `overlaps.online.diffusion`).
    levels: also record the overlaps of every level.
    kernels: of `FullBatch`, also record the overlaps of every two steps, V_theta and V_omega.
    store: folder that keeps finished runs: what was interrupted goes on from there, and more runs extend fewer.
    """
    check(problem, start)
    options = {"method": method, "levels": levels, "kernels": kernels}
    kept = _finished(store, "meso", problem, start, times, seed, options)
    with kept or nullcontext():
        return engine(problem, MESO).sample(problem, start, times, runs, seed, kept=kept, progress=progress, **options)


@checked
def train(
    problem: Problem,
    start: Start,
    times: ArrayLike | None = None,
    runs: int = 4,
    seed: int = 0,
    *,
    levels: bool = False,
    kernels: bool = False,
    observe: Any = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> Trajectory:
    """Real training runs from the weights of `start`, with fresh samples in each.

    On `Samples` the inputs are rows of the data set, drawn with replacement, and `error` is the mean over all its rows.

    Parameters
    ----------
    times: increasing times, in steps per input dimension; of `FullBatch` whole steps, all by default.
    runs, seed: number of independent runs; the same seed gives the same bits.
    levels: also record the overlaps of every level.
    kernels: of `FullBatch`, also record the overlaps of every two steps, V_theta and V_omega.
    observe: what else to observe on the way, such as `overlaps.spectra.Observer`, at its own times (which must be among
        `times`) or at all of them, at whole steps; what it sees is in the data of the trajectory, along the dimension
        `observed`.
    store: folder that keeps finished runs: what was interrupted goes on from there, and more runs extend fewer.
    """
    check(problem, start)
    options = {"levels": levels, "kernels": kernels, "observe": observe}
    kept = _finished(store, "micro", problem, start, times, seed, options)
    with kept or nullcontext():
        return engine(problem, MICRO).train(problem, start, times, runs, seed, kept=kept, progress=progress, **options)


def _finished(
    store: Any, scale: str, problem: Problem, start: Start, times: Any, seed: int, options: dict[str, Any]
) -> FinishedRuns | None:
    """The finished runs of these, wherever times are written in the same way; None without a store."""
    if store is None:
        return None
    when = None if times is None else array("times", times, None)
    return FinishedRuns.of(store, scale, problem, start, when, seed, options)
