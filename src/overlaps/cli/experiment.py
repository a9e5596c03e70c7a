"""One problem, three scales, one command: what `overlaps run` does.

A spec is the problem as `Problem.to_toml` writes it, and a table ``[run]`` that says where to start and what to run.
"""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..interface import files, spec
from ..interface.checks import new_folder, number, steps, whole
from ..interface.errors import DamagedFileError, InputError, NumericalError, unknown
from ..problem.start import Start, draw
from ..problem.statement import ROLES, Problem
from ..trajectory.dataset import Trajectory, load
from ..trajectory.scales import sample, solve, train
from ..trajectory.times import logtimes
from .cost import check_cost, macro_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..compare.verdict import Verdict

NOTICED = 5.0  # seconds of the theory from which it is said how many they are
FINISHED = "runs"  # folder of the runs that are finished, which more of them extend


@dataclass(frozen=True)
class Plan:
    """Where to start, when to observe, how often to run.

    Parameters
    ----------
    size, seed, scale: as for `draw`; `seed` also seeds the runs.
    first, last, count: as for `logtimes`; of `FullBatch` all steps are observed, and these stay as they are.
    meso_runs, micro_runs: number of runs; 0 leaves the scale out; hidden manifolds and many passes over rows
        have no meso.
    """

    size: int = 1000
    seed: int = 0
    scale: float = 0.5
    first: float = 0.1
    last: float = 10.0
    count: int = 40
    meso_runs: int = 100
    micro_runs: int = 16

    def __post_init__(self) -> None:
        for name, least, most in (
            ("size", 1, 10**12),
            ("seed", 0, 2**63 - 1),
            ("count", 2, 10**6),
            ("meso_runs", 0, 10**7),
            ("micro_runs", 0, 10**7),
        ):
            object.__setattr__(self, name, whole(name, getattr(self, name), least=least, most=most))
        object.__setattr__(self, "scale", number("scale", self.scale, least=0))
        object.__setattr__(self, "first", number("first", self.first, above=0))
        object.__setattr__(self, "last", number("last", self.last, above=self.first))
        steps(self.last, self.size)


@dataclass(frozen=True)
class Experiment:
    """A problem and a plan for it."""

    problem: Problem
    run: Plan = field(default_factory=Plan)

    def __post_init__(self) -> None:
        check_cost(self.problem, self.run)
        self.problem.data.mean_vectors(self.run.size)
        self.problem.data.dimensions(self.run.size)
        given = [name for name in ("first", "last", "count") if getattr(self.run, name) != getattr(Plan, name)]
        if self.problem.algorithm.times_are_steps and given:
            raise InputError(f"{given[0]}: times of FullBatch are its steps, all of them; leave {given[0]} out")

    @property
    def no_chain(self) -> str:
        """Why there is no chain of overlaps, in words; empty where there is one."""
        if self.problem.data.reads_latent:
            return "a teacher that reads a latent has none"
        if self.problem.classifies_rows or not self.problem.data.commuting:
            return "classes whose covariances do not commute share no eigenbasis"
        if self.problem.learns_rows and self.problem.algorithm.engine[1] != "online.meso":
            return "rows that come back are not Gaussian inputs"
        return ""

    @classmethod
    def from_toml(cls, text: str) -> Experiment:
        """Read a spec: a problem, and optionally a table [run]."""
        table = spec.parse(text)
        plan = table.pop("run", {})
        names = {*Problem.__dataclass_fields__, "run"}
        for name in table:
            if name not in names:
                raise unknown("field in spec", name, names)
        problem = spec.from_mapping(Problem, table, ROLES)
        plan = spec.from_mapping(Plan, plan, ROLES, "spec.run")
        try:
            return cls(problem, plan)
        except InputError as error:
            raise InputError(f"spec.run: {error}") from None

    def to_toml(self) -> str:
        """The spec; `from_toml` reads back an equal experiment."""
        return spec.write({**spec.to_mapping(self.problem), "run": spec.to_mapping(self.run)})

    def describe(self) -> str:
        """What would be computed and at what cost, without computing it."""
        from ..averages import method_for

        p, r = self.problem, self.run
        how = method_for(p, p.teacher_readouts)
        dims = p.data.dimensions(r.size)
        total, when = p.algorithm.extent(r.size, r.first, r.last)
        seconds = macro_seconds(p, r)
        return "\n".join(
            [
                f"inputs: {p.data.described(as_gaussian=False)}",
                f"{p.describe_networks()}, "
                f"{dims.size} level{'s' * (dims.size > 1)}, {p.loss if isinstance(p.loss, str) else p.loss.name} loss",
                f"size {r.size} ({dims.min()} to {dims.max()} dimensions per level), {when}",
                f"averages: {how.name}" + f"; macro: about {seconds:.1g} s of CPU time" * (seconds > NOTICED),
                (f"meso: not there, {self.no_chain}; " if self.no_chain else f"meso: {r.meso_runs} x {total:,} steps; ")
                + f"micro: {r.micro_runs} x {total:,} steps",
            ]
        )

    def execute(self, out: str | os.PathLike[str], *, progress: bool = True) -> ExperimentResult:
        """Run all scales and compare them; everything is written to the folder `out` as it is computed.

        A folder that a run of the same spec has left, finished or interrupted, is gone on with, also where there are
        more runs now: what it holds is not computed again.
        """
        from ..compare.verdict import compare  # scipy.stats, for which a check of a spec need not wait

        plan = self.run
        folder = self._folder(out)
        start = draw(self.problem, plan.size, seed=plan.seed, scale=plan.scale)
        times = None if self.problem.algorithm.times_are_steps else logtimes(plan.first, plan.last, plan.count)
        files.write(folder / "spec.toml", self.to_toml())
        results: dict[str, Trajectory] = {}
        jobs: dict[str, Any] = {"macro": lambda: solve(self.problem, start, times, progress=progress)}
        options: dict[str, Any] = {"seed": plan.seed, "store": folder / FINISHED, "progress": progress}
        if plan.meso_runs and not self.no_chain:
            jobs["meso"] = lambda: sample(self.problem, start, times, runs=plan.meso_runs, **options)
        if plan.micro_runs:
            jobs["micro"] = lambda: train(self.problem, start, times, runs=plan.micro_runs, **options)
        wanted = {"meso": plan.meso_runs, "micro": plan.micro_runs}
        for name, job in jobs.items():
            before = _computed_before(folder / f"{name}.nc", self.problem, start)
            if before is not None and before.runs == wanted.get(name, before.runs):
                results[name] = before
                continue
            try:
                results[name] = job()
            except NumericalError as error:
                if error.partial is not None:
                    kept = error.partial.save(folder / f"{name}.partial.nc")
                    raise NumericalError(
                        f"{error}; what came before is in {kept}",
                        quantity=error.quantity,
                        time=error.time,
                        partial=error.partial,
                    ) from None
                raise
            results[name].save(folder / f"{name}.nc")
        pairs = [("macro", name) for name in results if name != "macro"]
        if {"meso", "micro"} <= results.keys():
            pairs.append(("meso", "micro"))
        outcome = ExperimentResult(
            self,
            folder,
            results,
            {f"{a} against {b}": compare(results[a], results[b], progress=progress) for a, b in pairs},
        )
        outcome.write()
        return outcome

    def _folder(self, out: str | os.PathLike[str]) -> Path:
        """A new folder, or one that a run of this spec has left, with as many runs or with fewer."""
        folder = Path(out)
        if not os.path.isdir(folder):  # False for names that cannot be, which are refused
            return new_folder("out", out)
        files.clear_drafts(folder)
        if not any(folder.iterdir()):
            return folder
        try:
            before = (folder / "spec.toml").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return new_folder("out", out)  # refused
        if before != self.to_toml() and not self._extends(before):
            raise InputError(
                f"out: {folder} exists already and holds results of another spec; name a new folder, or run the spec "
                "that is in it to go on, with as many runs or more"
            )
        return folder

    def _extends(self, text: str) -> bool:
        """Whether this is the experiment of a spec but for more runs."""
        try:
            before = Experiment.from_toml(text)
        except InputError:
            return False
        fewer = {name: min(getattr(before.run, name), getattr(self.run, name)) for name in ("meso_runs", "micro_runs")}
        return replace(self, run=replace(self.run, **fewer)).to_toml() == text


