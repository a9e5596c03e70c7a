"""Claims about training on mixtures: how far SGD is from the Gaussian equations, and whether standardising helps.

Runs on a mixture and the equations of the standard normal latent share start and features. Their distance is the
tLog-RMSE M over log-spaced times from the first step on; runs scatter about their own mean by a distance, too, which is
what M is where the equations are right. In eq. (17) it is open whether the label of the component is drawn for a sample
or for each of its coordinates: both are measured. Claims share their runs on standardised mixtures.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

import overlaps as ov

from ..estimates import mean_error
from ..ledger import Measurement, verdict
from . import printed
from .model import LABELS, SIZE, STEPS, VARIABLES, listed, problem, start
from .paper import PAPER

Array = NDArray[np.float64]
ACTIVATIONS = ("relu", "erf")


class Ground:
    """The equations of the standard normal latent from one start, and how far runs on latents are from them."""

    def __init__(self, activation: str, size: int, time: float, seed: int = 1) -> None:
        self.activation, self.size, self.seed = activation, size, seed
        self.times = ov.logtimes(1 / size, time, 40)

    @cached_property
    def theory(self) -> ov.Trajectory:
        """The equations of the normal latent."""
        return self.solve(None)

    def begin(self, latent: ov.LatentMixture | None) -> tuple[ov.Problem, ov.Start]:
        """The problem with a latent, and its start, which has the same weights for all."""
        task = problem(self.activation, latent, features=self.seed)
        return task, start(task, self.size, self.seed)

    def solve(self, latent: ov.LatentMixture | None) -> ov.Trajectory:
        """The equations of a latent."""
        return ov.solve(*self.begin(latent), self.times)

    def train(self, latent: ov.LatentMixture | None, runs: int, seed: int = 0) -> ov.Trajectory:
        """SGD on a latent."""
        return ov.train(*self.begin(latent), self.times, runs=runs, seed=seed, progress=False)

    def distance(self, latent: ov.LatentMixture | None, runs: int, seed: int = 0) -> Any:
        """M of runs on a latent, as `ov.tlog_rmse` gives it."""
        return ov.tlog_rmse(self.theory, self.train(latent, runs, seed), VARIABLES)


def scale(quick: bool) -> tuple[int, float]:
    """Size and time: small ones, or the paper's."""
    return (200, 25.0) if quick else (SIZE, STEPS / SIZE)


@cache
def runs_at_nine(activation: str, label: str | None, components: int, quick: bool) -> ov.Trajectory:
    """Eight runs on standardised mixtures, α = 9, or on the normal latent if there is no label, from one start."""
    latent = ov.LatentMixture(components, 9.0, label=label, standardise="population") if label else None
    return Ground(activation, *scale(quick)).train(latent, 8, seed=components if label else 0)


def at_nine(ground: Ground, label: str | None, components: int, quick: bool) -> Any:
    """M of these runs, as `ov.tlog_rmse` gives it."""
    return ov.tlog_rmse(ground.theory, runs_at_nine(ground.activation, label, components, quick), VARIABLES)


def row(values: dict[str, float] | None) -> Array:
    """Values of Q, R, v, (3,)."""
    assert values is not None
    return np.array([values[name] for name in VARIABLES])


@PAPER.claim(
    "standardised",
    where="section IV B, figures 4, 5 and S4",
    statement="on standardised mixtures, m = 2, alpha = 9, SGD follows the equations of the Gaussian latent (figures "
    "4, 5, S4); corrected: if a label is drawn for each coordinate; with one for a sample it does not",
    expected="holds corrected",
)
def standardised(quick: bool) -> Measurement:
    """M of Q, R, v over the scatter of runs on the normal latent, labels per sample or per coordinate, ReLU and erf."""
    size, time = scale(quick)
    notes: list[str] = []
    found: dict[str, list[Array]] = {label: [] for label in LABELS}
    for activation in ACTIVATIONS:
        ground = Ground(activation, size, time)
        scatter = row(at_nine(ground, None, 0, quick).floor)
        notes.append(f"{activation}: scatter {listed(scatter)}")
        for label in LABELS:
            M = row(at_nine(ground, label, 2, quick).rmse)
            found[label].append(M / scatter)
            notes.append(f"per {label} {listed(M)}")
    far, near = float(np.max(found["sample"])), float(np.max(found["coordinate"]))
    judged = verdict(far, near, 2.0)  # both are good to some 30 %, as few runs are
    if judged == "holds corrected" and np.min(found["sample"]) < 3:
        judged = "fails"  # the correction says that nothing agrees with one label per sample
    note = f"largest ratio with one label per sample; M of Q, R, v: {', '.join(notes)}; N = {size}"
    return Measurement(judged, far, 0.3 * far, note)


