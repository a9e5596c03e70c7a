"""The one result type: an `xarray.Dataset` with fixed names, whatever the scale.

| variable | dims | meaning |
|---|---|---|
| Q | run, time, student, student_ | covariance of the student fields, Σ_b ω_b Q_b |
| R | run, time, student, teacher | covariance of student and teacher fields |
| T | teacher, teacher_ | covariance of the teacher fields, constant |
| m | run, time, student, mean | overlaps of student and means, Σ_b m_b: the means of the student fields |
| gram | mean, mean_ | inner products of the means, constant |
| v | run, time, student | readout of the student |
| error | run, time | generalisation error: the mean of the loss |
| training_error | run, time | mean of the loss over the samples trained on (`FullBatch`, `MultiPass`) |
| misclassified | run, time | share of inputs taken for another class than theirs, where rows are classified |
| confusion | run, time, class, decision | share of the inputs of a class that are taken for each class |
| error_fresh, error_standard_error, ... | run, time, ... | of training on other rows, see `fresh_rows`, on request |
| Q_levels, R_levels, T_levels, m_levels | ..., level, ... | overlaps per level, on request |

R and T are there where there is a teacher, m and gram where inputs have means, v where the student has a readout. In a
mixture covariances are those of a component of variance one. The kernels of `FullBatch`, of two steps each, are listed
in `overlaps.full_batch`.

A micro or meso value between two steps is interpolated linearly between them.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from .. import __version__
from ..averages import ClosedForm, Method
from ..data import TeacherFields
from ..interface import files
from ..interface.checks import checked
from ..interface.errors import InputError, NoAttributeError, NumericalError, unknown
from ..interface.packed import pack
from ..network.architectures import Softmax
from ..problem.start import Start, joined
from ..problem.statement import Problem
from .citations import citations

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..plot.animation import Animation

Array = NDArray[np.float64]
SAMPLES, STEPS = "samples per input dimension", "steps"  # units of time
COARSER, OF_RUNS = 3, 1e-3  # refinements below the usual rule, and the relative error that the error of runs may have
VARIABLES = (
    "Q",
    "R",
    "m",
    "v",
    "error",
    "training_error",
    "misclassified",
    "confusion",
)  # what evolves, and is compared between scales


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What one scale says about a problem: `data`, and how it came about.

    Attributes
    ----------
    data: the dataset, see the table above; `data.attrs` holds scale, inputs, averages, seed, cost, spec and versions.
    problem: the problem, or None for one loaded from a file if it cannot be built again: functions were the user's own,
        or the data set it names is gone or has changed.
    start: where it began.
    """

    data: xr.Dataset
    problem: Problem | None
    start: Start

    @property
    def scale(self) -> str:
        """``"macro"``, ``"meso"``, ``"micro"``, ``"diffusion"`` for the approximation of meso, or a process of
        `overlaps.full_batch`."""
        return self.data.attrs["scale"]

    @property
    def runs(self) -> int:
        return self.data.sizes["run"]

    @property
    def time(self) -> Array:
        return self.data["time"].values

    @property
    def unit(self) -> str:
        """What times count: ``"samples per input dimension"``; with batches of several ``"steps per input dimension"``;
        of full-batch training ``"steps"``."""
        return str(self.data["time"].attrs["units"])

    @property
    def size(self) -> int | None:
        return self.start.size

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of what evolves in this problem, and is compared between scales."""
        return tuple(name for name in VARIABLES if name in self.data)

    @property
    def best_epoch(self) -> float:
        """Epoch at which the mean test error of `MultiPass` is least, between the times by a parabola; infinite where
        it still falls at the last of them."""
        if "epoch" not in self.data.coords:
            raise NoAttributeError("best_epoch: these runs do not go through a training set; use MultiPass")
        epochs, errors = self.data["epoch"].values, self.data["error"].mean("run").values
        i = int(errors.argmin())
        if i == errors.size - 1:
            return np.inf
        if i == 0:
            return float(epochs[0])
        curve = np.polynomial.Polynomial.fit(epochs[i - 1 : i + 2], errors[i - 1 : i + 2], 2)
        return float(curve.deriv().roots()[0].real)

    @checked
    def accuracy(self, name: str) -> float:
        """Measured numerical error of a variable (its largest over times and entries); 0 for real runs."""
        if name not in self.data:
            raise unknown("variable", name, [str(known) for known in self.data])
        return float(self.data[name].attrs.get("accuracy", 0.0))

    def __repr__(self) -> str:
        a, d = self.data.attrs, self.data
        levels, K, M = self.start.R.shape
        P = self.start.m.shape[2]
        fixed = f"M = {M}, " * (M > 0) + f"{P} mean{'s' * (P > 1)}, " * (P > 0)
        what = f"{self.scale} trajectory: K = {K}, {fixed}{levels} level{'s' * (levels > 1)}"
        counted = "steps" if self.unit == STEPS else "times"
        if self.scale != "macro":
            what += f", N = {self.size}, {self.runs} run{'s' * (self.runs > 1)}, seed {a['seed']}"
        lines = [what]
        if a["inputs"] != "Gaussian":
            lines.append(f"  inputs: {a['inputs']}")
        mean = d["error"].mean("run").values
        lines.append(
            f"  {self.time.size} {counted} from {self.time[0]:g} to {self.time[-1]:g}, "
            f"error {mean[0]:.4g} -> {mean[-1]:.4g}"
        )
        if self.scale == "macro":
            measured = "not measured (the solution stopped early)"
            if "accuracy" in d["Q"].attrs:
                against = "over independent sweeps" if self.unit == STEPS else "by comparing solutions"
                how = "rounding" if a["averages"].startswith(("exact mean", "mean by")) else f"measured {against}"
                measured = f"within {max(self.accuracy(n) for n in self.variables):.1e} ({how})"
            system = a.get("system", "levels")
            data = None if self.problem is None else self.problem.data
            mixture = data is not None and data.reads_latent and data.components.weights.size > 1
            named = "" if system == "levels" and not mixture else f"; system: {system}"
            lines.append(f"  accuracy: {measured}; averages: {a['averages']}{named}")
            if "resamples" in a:
                fresh, error = (float(d[f"error_{name}"][0, -1]) for name in ("fresh", "standard_error"))
                stated = f"{fresh:.4g} ± {error:.1g} (standard error at the end, {a['resamples']} resamples)"
                lines.append(f"  on other rows of the same population: error {stated}")
        elif self.runs > 1:
            spread = float(d["error"].isel(time=-1).std("run", ddof=1))
            quadrature = self.accuracy("error")
            more = f"; its quadrature is within {quadrature:.1e}" if quadrature else ""
            bar = f"± {spread / np.sqrt(self.runs):.1g} (standard error at the end)"
            lines.append(f"  accuracy: error {mean[-1]:.4g} {bar}{more}")
        else:
            lines.append("  accuracy: a single run has no error bar; ask for runs=2 or more")
        lines.append(f"  cost: {a['cost']}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from ..plot.notebook import card

        return card(repr(self), lambda ax: self.plot("error", ax), describe="generalisation error against time")

    @checked
    def plot(
        self, name: str = "error", ax: Axes | None = None, *, x: str = "time", interactive: bool = False, **style: Any
    ) -> Any:
        """Draw a variable against time: mean over runs, with a band of one standard deviation.

        Parameters
        ----------
        ax: matplotlib axes to draw on; new ones, with a legend, by default.
        x: ``"samples"`` to draw against the samples seen, or ``"epoch"`` against passes, where there are any.
        interactive: a Plotly figure to hover over instead, which is returned.
        style: of the lines, as matplotlib takes it.
        """
        if interactive:
            if ax is not None or style:
                raise InputError("plot: axes and line styles are for matplotlib; leave them out, or interactive=True")
            from ..plot.interactive import trajectory as to_hover_over

            return to_hover_over(self, name, x=x)
        from ..plot.curves import trajectory

        return trajectory(self, name, ax, x, **style)

    @checked
    def animate(self, name: str, *, frames: int = 40, pause: int = 120) -> Animation:
        """A variable as it moves, ``"R"`` as units specialise or ``"hessian_values"`` where they were observed.

        A notebook shows a player; `save` writes a .gif, or an .html that needs no network.

        Parameters
        ----------
        frames: at most 120, of the times that were recorded. pause: milliseconds between two of them.
        """
        from ..plot.animation import animate

        return animate(self, name, frames, pause)

    def citations(self) -> list[str]:
        """The papers behind what was computed."""
        trained = self.problem is not None and self.problem.student.train_readout
        return citations(
            self.scale,
            self.data.attrs["averages"],
            self.start.fractions.size,
            trained_readout=trained,
            means="m" in self.data,
            observed="observed" in self.data.dims,
            manifold=self.start.latent is not None,
            full_batch=self.unit == STEPS,
        )

    @checked
    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to a netCDF file, whole or not at all, with a checksum that `load` verifies."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        return files.write_dataset(path, self.to_dataset())

    def to_dataset(self) -> xr.Dataset:
        """The data and where they began, as a file has them; `from_dataset` makes a trajectory of them again."""
        return self.data.assign(self._begin()).assign_attrs(size=-1 if self.size is None else self.size)

    def packed(self, attrs: Mapping[str, Any]) -> bytes:
        """`to_dataset` with further attributes as bytes, see `overlaps.interface.packed`."""
        return pack(self.data, {"size": -1 if self.size is None else self.size, **attrs}, self._begin())

    def _begin(self) -> dict[str, Any]:
        """Where it began, as variables of a file."""
        s = self.start
        begin: dict[str, Any] = {
            "start_Q": (("level", "student", "student_"), s.Q),
            "start_A": (("level", "student", "fixed"), s.A),
            "start_G": (("level", "fixed", "fixed_"), s.G),
            "start_v": (("student",), s.v),
            "start_u": (("teacher",), s.u),
        }
        if s.latent is not None:
            begin["start_T"] = (("teacher", "teacher_"), s.latent.T)
            begin["start_teacher_m"] = (("teacher", "mean"), s.latent.m)
        return begin


@checked
def load(path: str | os.PathLike[str]) -> Trajectory:
    """Read back a trajectory written by `Trajectory.save`.

    A file that is not what was written is a `DamagedFileError`. Versions before 0.2 wrote no checksum; a warning says
    that their files cannot be checked.
    """
    data, vouched = files.read_dataset("load", path)
    if not {"scale", "spec", "size"} <= data.attrs.keys() or "start_Q" not in data:
        raise InputError(f"load: {path} was not written by Trajectory.save")
    if not vouched:
        writer = f"overlaps {data.attrs.get('overlaps', 'of an unknown version')}"
        reason = f"was written by {writer} without a checksum; whether it is still what was written cannot be told"
        warnings.warn(f"load: {path} {reason}", UserWarning, stacklevel=2)
    return from_dataset(data)


def from_dataset(data: xr.Dataset) -> Trajectory:
    """A trajectory from what `Trajectory.to_dataset` made of it."""
    text = str(data.attrs["spec"])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about its decay, given before, when the problem was built
            problem = Problem.from_toml(text) if text else None
    except InputError:
        problem = None  # the data set it names is gone or has changed; the numbers are still good
    data = data.copy()
    size = int(data.attrs.pop("size"))
    Q, A, G, v, u = (data[f"start_{name}"].values for name in ("Q", "A", "G", "v", "u"))
    start = Start(Q, A, G, v, u, data["fraction"].values, data["eigenvalue"].values)
    if "start_T" in data:
        start = replace(start, latent=TeacherFields(data["start_T"].values, data["start_teacher_m"].values))
    if size > 0:
        start = replace(start, size=size, dimensions=np.rint(start.fractions * size).astype(np.int64))
    start = replace(start, own_readouts=True)
    return Trajectory(data.drop_vars([name for name in data if str(name).startswith("start_")]), problem, start)


def assemble(
    scale: str,
    problem: Problem,
    start: Start,
    times: Array,
    Q: Array,
    R: Array,
    m: Array,
    v: Array,
    method: Method,
    *,
    levels: tuple[Array, Array] | None,
    errors: Array | None = None,
    covariances: Array | None = None,
    more: Mapping[str, Any] | None = None,
    units: str = SAMPLES,
    seed: int = 0,
    cost: str,
) -> Trajectory:
    """Build a trajectory from Q (run, time, K, K), R (run, time, K, M), m (run, time, K, P), v (run, time, K).

    levels: Q, A per level. errors: (run, time) as measured on real samples; without them they are Gaussian averages.
    covariances: of the fields in each component, (run, time, components, K+M, K+M), where they are no multiples of each
    other. more: further variables, with their dimensions. units: of the times.
    """
    T, teacher_means = start.teacher_fields
    C, M = joined(Q, R, T) if covariances is None else covariances, start.u.size
    fields = np.concatenate([m, np.broadcast_to(teacher_means, (*m.shape[:2], M, m.shape[3]))], axis=2)
    count = C.shape[0] * C.shape[1]
    state = [x.reshape(count, *x.shape[2:]) for x in (C, v, fields)]
    averaged = errors is None
    if errors is None:
        if scale != "macro":
            method = _rule_for_runs(method, state)
        errors = method.errors(*state).reshape(C.shape[:2])
    variables: dict[str, Any] = {
        "Q": (("run", "time", "student", "student_"), Q),
        "R": (("run", "time", "student", "teacher"), R),
        "T": (("teacher", "teacher_"), T),
        "m": (("run", "time", "student", "mean"), m),
        "gram": (("mean", "mean_"), start.G.sum(0)[M:, M:]),
        "v": (("run", "time", "student"), v),
        "error": (("run", "time"), errors),
        **(more or {}),
    }
    if levels is not None:
        variables["Q_levels"] = (("run", "time", "level", "student", "student_"), levels[0])
        variables["R_levels"] = (("run", "time", "level", "student", "teacher"), levels[1][..., :M])
        variables["T_levels"] = (("level", "teacher", "teacher_"), start.T)
        variables["m_levels"] = (("run", "time", "level", "student", "mean"), levels[1][..., M:])
    variables = {name: value for name, value in variables.items() if name not in _absent(problem, start, m.shape[3])}
    batch = problem.update.batch if units == SAMPLES else 1
    coords: dict[str, Any] = {
        "time": ("time", times, {"units": units if batch == 1 else "steps per input dimension"}),
        "eigenvalue": ("level", start.eigenvalues),
        "fraction": ("level", start.fractions),
    }
    epochs = getattr(problem.algorithm, "epochs", None)
    if epochs is not None and start.size is not None:
        coords["epoch"] = ("time", epochs(times, start.size), {"long_name": "epochs"})
    if units == SAMPLES and start.size is not None and problem.algorithm.draws_samples:
        coords["samples"] = ("time", batch * start.size * times, {"long_name": "samples seen"})
    attrs = {"scale": scale, "seed": seed, "cost": cost, **provenance(problem, method.name, averaged)}
    result = Trajectory(xr.Dataset(variables, coords, attrs), problem, start)
    if not np.isfinite(errors).all():
        at = float(times[int(np.isfinite(errors).all(0).argmin())])
        raise NumericalError(
            f"{scale}: the average of the loss is not finite at time {at:g}; the loss grows too fast for fields of "
            "this size, or takes a value that is not a number",
            quantity="error",
            time=at,
        )
    if scale != "macro" and averaged and not isinstance(method, ClosedForm):
        _state_accuracy(result, method, state)  # macro measures the accuracy of all its variables itself
    return result


def _absent(problem: Problem, start: Start, means: int) -> set[str]:
    """Variables that a trajectory does not have, since there are no teachers, no means or no readout."""
    absent = {"R", "T", "R_levels", "T_levels"} if start.u.size == 0 else set()
    absent |= {"T_levels"} if start.latent is not None else set()
    absent |= {"m", "gram", "m_levels"} if means == 0 else set()
    return absent | ({"v"} if isinstance(problem.student, Softmax) else set())


def provenance(problem: Problem, averages: str, averaged: bool) -> dict[str, str | int]:
    """What was computed, of which inputs, and with which versions.

    averages: how Gaussian averages were evaluated; averaged: whether errors are such averages.
    """
    try:
        text = problem.to_toml()
    except InputError:
        text = ""
    data: Any = problem.data
    rows = {}
    if problem.learns_rows:  # digest of the rows with the seed of their order, and their number
        shuffle = getattr(problem.algorithm, "shuffle", 0)
        rows = {"rows": f"{data.digest}:{shuffle}", "row_count": len(data.rows)}
    return {
        **rows,
        "spec": text,
        "description": repr(problem),
        "inputs": problem.data.described(as_gaussian=averaged),
        "averages": "mean over all rows" if problem.data.table is not None and not averaged else averages,
        "overlaps": __version__,
        **_versions(),
    }


@cache
def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("numpy", "scipy", "numba")}


def _rule_for_runs(method: Method, state: list[Array]) -> Method:
    """The cheapest rule whose error is far below the spread of runs, where panels of several fields are dear.

    A rule that serves a differential equation takes tenths of a second for one state of four ReLU units, and every run
    has a state at every time.
    """
    if not getattr(method, "many_panels", False):
        return method
    some = [x[np.unique(np.linspace(0, len(x) - 1, 6).astype(int))] for x in state]
    rules = [method]
    for _ in range(COARSER):
        rules.append(rules[-1].coarser())
    for rule in reversed(rules[1:]):
        errors, others = rule.errors(*some), rule.check().errors(*some)
        if 2 * np.abs(errors - others).max() <= OF_RUNS * np.abs(errors).max():
            return rule
    return method


def _state_accuracy(result: Trajectory, method: Method, state: list[Array]) -> None:
    """Measure how good the error is as a quadrature, by an independent rule at a few of the points, and record it."""
    errors, times = result.data["error"].values.ravel(), result.time
    some = np.unique(np.linspace(0, errors.size - 1, 6).astype(int))
    other = method.check().errors(*(x[some] for x in state))
    difference = 2 * np.abs(other - errors[some])
    result.data["error"].attrs["accuracy"] = float(difference.max())
    if not difference.max() <= 0.02 * np.abs(errors).max():
        worst = int(difference.argmax())
        at = float(times[some[worst] % times.size])
        raise NumericalError(
            f"{result.scale}: the average of the loss did not converge at time {at:g}: {errors[some[worst]]:.3g} "
            f"against {other[worst]:.3g} by an independent rule ({method.name}); the overlaps are in .partial",
            quantity="error",
            time=at,
            partial=result,
        )


def largest_overlap(Q: Array, A: Array, v: Array, eigenvalues: Array, seen: Array, teachers: int) -> str:
    """Name and value of the largest overlap, for messages: Q (levels, K, K), A (levels, K, M+P), v (K,)."""
    R, m = A[:, :, :teachers], A[:, :, teachers:]
    totals = {"Q": np.tensordot(eigenvalues, Q, 1), "R": np.tensordot(seen, R, 1), "m": m.sum(0), "v": v}
    sizes = {n: np.nan_to_num(np.abs(x), nan=np.inf, posinf=np.inf) for n, x in totals.items() if x.size}
    name = max(sizes, key=lambda n: float(sizes[n].max()))
    index = ", ".join(str(int(i)) for i in np.unravel_index(int(sizes[name].argmax()), sizes[name].shape))
    return f"{name}[{index}] = {sizes[name].max():.3g}"