def _computed_before(path: Path, problem: Problem, start: Start) -> Trajectory | None:
    """What an interrupted run of this version wrote of a scale; a damaged file causes a warning and is not used."""
    if not path.exists():
        return None
    try:
        found = load(path)
    except DamagedFileError as error:
        warnings.warn(f"{error}; it is computed again", UserWarning, stacklevel=3)
        return None
    return replace(found, problem=problem, start=start) if found.data.attrs["overlaps"] == __version__ else None


@dataclass(frozen=True, eq=False)
class ExperimentResult:
    """What an experiment gave, and where it is."""

    experiment: Experiment
    folder: Path
    results: dict[str, Trajectory]
    verdicts: dict[str, Verdict]

    @property
    def figure_path(self) -> Path:
        return self.folder / "figure.png"

    @property
    def verdict_path(self) -> Path:
        return self.folder / "verdict.txt"

    def figure(self) -> Figure:
        """Error and overlaps against time, all scales laid over each other."""
        from ..plot.curves import outcome

        return outcome(self.results, {name: v.verdict for name, v in self.verdicts.items()})

    def write(self) -> None:
        """Figure, verdicts and the z-scores behind them, next to the trajectories."""
        import matplotlib.pyplot as plt

        picture = self.figure()
        files.write_picture(self.figure_path, picture, dpi=150)
        plt.close(picture)
        text = "\n\n".join(repr(v) for v in self.verdicts.values()) or "macro alone: nothing to compare"
        text += self._without_meso
        files.write(self.verdict_path, text + "\n")
        summary = {name: v.to_dict() for name, v in self.verdicts.items()}
        files.write(self.folder / "verdict.json", json.dumps(summary, indent=2) + "\n")
        for name, verdict in self.verdicts.items():
            files.write_dataset(self.folder / f"points {name}.nc", verdict.table)

    @property
    def _without_meso(self) -> str:
        why = self.experiment.no_chain
        return f"\nmeso: not there, {why}" if why and self.experiment.run.meso_runs else ""

    def __repr__(self) -> str:
        lines = [repr(r) for r in self.results.values()] + [repr(v) for v in self.verdicts.values()]
        return "\n".join(lines) + self._without_meso
