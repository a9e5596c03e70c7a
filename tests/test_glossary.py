"""One language: the glossary has every name of specs and results, with its dimensions, and no other.

Fields are read off the classes, and names and dimensions off what small problems return. What is not in
docs/glossary.md, or is there and nowhere else, fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import overlaps as ov
from images import flat
from overlaps import deep, giant_step
from overlaps.cli.experiment import Plan
from overlaps.papers import panels, papers
from overlaps.plot.curves import LABELS
from overlaps.problem.statement import ROLES
from overlaps.trajectory.dataset import SAMPLES, STEPS

PAGE = Path(__file__).parents[1] / "docs" / "glossary.md"
Row = list[str]


@cache
def tables() -> dict[str, list[Row]]:
    """Rows of the tables under each heading, without their first lines."""
    found: dict[str, list[Row]] = {}
    heading, before = "", ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("|"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if before.startswith("|") and set(line) - set("|-"):
                found.setdefault(heading, []).append(cells)
        before = line
    return found


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def owned(heading: str) -> list[tuple[str, str]]:
    """(name, owner) of all rows."""
    return [(name, owner) for row in tables()[heading] for name in names(row[0]) for owner in names(row[1])]


def own_fields(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) else kind._fields


def the_same(found: set[Any], told: list[Any]) -> None:
    assert len(told) == len(set(told)), f"twice in the glossary: {sorted(x for x in told if told.count(x) > 1)}"
    assert found == set(told), f"missing {sorted(found - set(told))}, unknown {sorted(set(told) - found)}"


def test_the_page_is_read() -> None:
    """The reader itself: one that finds no rows would pass everything."""
    assert ("rate", "OnlineSGD") in owned("Fields of a spec")
    assert ["`v`", "`run, time, student`", "readout of the student"] in tables()["Trajectory"]
    assert len(tables()["Words"]) > 30


def test_fields() -> None:
    """Of what the library exports: a model of one new file has its own docstring to tell of it."""
    kinds = {ov.Problem, Plan, *(kind for role in ROLES.values() for kind in role if kind.__name__ in ov.__all__)}
    kinds |= {
        ov.GiantStep,
        giant_step.GiantStepSetting,
        giant_step.TwoClasses,
        giant_step.TrainingSet,
        ov.spectra.Observer,
    }
    the_same({(name, kind.__name__) for kind in kinds for name in own_fields(kind)}, owned("Fields of a spec"))


def test_laws() -> None:
    public = [getattr(ov.laws, name) for name in ov.laws.__all__]
    kinds = [kind for kind in public if isinstance(kind, type)]
    the_same({(name, kind.__name__) for kind in kinds for name in own_fields(kind)}, owned("Laws"))


def test_start() -> None:
    properties = {name for name, value in vars(ov.Start).items() if isinstance(value, property)}
    told = [name for row in tables()["A start"] for name in names(row[0])]
    the_same(properties | set(own_fields(ov.Start)), told)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[xr.Dataset]]:
    """What small problems return, by the heading of its table; between them they have all that results can carry.

    One-pass meso is left out: the function that records it is that of micro, and its kernels take long to compile.
    """
    problem = ov.Problem(
        data=ov.GaussianMixture(means=2, variance=0.1, spectrum=ov.Spectrum([1.5, 0.5])),
        teacher=ov.Committee(1),
        student=ov.Committee(2, train_readout=True),
        algorithm=ov.OnlineSGD(0.5),
    )
    start, times = ov.draw(problem, size=40, scale=0.5), [0.0, 0.5]
    macro = ov.solve(problem, start, times, levels=True)
    watch = ov.spectra.Observer(keep_weights=True)
    micro = ov.train(problem, start, times, runs=2, levels=True, observe=watch, progress=False)
    batch = ov.Problem(
        data=ov.GaussianMixture(gram=[[0.5]]),
        teacher=ov.Committee(1, "linear"),
        student=ov.Committee(1, "linear"),
        algorithm=ov.FullBatch(1, 0.2),
    )
    begin = ov.draw(batch, size=20, scale=0.5)
    theory = ov.solve(batch, begin, levels=True)
    runs = [scale(batch, begin, runs=2, levels=True, kernels=True, progress=False) for scale in (ov.sample, ov.train)]
    process = ov.full_batch.alternative(batch, begin, runs=2, sigma=0.5, z=1.0, progress=False)
    manifold = ov.Problem(
        data=ov.HiddenManifold(latent_ratio=0.5, latent=ov.LatentMixture()),
        teacher=problem.teacher,
        student=problem.student,
        algorithm=problem.algorithm,
    )
    run = ov.train(manifold, ov.draw(manifold, size=20), times, runs=1, levels=True, progress=False)
    with xr.open_dataset(run.save(tmp_path_factory.mktemp("kept") / "run.nc"), engine="h5netcdf") as opened:
        kept = opened.load()
    setting = giant_step.GiantStepSetting(giant_step.TwoClasses(), ov.GiantStep(), size=16)
    unseen = giant_step.scaled(setting.direction, [0.1, 0.5])
    predicted, measured = giant_step.solve(setting, unseen), giant_step.train(setting, unseen, runs=2, points=8)
    pixels = np.random.default_rng(0).random((50, 2, 2))
    images = deep.Images.from_arrays(pixels, np.repeat(list("abcde"), 10))
    seen, others = images.select(["a", "b"]), images.select(["c", "d", "e"])
    table = np.random.default_rng(1).standard_normal((60, 3))
    labelled = ov.Samples(table, table[:, 0] + table[:, 1] ** 2)
    many = ov.Problem(data=labelled, student=ov.Committee(1, "linear"), algorithm=ov.MultiPass(0.2, samples=40))
    fresh = ov.solve(many, ov.draw(many, 3, scale=0.0), times, resamples=10)
    classifier = ov.Problem(
        data=ov.Samples(table, table[:, 0] > 0),
        student=ov.Committee(1, "linear"),
        algorithm=ov.OnlineSGD(0.5),
        loss="logistic",
    )
    decided = ov.train(classifier, ov.draw(classifier, 3, scale=0.0), times, runs=2, progress=False)
    short: dict[str, Any] = {"epochs": 1, "runs": 1, "progress": False}
    return {
        "Trajectory": [
            *(result.data for result in (macro, micro, theory, *runs, process, fresh, decided)),
            kept,
        ],
        "Verdict": [ov.compare(theory, runs[0], finite_size=False).table],
        "Scaling": [ov.check_scaling(batch, [20, 40], runs=10, progress=False).data],
        "Forecast": [ov.forecast(ov.PowerLaw(5, 1.0)).data],
        "RowsForecast": [ov.forecast(labelled, progress=False).curves],
        "full_batch.fluctuations": [ov.full_batch.fluctuations(batch, begin, accuracy=1.0, progress=False)],
        "full_batch.continued": [ov.full_batch.continued(batch, begin, runs=3, progress=False)],
        "giant_step.Scores": [predicted.data, measured.data],
        "Scores.against": [measured.against(predicted)],
        "deep.PairTraining": [deep.train_pair(seen, {"set": others}, flat, units=4, classes=3, **short).data],
        "deep.MetricTraining": [deep.train_metric(seen, others, flat, batch=(2, 5), **short).data],
    }


def everything(results: dict[str, list[xr.Dataset]]) -> Iterator[xr.Dataset]:
    return (data for each in results.values() for data in each)


def test_variables(results: dict[str, list[xr.Dataset]]) -> None:
    """Every variable is in the table of its result, with these dimensions in this order."""
    headed = PAGE.read_text(encoding="utf-8").split("\n## Variables\n")[1].split("\n## ")[0]
    assert set(results) == set(re.findall(r"^### (.+)$", headed, re.M))
    for heading, each in results.items():
        found = {(str(name), ", ".join(map(str, data[name].dims))) for data in each for name in data.data_vars}
        the_same(found, owned(heading))


def test_dimensions(results: dict[str, list[xr.Dataset]]) -> None:
    found = {str(name) for data in everything(results) for name in (*data.dims, *data.coords)}
    the_same(found, [name for row in tables()["Dimensions and coordinates"] for name in names(row[0])])


def test_words_that_everything_else_uses_are_explained() -> None:
    words = {word.strip() for row in tables()["Words"] for word in row[0].split(",")}
    needed = "schedule, batch, sample, samples, epoch, training error, test error, error, group, cell, store, fresh"
    assert set(needed.split(", ")) <= words


def test_a_batch_is_explained_for_every_algorithm_that_has_one() -> None:
    """One word for a number, a share and a pair, so each owner is named where the word is explained."""
    meaning = next(row[1] for row in tables()["Words"] if row[0] == "batch")
    owners = {owner for name, owner in owned("Fields of a spec") if name == "batch"}
    assert len(owners) > 2 and owners | {"deep.train_metric"} <= set(names(meaning))


def test_times_have_units(results: dict[str, list[xr.Dataset]]) -> None:
    times = [data[name] for data in everything(results) for name in ("time", "observed") if name in data.coords]
    units = {time.attrs["units"] for time in times}
    assert units == {SAMPLES, STEPS}
    row = next(row for row in tables()["Dimensions and coordinates"] if names(row[0]) == ["time"])
    assert all(unit in row[1] for unit in units)


def test_labels_of_papers() -> None:
    """Figures of all papers name time and error as plots of trajectories do."""
    assert f"time ({SAMPLES})" == panels.TIME
    assert LABELS["error"] == panels.ERROR


def test_symbols_are_of_known_things(results: dict[str, list[xr.Dataset]]) -> None:
    known = {str(name) for data in everything(results) for name in (*data.variables, *data.dims)}
    known |= {name for name, _ in (*owned("Fields of a spec"), *owned("Laws"))}
    known |= {name for row in tables()["A start"] for name in names(row[0])}
    assert {name for row in tables()["Symbols of papers"] for name in names(row[0])} <= known
    head = next(line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| name | here |"))
    assert set(names(head)) == set(papers())
