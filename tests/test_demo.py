"""The demonstration: what it writes, draws and says, at small sizes; and that the picture of the README is its own."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib.image as image
import matplotlib.pyplot as plt
import numpy as np
import pytest

import overlaps as ov
from command import command
from overlaps.cli import demo
from overlaps.cli.experiment import Experiment

PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "demo.png"
CHANGES = ("size = 1000", "size = 60"), ("last = 400.0", "last = 60.0"), ("count = 80", "count = 20")
SMALL_SPEC = demo.SPEC
for old, new in CHANGES:
    SMALL_SPEC = SMALL_SPEC.replace(old, new)
SMALL = demo.Sizes(
    SMALL_SPEC, 10**4, 2, mixture=60, samples=600, mixture_runs=2, observations=4, image_runs=3, plan_runs=4
)
PAIRS = ("macro against meso", "macro against micro", "meso against micro")


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> demo.Demonstration:
    return demo.demonstrate(tmp_path_factory.mktemp("demo") / "out", SMALL, progress=False)


def test_spec_round_trips():
    experiment = Experiment.from_toml(demo.SPEC)
    assert Experiment.from_toml(experiment.to_toml()) == experiment
    assert all(demo.SPEC.count(old) == 1 for old, _ in CHANGES)


def test_everything_is_written(small):
    names = {"plan", "spec.toml", "macro.nc", "meso.nc", "micro.nc", "figure.png", "verdict.txt", "verdict.json"}
    names |= {"runs", "large macro.nc", "large meso.nc"} | {f"outliers {n}.nc" for n in ("macro", "micro", "predicted")}
    names |= {f"images {student} {scale}.nc" for student in demo.IMAGES for scale in ("meso", "micro")}
    pairs = {*PAIRS, *(demo.on_images(student) for student in demo.IMAGES)}
    assert {path.name for path in small.folder.iterdir()} == names | {f"points {pair}.nc" for pair in pairs}
    verdicts = json.loads((small.folder / "verdict.json").read_text())
    assert set(verdicts) == pairs
    text = small.verdict_path.read_text()
    assert all(f"{v['verdict']}: {v['theory']} against {v['simulation']}" in text for v in verdicts.values())
    written = Experiment.from_toml((small.folder / "spec.toml").read_text())
    assert written == Experiment.from_toml(SMALL_SPEC)  # `overlaps run` starts from it
    assert ov.load(small.folder / "large meso.nc").size == SMALL.large


def test_picture_has_six_panels(small):
    figure = small.figure()
    titles = [ax.get_title() for ax in figure.axes]
    plt.close(figure)
    assert [title[:3] for title in titles] == ["(a)", "(b)", "(c)", "(d)", "(e)", "(f)"]
    assert small.verdicts["macro against micro"].verdict in titles[0]


def test_picture_of_the_readme_is_of_this_shape_and_small(small):
    assert image.imread(PICTURE).shape == image.imread(small.figure_path).shape
    assert PICTURE.stat().st_size < 200_000


def test_command(tmp_path, monkeypatch, capsys, small):
    """The command prints what was found and where it is; here of a demonstration that has been made already."""
    monkeypatch.setattr(demo, "demonstrate", lambda out: small)
    code, out, err = command(monkeypatch, capsys, "demo", "--out", str(tmp_path / "x"))
    assert code == 0, err
    for part in (repr(small), str(small.figure_path), str(small.verdict_path), "overlaps run"):
        assert part in out
    assert "(a tenth of the error lost) at time: predicted not by the end, trained not by the end in 6 of 6 runs" in out
    assert all(f"{pair}: {small.verdicts[pair].verdict}" in out for pair in PAIRS)


def test_a_folder_that_exists_is_refused(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    code, _, err = command(monkeypatch, capsys, "demo", "--out", str(tmp_path))
    assert code == 2 and err.startswith("overlaps: out: ") and "exists already" in err and len(err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_leaving_times(small):
    """Against the inverse function, interpolated."""
    falling = small.outliers.macro
    error = falling.data["error"].values[0]
    assert np.all(np.diff(error) < 0)
    level = float(0.3 * error[1] + 0.7 * error[2])
    assert demo.leaving(falling, level) == pytest.approx([np.interp(-level, -error, falling.time)])
    assert np.isnan(demo.leaving(falling, 0.5 * float(error[-1]))).all()


def test_a_tenth_is_lost_where_the_law_of_escape_says(small):
    """The time is from one growing way, the law has all of them."""
    large = small.large
    R = large.macro.data["R"].sel(run=0, time=large.flat).values
    lost = large.plateau.escape([large.left - large.flat], R)
    assert lost / large.plateau.error == pytest.approx(demo.LOST, rel=1e-3)


def test_what_is_not_seen_is_expected_at_the_edge(small):
    o = small.outliers
    outlier, edge, count = (o.predicted[name].values for name in ("outlier", "edge", "count"))
    assert o.expected.shape == o.measured.shape[1:] == (SMALL.observations, demo.CLASSES + 1)
    assert np.all(o.expected[:, -1] == edge) and np.all(o.expected >= edge[:, None])
    seen = np.arange(demo.CLASSES) < count[:, None]
    assert np.all((outlier > edge[:, None]) == seen) and count[0] > count[-1]
