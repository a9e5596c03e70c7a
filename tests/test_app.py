"""The page without a browser: states, what is refused, who may ask, and what many ask at once."""

from __future__ import annotations

import base64
import re
import time
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from benchmarks.page import Client
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import overlaps as ov
from figures import made, words
from overlaps.interface.files import read_dataset
from overlaps.pages.app import Page, explore_room, outliers_room, warming
from overlaps.pages.app.choice import Choice
from overlaps.pages.app.data_room import forecast_figures, told
from overlaps.pages.app.hessian_course import Mixed, along_training
from overlaps.pages.app.jobs import Job, Task
from overlaps.pages.app.outliers_room import time_of
from overlaps.pages.app.paper_figures import Figured, draw
from overlaps.pages.app.paper_models import model
from overlaps.pages.app.papers_room import NAMES, model_of, verdicts_of
from overlaps.pages.app.room import Room
from overlaps.pages.app.student_teacher import Explored, chain, knots_of, theory, training
from overlaps.pages.app.table_forecast import Tabled, columns, learn
from overlaps.pages.app.uploads import LARGEST, Uploads
from overlaps.papers import papers
from overlaps.papers.record import measured, recorded

STATES = [
    Explored(levels=7, exponent=1.15, units=3, activation="relu", rate=0.123456789, last=50.0, size=150, seed=7),
    Explored(schedule="0:0.5 10:0.1 33.3:0.02"),
    Tabled(rows="0" * 32 + ".csv", file="häuser & <b>.csv", target="price, €", standardise="yes"),
    Mixed(classes=5, variance=0.123, rate=0.7, size=90, moment=3),
    Figured("scaling", "fig4", "paper"),
    Figured("committee", "overlaps", numbers="units=2 rate=0.5"),
]


@pytest.fixture(scope="module")
def page():
    """A page without processes, whose theory is compiled here."""
    made = Page(processes=0)
    warming.warm(lambda: True)
    yield made
    made.close()


def uploaded(content: bytes) -> str:
    return "data:application/octet-stream;base64," + base64.b64encode(content).decode()


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.ROOM)
def test_a_link_and_a_file_restore_every_state(state: Choice) -> None:
    assert type(state).from_link(state.to_link()) == state
    assert type(state).from_toml(state.to_toml()) == state
    assert type(state).from_mapping({name: str(value) for name, value in state.to_mapping().items()}) == state


@pytest.mark.parametrize(
    ("kind", "link", "words"),
    [
        (Explored, "?units=5000", "units: expected at most 6, got 5000"),
        (Explored, "?size=1e99", "size: expected a whole number"),
        (Explored, "?rate=nan", "rate: expected a finite number"),
        (Explored, "?rate=-1", "rate: expected a number of at least 0.01"),
        (Explored, "?activation=exec", "unknown activation 'exec'"),
        (Explored, "?levles=3", "unknown setting 'levles'; did you mean 'levels'"),
        (Explored, "?schedule=0:1", "schedule: expected two knots or more"),
        (Explored, "?schedule=0:1+5:x", "schedule: expected time:rate"),
        (Explored, "?schedule=5:1+0:1", "increas"),
        (Explored, "?schedule=" + "0:1+" * 900, "schedule: expected at most"),
        (Explored, "?x=" + "1" * 5000, "link: longer than any"),
        (Mixed, "?variance=9", "variance: expected at most 1, got 9"),
        (Tabled, "?target=" + "x" * 201, "target: expected at most 200 characters"),
        (Figured, "?paper=none", "unknown paper 'none'"),
        (Figured, "?paper=scaling&figure=fig99", "unknown figure of scaling 'fig99'"),
        (Figured, "?numbers=units%3D9", "units: expected at most 4, got 9"),
        (Figured, "?numbers=rate%3Dos", "numbers: expected name=number"),
        (Figured, "?numbers=size%3D1", "unknown parameter of overlaps 'size'"),
    ],
)
def test_what_cannot_be_is_refused_by_name(kind: type[Choice], link: str, words: str) -> None:
    began = time.thread_time()
    with pytest.raises(ov.InputError) as caught:
        kind.from_link(link)
    assert words in str(caught.value) and len(str(caught.value)) < 400
    assert time.thread_time() - began < 0.05


