"""How far training on mixtures is from the Gaussian equations: the runs behind figures 3, 5, S3, S4 and the tables.

A mixture i has a start, features and centres of its own. From the start go the equations of the standard normal latent
(Q, R, v), one run on that latent, and one run on each mixture of m components with means in [−α, α). The distance of a
run from the equations is the tLog-RMSE of `overlaps.tlog_rmse`, for each of the ten entries

    M(v) = √( (1/T) Σ_t (v(t) − v̂(t))² ),     T log-spaced steps from the first to the last.

The run on the normal latent gives the floor: what M is where the equations are right. All mixtures count. The paper
keeps 10 of its 20 by how near that run is to the equations; `kept` marks the half that this would be here, by the mean
of M over all entries.

Q and R of a mixture are W Cov(x) Wᵀ/N and W Cov(x, ν)/√N with the covariances of the normal latent, (9) and (10). Not
given in print: the numbers m of components, their weights, initial weights and the times of M. Here m = 2, 4 and 8 with
equal weights, and initial weights are normal. One run of 10⁵ steps at N = 1000 takes 4 s on one core.

>>> Scale.of(quick=True).grid
((2, (1.0, 3.0, 9.0)), (4, (1.0, 3.0, 9.0)))
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple, TypeVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

import overlaps as ov

from ..panels import step_times
from .model import LABELS, SIZE, STEPS, VARIABLES, problem, start

Array = NDArray[np.float64]
Result = TypeVar("Result")
ENTRIES = ("Q00", "Q01", "Q10", "Q11", "R00", "R01", "R10", "R11", "v0", "v1")


class Scale(NamedTuple):
    """Size N, steps, mixtures, and the pairs of components m and bounds α."""

    size: int
    steps: int
    mixtures: int
    grid: tuple[tuple[int, tuple[float, ...]], ...]

    @classmethod
    def of(cls, quick: bool) -> Scale:
        """The paper's, with fewer α for m = 4 and 8, or a small one."""
        if quick:
            few = (1.0, 3.0, 9.0)
            return cls(200, 5000, 3, ((2, few), (4, few)))
        every, some = tuple(float(a) for a in range(1, 10)), (1.0, 3.0, 6.0, 9.0)
        return cls(SIZE, STEPS, 20, ((2, every), (4, some), (8, some)))

    @property
    def latent_dim(self) -> int:
        """D."""
        return self.size // 2

    @property
    def times(self) -> Array:
        """Times that M is taken over."""
        return step_times(self.size, self.steps / self.size, 60, first=1 / self.size)

    @property
    def points(self) -> list[tuple[int, float]]:
        """Pairs of m and α."""
        return [(m, bound) for m, bounds in self.grid for bound in bounds]

    def note(self) -> str:
        """What a figure is drawn with."""
        text = f"N = {self.size}, D = {self.latent_dim}, rate .2, {self.steps:,} steps, {self.mixtures} mixtures"
        full = Scale.of(False)
        if self == full:
            return text
        text += (
            f"\nquick: N = {self.size} instead of {full.size}, {self.mixtures} mixtures instead of {full.mixtures}, "
        )
        text += f"to time {self.steps // self.size} instead of {full.steps // full.size}, "
        return text + "m = 2 and 4 with α = 1, 3, 9 instead of m = 2, 4, 8 with up to nine α"


