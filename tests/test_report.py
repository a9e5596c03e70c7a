"""The report: one file without a network that says what the folder says, whatever the folder says."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import overlaps as ov
from browser import browsing, complaints, narrowed, offers_no_upload, requests
from command import command
from overlaps.cli.experiment import Experiment
from overlaps.cli.sweep_spec import SweepSpec, write
from overlaps.pages.report import Document, Table, read
from overlaps.pages.report.sweeps import of_sweep
from overlaps.sweep.sweeping import launch
from overlaps.sweep.workers import chosen
from specs import two_units

SPEC = two_units('[data]\nkind = "GaussianInputs"', size=100, last=5.0, count=8, meso_runs=10, micro_runs=6)
SWEEP = """
[sweep]
seeds = 2
scales = ["macro"]
[sweep.over]
algorithm.rate = [0.1, 0.5, 1.0]
label_noise = [0.0, 0.1, 0.2]
"""
NASTY = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def run(folder: Path) -> Path:
    return Experiment.from_toml(SPEC).execute(folder / "run", progress=False).folder


@pytest.fixture(scope="module")
def forecast(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((400, 6))
    made = ov.forecast(ov.Samples(rows, rows.sum(1) + rng.standard_normal(400)), runs=4, progress=False)
    (folder / "learn").mkdir()
    made.write(folder / "learn")
    return folder / "learn"


@pytest.fixture(scope="module")
def sweep(folder: Path) -> Path:
    spec, out = SweepSpec.from_toml(SPEC + SWEEP), folder / "sweep"
    made = spec.planned(out)
    launch(made, chosen(1, None, 1), made.missing(), wait=True, progress=False)
    write(made, SPEC + SWEEP, out)
    return out


@pytest.fixture(scope="module")
def record(folder: Path) -> Path:
    """A record of verify, in which somebody has written HTML."""
    row = {"paper": "scaling", "claim": "one", "where": "eq. (1)", "statement": NASTY, "method": "measured",
           "recorded": "holds", "found": "holds", "verdict": "holds", "value": 1.5, "error": 0.1, "note": NASTY,
           "install": None, "seconds": 1.0, "code": "x"}  # fmt: skip
    rows = [row, {**row, "claim": "two", "found": "fails", "paper": f"other {NASTY}"}]
    about = {"complete": True, "quick": True, "as_recorded": False, "counts": {}, "claims": rows}
    path = folder / "verify.json"
    path.write_text(json.dumps(about))
    return path


def test_a_run_is_told_as_its_files_tell_it(run: Path) -> None:
    document = read(run)
    verdicts = json.loads((run / "verdict.json").read_text())
    assert [line.split(": ")[0] for line in document.answer] == list(verdicts)
    assert "chain and training" in document.answer[-1] and "theory" not in document.answer[-1]
    assert document.verdict not in " ".join(document.answer) and "Meso is the chain" in document.terms
    assert all(verdict["reason"][1:] in line for line, verdict in zip(document.answer, verdicts.values(), strict=True))
    assert Experiment.from_toml(document.spec) == Experiment.from_toml(SPEC)
    ends = next(table for table in document.tables if table.heading == "Error at the end")
    micro = ov.load(run / "micro.nc").data["error"].values[:, -1]
    assert f"{micro.mean():.4g} ± " in ends.rows[-1][4]
    assert document.versions["overlaps"] == ov.__version__ and any("Saad" in paper for paper in document.citations)


def test_a_forecast_is_told_with_its_numbers(forecast: Path) -> None:
    document, summary = read(forecast), json.loads((forecast / "learn.json").read_text())
    assert document.answer == [summary["verdict"]]
    assert ["best constant rate", f"{summary['best_constant_rate']:.4g}"] in document.tables[0].rows
    assert document.versions["overlaps"] == ov.__version__ and any("Efron" in paper for paper in document.citations)
    assert document.command.startswith("ov.forecast(ov.Samples(rows, labels))")


def test_a_forecast_says_how_to_repeat_it(folder: Path, monkeypatch, capsys) -> None:
    """The command of the report, run as it stands, forecasts the same."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((120, 3))
    table = np.column_stack([rows, rows.sum(1) + rng.standard_normal(120)])
    monkeypatch.chdir(folder)
    np.savetxt("my rows.csv", table, delimiter=",", header="a,b,c,the price", comments="")
    asked = ["--target", "the price", "--standardise", "--samples", "90", "--seed", "3"]
    assert command(monkeypatch, capsys, "learn", "my rows.csv", *asked, "--out", "first")[0] == 0
    document = read(Path("first"))
    assert document.command == (
        "overlaps learn 'my rows.csv' --target 'the price' --out again --samples 90 --standardise --seed 3"
    )
    assert command(monkeypatch, capsys, *shlex.split(document.command)[1:])[0] == 0
    assert Path("again/learn.json").read_text() == Path("first/learn.json").read_text()