def run(code: str, folder, monkeypatch) -> dict:
    """What Python has after running the code in a folder."""
    monkeypatch.chdir(folder)
    names: dict = {}
    exec(code, names)
    return names


def panels(figure: Figure) -> list:
    """What the panels of a figure show: words, scales, legend, and the numbers of lines and bars."""
    return [
        (
            [axes.get_xlabel(), axes.get_ylabel(), axes.get_title(), axes.get_xscale(), axes.get_yscale()],
            [text.get_text() for text in legend.get_texts()] if (legend := axes.get_legend()) else [],
            [np.round(np.asarray(line.get_xydata(), float), 12).tolist() for line in axes.lines],
            [bar.get_height() for bar in axes.patches if isinstance(bar, Rectangle)],
        )
        for axes in figure.axes
    ]


def test_the_code_of_explore_makes_the_same_numbers(tmp_path, monkeypatch) -> None:
    state = Explored(levels=2, rate=0.7, schedule="0:0.5 5:0.1", last=10.0, size=60, seed=3)
    made = run(state.code(), tmp_path, monkeypatch)
    shown = [function(state) for function in (theory, chain, training)]
    for name, result in zip(("macro", "meso", "micro"), shown, strict=True):
        assert made[name].data.identical(result.data) or np.array_equal(made[name].data["error"], result.data["error"])
    assert (tmp_path / "overlaps.png").stat().st_size > 1000
    figure = explore_room.still(shown, state)
    assert panels(made["figure"]) == panels(figure) and [len(axes.lines) for axes in figure.axes] == [3, 12, 1]
    assert [axes.get_ylabel() for axes in figure.axes] == ["generalisation error", "R", "rate"]
    assert figure.axes[1].get_legend().get_texts()[1].get_text() == "R[0, 1]"


def test_the_code_of_outliers_makes_the_same_numbers(tmp_path, monkeypatch) -> None:
    state = Mixed(classes=2, size=50, moment=4)
    made, found = run(state.code(), tmp_path, monkeypatch), along_training(state.at_all_times)
    shown = found.isel(observed=4)
    assert np.array_equal(made["eigenvalues"], shown["eigenvalues"])
    assert [made["law"].low, made["law"].high] == shown["edges"].values.tolist()
    assert made["law"].values.tolist() == shown["outliers"].values[: len(made["law"].values)].tolist()
    assert (tmp_path / "overlaps.png").stat().st_size > 1000
    figure = outliers_room.still(found, 4)
    assert panels(made["figure"]) == panels(figure) and [len(axes.get_ylabel()) > 0 for axes in figure.axes] == [1, 1]
    names = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert len(shown["outliers"].dropna("outlier")) > 1 and sorted(names) == sorted(set(names))


def test_the_code_of_a_table_says_the_same(tmp_path, monkeypatch, capsys) -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 4))
    table = np.column_stack([rows, rows.sum(1) + rng.standard_normal(300)])
    np.savetxt(tmp_path / "mine.csv", table, delimiter=",", header="a,b,c,<b>,label", comments="")
    state = Tabled(file="mine.csv", rows="there", target="label")
    run(state.code(), tmp_path, monkeypatch)
    assert columns(tmp_path / "mine.csv") == ["a", "b", "c", "<b>", "label"]
    told = learn(tmp_path / "mine.csv", state)
    assert [line.strip() for line in capsys.readouterr().out.strip().splitlines()[1:]] == [
        line.strip() for line in told.words.splitlines()[1:]
    ]
    assert str(tmp_path) not in told.words and told.pictures["png"].startswith(b"\x89PNG")