@PAPER.claim(
    "tables-alpha",
    where="tables I and II, appendix F",
    statement="M of standardised mixtures depends neither on alpha (tables I, II) nor on m; corrected: if a label is "
    "drawn for each coordinate",
    expected="holds corrected",
)
def tables_alpha(quick: bool) -> Measurement:
    """M of Q, R, v at α = 9, m = 2 and 8, less that of the normal latent, in standard errors of the difference."""
    size, time = scale(quick)
    largest, ratio, notes = 0.0, 0.0, []
    for activation in ACTIVATIONS[:1] if quick else ACTIVATIONS:
        ground = Ground(activation, size, time)
        normal = at_nine(ground, None, 0, quick)
        notes.append(f"{activation}, normal latent {listed(row(normal.rmse), 4)}")
        for m in (2, 8):
            found = at_nine(ground, "coordinate", m, quick)
            z = (row(found.rmse) - row(normal.rmse)) / np.hypot(row(found.standard_error), row(normal.standard_error))
            largest = max(largest, float(np.abs(z).max()))
            notes.append(f"m = {m} {listed(row(found.rmse), 4)}")
        one = at_nine(ground, "sample", 2, quick)
        ratio = max(ratio, float((row(one.rmse) / row(normal.rmse)).max()))
        notes.append(f"m = 2, one label per sample {listed(row(one.rmse), 4)}")
    trends = []
    for activation in ACTIVATIONS:
        rows = np.concatenate([values.reshape(10, -1) for values in printed.table(activation).values()], axis=1)
        trends.append(float(np.asarray(spearmanr(np.arange(10), rows.mean(1)))[1]))
    # Student's t of two times eight runs is beyond 5 once in 5000; there are at most twelve
    judged = "fails" if largest > 5 else "holds" if ratio < 1.5 else "holds corrected"
    note = (
        f"largest; M of Q, R, v: {', '.join(notes)}; N = {size}; chance of as large a trend of the printed means with "
        f"alpha {listed(trends, 2)} (tables II, I)"
    )
    return Measurement(judged, largest, 1.0, note)


@PAPER.claim(
    "un-standardised",
    where="section IV A, figures 3 and S3",
    statement="on mixtures as they are SGD departs from the Gaussian equations, and M of Q and v reaches a limit as KL "
    "grows (figures 3, S3); corrected: for erf; for ReLU, with one label per sample, it stays from alpha = 1 to 9 and "
    "grows beyond, as targets do; with labels per coordinate that of Q grows from alpha = 1 on",
    expected="holds corrected",
)
def unstandardised(quick: bool) -> Measurement:
    """Growth of M of Q, R, v, mean over mixtures, from α = 1 to 9 and from 9 to 81: less than twofold is none."""
    (size, time), mixtures = scale(quick), 3 if quick else 4
    bounds = {
        ("relu", "sample"): (1.0, 9.0, 81.0),
        ("relu", "coordinate"): (1.0, 9.0),
        ("erf", "sample"): (9.0, 81.0),
        ("erf", "coordinate"): (9.0, 81.0),
    }
    grounds = {activation: Ground(activation, size, time) for activation in ACTIVATIONS}
    normal = {activation: row(at_nine(ground, None, 0, quick).rmse) for activation, ground in grounds.items()}
    notes = [f"{activation} on the normal latent {listed(M)}" for activation, M in normal.items()]
    growth: dict[tuple[str, str], Array] = {}
    departs, error = True, 0.0
    for (activation, label), several in bounds.items():
        M = np.empty((len(several), mixtures, len(VARIABLES)))
        for i, bound in enumerate(several):
            for seed in range(mixtures):
                latent = ov.LatentMixture(2, bound, label=label, seed=seed)
                M[i, seed] = row(grounds[activation].distance(latent, runs=1).rmse)
        mean, spread = mean_error(M, 1)
        departs &= bool((mean[several.index(9.0)] > 3 * normal[activation]).all())
        growth[activation, label] = mean[1:] / mean[:-1]
        if (activation, label) == ("relu", "sample"):
            error = float(growth[activation, label][1, 0] * np.hypot(*(spread / mean)[1:, 0]))
        notes.append(
            f"{activation}, per {label} "
            + "; ".join(f"{listed(m)} at {b:g}" for m, b in zip(mean, several, strict=True))
        )
    Q_and_v = [0, 2]
    one, each = growth["relu", "sample"], growth["relu", "coordinate"]
    bounded = all(growth["erf", label].max() < 2 for label in LABELS)
    as_printed = departs and bounded and one[:, Q_and_v].max() < 2 and each[:, Q_and_v].max() < 2
    corrected = departs and bounded and one[0, Q_and_v].max() < 2 < min(one[1, 0], each[0, 0])
    judged = "holds" if as_printed else "holds corrected" if corrected else "fails"
    note = f"growth of M of Q from alpha = 9 to 81, ReLU, one label; M of Q, R, v: {', '.join(notes)}; N = {size}"
    return Measurement(judged, float(one[1, 0]), error, note)