def test_a_sweep_names_its_best_cell(sweep: Path) -> None:
    document = read(sweep)
    assert document.verdict == "18 of 18 cells are done." and len(document.figures) == 3
    told = document.tables[0].rows
    errors = [float(row[-1]) for row in told]
    mean = np.array(errors).reshape(-1, 2).mean(1)  # over seeds
    best = told[2 * int(np.argmin(mean))]
    line = next(line for line in document.answer if "smallest error" in line)
    assert f"rate {best[0]}" in line and f"a mean over 2 seeds, is {mean.min():.4g}" in line and "scale macro" in line
    assert set(document.versions) == {"overlaps", "numpy", "scipy", "numba"}
    assert any("Saad" in paper for paper in document.citations)
    assert document.tables[0].folded and not any("`" in line for line in document.how)


def test_cells_that_are_not_done_are_on_a_map(sweep: Path) -> None:
    data = xr.load_dataset(sweep / "sweep.nc", engine="h5netcdf")
    first, second = (d for d in data["status"].dims if d not in ("seed", "scale"))
    data["status"] = data["status"].astype("<U8")
    data["status"][{first: 1, second: 0, "seed": 1}] = "failed"
    shown = of_sweep(sweep, data).figures
    assert len(shown) == 4 and shown[0].heading.startswith("What came of the cells over")
    words = np.array(shown[0].figure.data[0].text)
    assert (words == "failed").sum() == 1 and (words == "done").sum() == words.size - 1


def test_a_spectrum_is_reported(folder: Path) -> None:
    (folder / "spectrum").mkdir()
    ov.forecast(ov.PowerLaw(20, 1.0)).write(folder / "spectrum")
    assert "falls from" in read(folder / "spectrum").verdict


@pytest.mark.parametrize("name", ["run", "forecast", "sweep", "record"])
def test_a_browser_shows_it(name: str, folder: Path, request, monkeypatch, capsys) -> None:
    source, path = request.getfixturevalue(name), folder / f"{name}.html"
    code, out, _ = command(monkeypatch, capsys, "report", str(source), "-o", str(path))
    assert code == 0 and "MB" in out
    assert path.stat().st_size < 6e6
    assert path.read_text().count("plotly.js v") == 1
    title, figures = read(source).title, len(read(source).figures)
    with browsing(400 if name == "sweep" else 1280, dark=name == "forecast") as driver:
        driver.get(path.as_uri())
        assert driver.title == title  # no script of the record has run
        drawn = "return [...document.querySelectorAll('.plot')].filter(p => p.querySelector('.main-svg')).length"
        assert driver.execute_script(drawn) == figures
        assert not driver.execute_script("return document.querySelectorAll('main img').length")
        width = driver.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
        assert width[0] <= width[1], "the page is wider than the window"
        assert name == "sweep" or not figures or offers_no_upload(driver)  # there are no buttons on a phone
        assert complaints(driver) == []
        assert requests(driver) == [path.as_uri()]
        narrowed(driver)
        cut = "return [...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth).length"
        assert not driver.execute_script(cut), "a table is wider than a phone"


def test_hovering_shows_numbers(run: Path, folder: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.support.ui import WebDriverWait

    path = folder / "hover.html"
    path.write_text(read(run).to_html())
    with browsing() as driver:
        driver.get(path.as_uri())
        place = driver.find_element("css selector", "#figure-1 .nsewdrag")
        for offset in (0, 5):
            ActionChains(driver).move_to_element_with_offset(place, offset, offset).perform()
        shown = "return document.querySelector('#figure-1 .hoverlayer').textContent"
        WebDriverWait(driver, 5).until(lambda driver: "macro" in driver.execute_script(shown))


def test_everything_is_escaped() -> None:
    page = Document(NASTY, NASTY, NASTY, [NASTY], [], [Table(NASTY, [NASTY], [[NASTY]], NASTY)], [NASTY], NASTY,
                    {NASTY: NASTY}, [NASTY], NASTY).to_html()  # fmt: skip
    assert "<img" not in page and "document.title=" not in page.replace("document.title=&#39;", "")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("nothing", None, "no folder or file"),
        ("text.json", "{", "is no JSON that overlaps has written"),
        ("list.json", "[1]", "no record"),
        ("other.json", '{"a": 1}', "no record of `overlaps verify --json`"),
        ("empty/", None, "holds no results"),
    ],
)
def test_what_is_no_result_is_refused(
    name: str, content: str | None, words: str, tmp_path, monkeypatch, capsys
) -> None:
    source = tmp_path / name
    if name.endswith("/"):
        source.mkdir()
    elif content is not None:
        source.write_text(content)
    code, _, err = command(monkeypatch, capsys, "report", str(source), "-o", str(tmp_path / "report.html"))
    assert code == 2 and words in err and err.count("\n") == 1
    assert not (tmp_path / "report.html").exists()