def test_the_code_of_a_table_whose_column_has_a_number_for_a_name(tmp_path, monkeypatch) -> None:
    path = tmp_path / "years.csv"
    table = np.random.default_rng(0).standard_normal((40, 4))
    np.savetxt(path, table, delimiter=",", header="age,size,2019,label", comments="")
    assert columns(path) == ["age", "size", "2019", "label"]
    state = Tabled(file="years.csv", rows="there", target="2019")
    monkeypatch.setattr(ov, "forecast", lambda data, seed: SimpleNamespace(plot=Figure, data=data))
    assert run(state.code(), tmp_path, monkeypatch)["result"].data == ov.Samples(path, target=2)


def test_refusals_call_a_file_as_its_visitor_does(page: Page) -> None:
    room = next(room for room in page.rooms if room.key == "data")
    rows = page.uploads.keep(uploaded(b"1;2\n3;4\n"), "semicolons.csv")
    chosen = Tabled(rows=rows, file="semicolons.csv", target="0")
    for name, task in room.tasks(chosen).items():
        with pytest.raises(ov.InputError) as caught:
            task.function(*task.arguments)
        page.jobs._jobs[task.key] = Job(task, done=True, words=str(caught.value))
        assert "semicolons.csv has no commas in line 1" in room.refused(chosen), name
        assert str(page.uploads.path(rows).parent) not in room.refused(chosen)


def test_rows_without_noise_are_shown(tmp_path) -> None:
    rows = np.random.default_rng(0).standard_normal((200, 3))
    np.savetxt(tmp_path / "exact.csv", np.column_stack([rows, rows.sum(1)]), delimiter=",")
    with pytest.warns(UserWarning, match="linear map of the columns"):
        found = learn(tmp_path / "exact.csv", Tabled(file="exact.csv", rows="there", target="3"))
    assert "many passes over 160 rows" in found.words and len(forecast_figures(found, False)) == 3 and told(found)


def test_the_code_of_papers_draws_the_same(tmp_path, monkeypatch) -> None:
    state = Figured("scaling", "fig7")
    made = run(state.code(), tmp_path, monkeypatch)
    drawn = draw(state).files
    (tmp_path / "page.nc").write_bytes(drawn["nc"])
    ours, theirs = (read_dataset("data", path)[0] for path in (tmp_path / "page.nc", made["data"]))
    assert ours.equals(theirs)
    assert b"<svg" in drawn["svg"]


def test_the_code_of_papers_draws_with_other_parameters(tmp_path, monkeypatch) -> None:
    made = run(Figured("scaling", "fig7", numbers="exponent=1.5").code(), tmp_path, monkeypatch)
    assert read_dataset("data", made["data"])[0]["sum_0"].attrs["beta"] == 1.5