class Baseline(NamedTuple):
    """Of the normal latent, for all mixtures.

    theories: the equations. floor, size: M of one run and the mean over times of |X|, (mixtures, entries) each.
    """

    theories: tuple[ov.Trajectory, ...]
    floor: Array
    size: Array

    @property
    def kept(self) -> NDArray[np.bool_]:
        """The half of the mixtures whose run on the normal latent is nearest to the equations, (mixtures,)."""
        mean = self.floor.mean(1)
        return mean <= np.sort(mean)[(len(mean) + 1) // 2 - 1]


def measure(theory: ov.Trajectory, run: ov.Trajectory) -> Array:
    """M of a single run, (entries,)."""
    found = ov.tlog_rmse(theory, run, VARIABLES).entries
    return np.concatenate([found[name][0].ravel() for name in VARIABLES])


def run_on(
    activation: str, latent: ov.LatentMixture | None, mixture: int, seed: Sequence[int], quick: bool
) -> ov.Trajectory:
    """One run from the start, and with the features, of that mixture."""
    scale, task = Scale.of(quick), problem(activation, latent, features=mixture)
    # numbers of its own for each run, so that points of a curve scatter independently
    number = int(np.random.SeedSequence([mixture, *seed]).generate_state(1)[0])
    return ov.train(task, start(task, scale.size, mixture), scale.times, runs=1, seed=number, progress=False)


@cache
def baseline(activation: str, quick: bool) -> Baseline:
    """The equations of the normal latent, and a run on it, for each mixture."""
    scale = Scale.of(quick)

    def one(mixture: int) -> tuple[ov.Trajectory, Array, Array]:
        task = problem(activation, features=mixture)
        theory = ov.solve(task, start(task, scale.size, mixture), scale.times)
        floor = measure(theory, run_on(activation, None, mixture, [0], quick))
        sizes = [np.abs(theory.data[name].values[0]).mean(0).ravel() for name in VARIABLES]
        # without the problem, whose features and eigenvectors would stay in memory
        return replace(theory, problem=None), floor, np.concatenate(sizes)

    jobs = [partial(one, mixture) for mixture in range(scale.mixtures)]
    theories, floors, sizes = zip(*together(jobs, f"{activation}, normal latent"), strict=True)
    return Baseline(theories, np.array(floors), np.array(sizes))


@cache
def distances(activation: str, standardised: bool, label: str, components: int, quick: bool) -> Array:
    """M of runs on mixtures of that many components, (bounds, mixtures, entries)."""
    scale, theories = Scale.of(quick), baseline(activation, quick).theories
    bounds = dict(scale.grid)[components]

    def one(bound: float, mixture: int) -> Array:
        how = "population" if standardised else None
        latent = ov.LatentMixture(components, bound, label=label, standardise=how, seed=mixture)
        seed = [1 + standardised, list(LABELS).index(label), components, round(10 * bound)]
        return measure(theories[mixture], run_on(activation, latent, mixture, seed, quick))

    jobs = [partial(one, bound, mixture) for bound in bounds for mixture in range(scale.mixtures)]
    found = together(jobs, f"{activation}, m = {components}, {LABELS[label]}")
    return np.array(found).reshape(len(bounds), scale.mixtures, len(ENTRIES))


@cache
def divergences(components: int, bounds: tuple[float, ...], mixtures: int, dimension: int) -> Array:
    """Divergences of the mixtures, not standardised, with one label per sample, (bounds, mixtures, 4).

    Per coordinate; jointly, per dimension; and the lower and the upper bound on the latter. In nats.
    """
    found = [
        ov.LatentMixture(components, bound, seed=mixture).divergence(dimension)
        for bound in bounds
        for mixture in range(mixtures)
    ]
    return np.array([(d.coordinate, d.joint, d.lower, d.upper) for d in found]).reshape(len(bounds), mixtures, 4)


def together(jobs: Sequence[Callable[[], Result]], title: str) -> list[Result]:
    """Results of the jobs, in their order, from as many threads as there are cores."""
    with threadpool_limits(limits=1), ThreadPoolExecutor(os.cpu_count()) as pool:
        futures = [pool.submit(job) for job in jobs]
        try:
            return [future.result() for future in tqdm(futures, desc=title, unit="run", delay=2, disable=None)]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def sweep(activation: str, standardised: bool, quick: bool) -> xr.Dataset:
    """All of it: distances of runs on mixtures, the floor, the scale of the variables and the divergences."""
    scale, base = Scale.of(quick), baseline(activation, quick)
    found = [
        np.concatenate([distances(activation, standardised, label, m, quick) for m, _ in scale.grid])
        for label in LABELS
    ]
    divergence = np.concatenate([divergences(m, bounds, scale.mixtures, scale.latent_dim) for m, bounds in scale.grid])
    nats = {"units": "nats per dimension", "long_name": "Kullback-Leibler divergence of the mixture, not standardised"}
    return xr.Dataset(
        {
            "distance": (("label", "point", "mixture", "entry"), np.array(found), {"long_name": "tLog-RMSE"}),
            "floor": (("mixture", "entry"), base.floor, {"long_name": "tLog-RMSE of a run on the normal latent"}),
            "size": (("mixture", "entry"), base.size, {"long_name": "mean over times of the absolute value"}),
            "kept": ("mixture", base.kept, {"long_name": "in the half whose runs on the normal latent are nearest"}),
            "divergence": (("point", "mixture"), divergence[..., 0], nats | {"of": "single coordinates"}),
            "joint_divergence": (("point", "mixture"), divergence[..., 1], nats | {"of": "all, one label per sample"}),
        },
        {
            "label": list(LABELS),
            "components": ("point", [m for m, _ in scale.points]),
            "bound": ("point", [bound for _, bound in scale.points]),
            "entry": list(ENTRIES),
            "variable": ("entry", [name[0] for name in ENTRIES]),
        },
        {"parameters": scale.note(), "activation": activation, "standardised": int(standardised)},
    )