@PAPER.claim(
    "kl",
    where="section III A, eq. (16), figure S2",
    statement="the KL divergence of the mixture from N(0, I) grows with alpha and falls with the number m of "
    "components (figure S2): that of a single coordinate, and that of the vector with one label, alpha^2/6 per "
    "dimension less (ln m)/D at most",
    expected="holds",
)
def kl(quick: bool) -> Measurement:
    """KL of a coordinate, and of the vector per dimension, D = 500, for centres of mean square α²/3 and m = 2, 4, 8."""
    bounds = (0.5, 1.0, 3.0, 9.0) if quick else (0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 7.0, 9.0)
    many, D, seeds = (2, 4, 8), 500, 1 if quick else 4
    found = np.empty((2, len(many), len(bounds), seeds))
    grows = True
    for i, m in enumerate(many):
        for seed in range(seeds):
            each = [ov.LatentMixture(m, bound, seed=seed).divergence(D) for bound in bounds]
            raw = np.array([(d.coordinate, d.joint) for d in each])
            grows &= bool((np.diff(raw, axis=0) > 0).all())
            # the mean square of the centres, which differs from draw to draw, says nothing about m
            found[:, i, :, seed] = (raw - [[d.upper] for d in each] + np.square(bounds)[:, None] / 6).T
    coordinate, joint = found.mean(-1)
    difference, most = float(np.ptp(joint, axis=0).max()), float(np.log(max(many)) / D)
    falls = bool((np.diff(coordinate, axis=0) < 0).all() and (np.diff(joint, axis=0) < 0).all())
    judged = "holds" if grows and falls and difference <= most else "fails"
    notes = [
        f"at alpha = {bound:g} {listed(coordinate[:, j])} of a coordinate, {listed(joint[:, j])} of the vector"
        for j, bound in enumerate(bounds)
    ]
    note = f"largest difference between m of that of the vector; m = 2, 4, 8: {'; '.join(notes)}"
    return Measurement(judged, difference, most, note)


@PAPER.claim(
    "conditional",
    where="not in the paper; the mixtures of eq. (17)",
    statement="training on mixtures with one label per sample needs more than the Gaussian theory: fields "
    "are Gaussian given the component, and equations for mean and fluctuations of the weights, and of the means "
    "of the fields, describe SGD, standardised or not: they are at least three times nearer to it",
    expected="found here",
)
def conditional(quick: bool) -> Measurement:
    """Distance of mean SGD (Q, R, v) from conditional equations over that from Gaussian ones, α = 9, t ≤ 20."""
    size, runs = (100, 6) if quick else (500, 10)
    largest, notes = 0.0, []
    for activation in ACTIVATIONS:
        ground = Ground(activation, size, 20.0)
        for standardise in (None, "population"):
            latent = ov.LatentMixture(2, 9.0, standardise=standardise)
            theory, simulation = ground.solve(latent), ground.train(latent, runs)
            near, far = (
                np.array([distance(simulation, other, name) for name in VARIABLES]) for other in (theory, ground.theory)
            )
            largest = max(largest, float(np.linalg.norm(near) / np.linalg.norm(far)))
            scatter = row(ov.tlog_rmse(theory, simulation, VARIABLES).floor)
            how = "standardised" if standardise else "as it is"
            notes.append(f"{activation}, {how} {listed(near)}, Gaussian {listed(far)} ({listed(scatter)} by scatter)")
    note = f"largest; distances of Q, R, v: {'; '.join(notes)}; N = {size}, {runs} runs"
    return Measurement("found here" if largest < 1 / 3 else "fails", largest, 0.05, note)


def distance(simulation: ov.Trajectory, theory: ov.Trajectory, name: str) -> float:
    """Root mean square over entries and times of the mean of runs less a theory."""
    off = simulation.data[name].mean("run") - theory.data[name].isel(run=0)
    return float(np.sqrt((off**2).mean()))