def test_the_page_of_the_page_says_which_figures_have_controls() -> None:
    """And each parameter has a name for those who set it."""
    text = (Path(__file__).parents[1] / "docs" / "app.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    said: dict[bool, set[str]] = {True: set(), False: set()}
    having = True
    for row in rows:
        having = having and row[1] != "figures without"
        if len(row) == 3 and "`" in row[1]:
            said[having] |= {f"{row[0]} {name}" for name in re.findall("`([^`]+)`", row[1])}
    for having, names in said.items():
        assert names == {
            f"{paper.handle} {figure.name}"
            for paper in papers().values()
            for figure in paper.figures.values()
            if bool(figure.limits) == having
        }
    for paper in papers().values():
        for figure in paper.figures.values():
            assert figure.limits.keys() <= NAMES.keys()
            assert figure.allowed(figure.parameters) == figure.parameters  # the paper's are within the limits


EDGES = [
    ("scaling", "fig11", {"levels": 150}),
    ("scaling", "fig12", {"rate": 0.05, "exponent": 1.5}),
    ("scaling", "fig18", {"levels": 20, "units": 5, "exponent": 0.5}),
    ("scaling", "fig20", {"levels": 4}),
    ("outliers", "fig9.1", {"noise": 3.0}),
]


@pytest.mark.parametrize(("handle", "name", "numbers"), EDGES, ids=lambda part: str(part))
def test_figures_with_other_parameters_are_other_figures(handle: str, name: str, numbers: dict) -> None:
    """Of finite numbers, and what they are drawn with is on them."""
    chosen = Figured.of(handle, name, "quick", numbers)
    _, usual = made(handle, name)
    picture, data = chosen.shown.draw(True, chosen.other)
    assert all(np.isfinite(v.values).all() for v in data.variables.values() if v.dtype.kind in "fc")
    assert not data.equals(usual)
    for value in chosen.other.values():
        assert f"{value:g}" in words(picture)
    plt.close(picture)


@pytest.mark.parametrize("handle", papers())
def test_papers_show_what_was_measured(handle: str) -> None:
    shown = str(verdicts_of(handle))
    for claim in papers()[handle].claims.values():
        row = recorded()[handle, claim.name]
        assert measured(row) in shown and row["found"] in shown
    for figure in papers()[handle].figures:
        assert model(Figured(handle, figure)) is None or model_of(Figured(handle, figure))


def test_the_model_of_a_figure_has_its_parameters() -> None:
    """Where the figure itself says them: committee, 3 units at rate .1 to time 8000, ten classes to time 50."""
    paper = papers()["committee"].figures["overlaps"]
    _, found = model(Figured("committee"))
    assert isinstance(found, Explored) and found.last == 8000
    assert {"units": found.units, "rate": found.rate} == paper.parameters
    _, found = model(Figured("committee", numbers="units=2 rate=0.5"))
    assert isinstance(found, Explored) and (found.units, found.rate, found.last) == (2, 0.5, 1600)
    _, found = model(Figured("outliers", "fig2.1"))
    assert isinstance(found, Mixed) and found.classes == 10 and found.variance == 0.1 and time_of(found.moment) == "50"
    _, found = model(Figured("outliers", "fig2.1", numbers="noise=20"))
    assert isinstance(found, Mixed) and found.variance == 0.05
    _, found = model(Figured("scaling", "fig18", numbers="units=3 levels=6"))
    assert isinstance(found, Explored) and (found.units, found.levels, found.exponent) == (3, 6, 0.25)
    assert theory(Explored(units=3, rate=0.1, last=8000.0)).data["error"].values[0, -1] < 1e-6


def test_the_time_that_is_left_is_said_where_it_is_that_of_the_whole(page: Page, monkeypatch) -> None:
    monkeypatch.setattr(page.jobs, "prepared", len(page.jobs.prepare))
    job = Job(Task(theory), began=1.0, progress="macro 97 %, 00:00 left")
    said = {room.key: Room.words(room, None, {"it": job}) for room in page.rooms}
    assert said["explore"] == "Computing it (macro 97 %, 00:00 left)."
    assert said["papers"] == said["data"] == said["outliers"] == "Computing it (now macro 97 %)."


def test_a_path_that_was_drawn_is_a_schedule() -> None:
    path = "M-3,0.5L10,0.4L20,0.3L15,9L60,0.1L200,-1"
    assert knots_of(path, 100.0) == "0:0.5 10:0.4 20:0.3 60:0.1 100:0.0001"
    assert Explored(schedule=knots_of(path, 100.0)).knots[1] == (10.0, 0.4)
    assert knots_of("M5,1", 100.0) == ""


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("rows.exe", b"MZ", ".exe is not read"),
        ("rows", b"", "a file without suffix is not read"),
        ("large.csv", b"1" * (LARGEST + 3), "at most 20 MB here"),
    ],
)
def test_files_are_refused_before_they_are_written(name: str, content: bytes, words: str) -> None:
    uploads = Uploads()
    try:
        with pytest.raises(ov.InputError, match=words):
            uploads.keep(uploaded(content), name)
        with pytest.raises(ov.InputError, match="arrive whole"):
            uploads.keep("data:text/csv;base64,%%%%", "rows.csv")
        for rows in ("../../etc/passwd", "0" * 32 + ".csv", ""):
            with pytest.raises(ov.InputError, match="drop it again"):
                uploads.path(rows)
    finally:
        uploads.close()


def test_uploads_are_bounded_together(monkeypatch) -> None:
    monkeypatch.setattr("overlaps.pages.app.uploads.TOGETHER", 25)
    uploads = Uploads()
    try:
        first, second, third = (uploads.keep(uploaded(bytes([i]) * 10), "rows.npy") for i in range(3))
        assert uploads.path(second).read_bytes() == b"\1" * 10 and uploads.path(third).is_file()
        with pytest.raises(ov.InputError, match="drop it again"):
            uploads.path(first)
    finally:
        folder = uploads.path(third).parent
        uploads.close()
    assert not folder.exists()


def test_pickles_are_never_opened(tmp_path) -> None:
    class Evil:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was opened",))

    np.save(tmp_path / "evil.npy", np.array([[Evil()]], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "evil.npz", X=np.array([[Evil()]], dtype=object), y=np.zeros(1))
    with pytest.raises(ov.InputError, match="it holds no numbers that can be read"):
        columns(tmp_path / "evil.npy")
    for name, target in (("evil.npy", "0"), ("evil.npz", "y")):
        with pytest.raises(ov.InputError):
            learn(tmp_path / name, Tabled(file=name, rows="there", target=target))


def moved(state: Explored) -> dict:
    return {f"{name}_value": value for name, value in state.to_mapping().items()}


ABSURD = [
    {"units_value": 10**9},
    {"last_value": 1e300},
    {"size_value": "9" * 10**5},
    {"schedule_value": "0:1 " * 10**5},
    {"rate_value": {"a": [1]}},
    {"activation_value": "__import__('os')"},
]


@pytest.mark.parametrize("absurd", ABSURD, ids=lambda absurd: next(iter(absurd)))
def test_absurd_requests_are_refused_in_milliseconds(page: Page, absurd: dict) -> None:
    client, state = Client(page), moved(Explored())
    began = time.thread_time()
    found = client.ask("error.figure", **{**state, **absurd})
    assert time.thread_time() - began < 0.05
    field = next(iter(absurd)).removesuffix("_value")
    assert field in found["explore-refused"]["children"] and len(found["explore-refused"]["children"]) < 300
    assert "error" not in found and "explore-choice" not in found


def test_a_training_of_minutes_is_not_begun(page: Page) -> None:
    state = Explored(size=5000, last=1000.0)
    room = page.rooms[0]
    assert room.tasks(state).keys() <= {"theory"}  # which a busy machine does not give at once
    assert "Theory only. size: 5.0e+06 steps take minutes" in room.words(state, {})


def test_only_this_page_may_ask(page: Page) -> None:
    client = page.app.server.test_client()
    assert client.get("/").status_code == 200
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 403
    assert client.get("/_dash-layout", headers={"Origin": "http://evil.example"}).status_code == 403
    policy = dict(part.strip().split(" ", 1) for part in client.get("/").headers["Content-Security-Policy"].split(";"))
    assert "unsafe" not in policy["script-src"]
    assert policy["default-src"] == policy["script-src"].split(" ")[0] == "'self'"
    first, second = (client.get("/_dash-layout").get_json() for _ in range(2))
    ids = [next(part["props"]["data"] for part in layout["props"]["children"] if part["props"]["id"] == "visitor")
           for layout in (first, second)]  # fmt: skip
    assert ids[0] != ids[1] and len(ids[0]) == 32


def test_the_server_asks_for_loopback_and_refuses_a_port_that_is_taken(monkeypatch) -> None:
    import socket

    from overlaps.pages.app import server

    class Nothing:
        def __init__(self, host: str) -> None:
            self.app = type("App", (), {"server": None})
            assert host == "127.0.0.1"

        def close(self) -> None:
            pass

    monkeypatch.setattr(server, "Page", Nothing)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ov.InputError, match=r"port: \d+ of 127.0.0.1 cannot be used"):
            server.serve(taken.getsockname()[1])
