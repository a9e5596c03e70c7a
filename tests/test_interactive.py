"""Figures to hover over show the same numbers as the results that they are made of."""

from __future__ import annotations

import numpy as np
import pytest

import overlaps as ov
from browser import browsing, offers_no_upload
from overlaps.plot import interactive
from overlaps.plot.palette import DARK, LIGHT, contrast


@pytest.fixture(scope="module")
def scales() -> dict[str, ov.Trajectory]:
    net = ov.Committee(2)
    problem = ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.OnlineSGD(0.5))
    start, times = ov.draw(problem, 100, seed=0, scale=0.5), ov.logtimes(0.1, 10, 8)
    meso = ov.sample(problem, start, times, runs=5, seed=0, progress=False)
    return {"macro": ov.solve(problem, start, times), "meso": meso}


def lines(figure) -> list:
    return [trace for trace in figure.data if trace.mode == "lines"]


def test_lines_are_means_and_bands_are_deviations(scales) -> None:
    figure = interactive.trajectory(scales)
    macro, meso = lines(figure)
    late = scales["macro"].time > 0
    assert np.allclose(macro.y, scales["macro"].data["error"].values[0][late])
    values = scales["meso"].data["error"].values[:, late]
    assert np.allclose(meso.y, values.mean(0))
    band = next(trace for trace in figure.data if trace.fill == "toself")
    upper = np.asarray(band.y)[: meso.y.size]
    assert np.allclose(upper, values.mean(0) + values.std(0, ddof=1))
    assert macro.line.dash != meso.line.dash and macro.line.color != meso.line.color
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"


def test_entries_have_colours_and_scales_have_styles(scales) -> None:
    drawn = lines(interactive.trajectory(scales, "R"))
    assert len(drawn) == 8
    assert len({line.line.color for line in drawn}) == 4 and len({line.line.dash for line in drawn}) == 2
    with pytest.raises(ov.InputError, match="unknown variable 'Rr'; did you mean 'R'"):
        interactive.trajectory(scales, "Rr")


def test_comparison_shows_every_point(scales) -> None:
    verdict = ov.compare(*scales.values(), progress=False)
    both, scores = interactive.comparison(verdict.theory, verdict.simulation, verdict.table, verdict.verdict)
    assert verdict.verdict in both.layout.title.text
    assert sum(len(trace.x) for trace in scores.data) == verdict.table.sizes["point"]


def test_sweep_is_lines_or_a_map() -> None:
    net = ov.Committee(1, "linear")
    problem = ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.OnlineSGD(0.1))
    grid = {"algorithm.rate": [0.1, 0.2, 0.5], "label_noise": [0.0, 0.1]}
    made = ov.sweep(problem, grid, times=[0.0, 1.0, 2.0], size=50, scales=["macro"], progress=False)
    data = made.data
    drawn = lines(interactive.sweep(data, "rate", color="label_noise"))
    assert len(drawn) == 2 and np.allclose(drawn[0].y, data["error"].isel(label_noise=0, time=-1).squeeze())
    heat = interactive.sweep(data, "rate", "label_noise").data[0]
    assert np.allclose(heat.customdata, data["error"].isel(time=-1).squeeze().transpose("label_noise", "rate"))


def test_forecasts_have_their_figures() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 5))
    found = ov.forecast(ov.Samples(rows, rows.sum(1) + rng.standard_normal(300)), runs=3, progress=False)
    figures = interactive.forecast_of_rows(found.curves, found.summary(), dark=True)
    assert list(figures) == ["learning curve", "schedule", "spectrum"]
    assert np.allclose(lines(figures["learning curve"])[1].y, found.curves["error_plan"].values[1:])
    theory = ov.forecast(ov.PowerLaw(20, 1.0))
    drawn = interactive.forecast_of_spectrum(theory.data)["learning curve"].data[0]
    assert np.allclose(drawn.y, theory.data["error"])


def test_spectrum_has_edges_and_outliers() -> None:
    figure = interactive.spectrum(np.linspace(0, 1, 50), (0.0, 0.8), [1.2, 1.5])
    bars, bulk, predicted = figure.data
    assert sum(bars.y) == 50 and set(bulk.x) == {0.0, 0.8}
    assert np.isclose(np.array(predicted.x)[[0, 3]], [1.2, 1.5]).all()
    assert [trace.name for trace in figure.data] == ["eigenvalues", "predicted bulk", "predicted outliers"]
    assert [note.text for note in figure.layout.annotations] == ["1.2", "1.5"]  # all of them, on no tick


def test_few_decades_are_labelled_between_too(scales) -> None:
    layout = interactive.trajectory(scales).layout
    assert layout.xaxis.dtick == "D2" and layout.yaxis.dtick == "D2" and layout.xaxis.tickformat == "~g"
    x = np.geomspace(1e-6, 1e6, 50)
    axis = interactive.eigenvalues(x).layout.yaxis  # every second decade, as a power of ten
    assert np.allclose(axis.tickvals, 10.0 ** np.arange(-6, 7, 2)) and axis.ticktext[3] == "10<sup>0</sup>"


def test_a_range_of_numbers_is_one_scale_of_colours_and_times_are_logarithmic() -> None:
    net = ov.Committee(1, "linear")
    problem = ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.OnlineSGD(0.1))
    grid = {"algorithm.rate": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}
    times = ov.logtimes(0.1, 10, 6)
    data = ov.sweep(problem, grid, times=times, size=50, scales=["macro"], progress=False).data
    figure = interactive.sweep(data, "time", color="rate")
    drawn = lines(figure)
    assert figure.layout.xaxis.type == "log" and min(drawn[0].x) > 0
    assert not any(line.showlegend for line in drawn) and len({line.line.color for line in drawn}) == 6
    assert figure.data[-1].marker.colorbar.title.text == "rate"


def test_long_lines_are_thinned_evenly() -> None:
    x = np.arange(0.0, 1e5)
    some = interactive.thinned(x, logarithmic=True)
    assert some.size <= interactive.MOST and x[some[0]] == 1 and x[some[-1]] == x[-1]
    assert interactive.thinned(x[:9], logarithmic=False).tolist() == list(range(9))


def test_a_figure_offers_no_upload(scales, tmp_path) -> None:
    """Wherever it is shown: here, in a file of its own."""
    scales["macro"].plot(interactive=True).write_html(tmp_path / "figure.html", include_plotlyjs=True)
    with browsing() as driver:
        driver.get((tmp_path / "figure.html").as_uri())
        assert offers_no_upload(driver)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_text_and_lines_can_be_read(theme) -> None:
    """Contrast of text is above 4.5, of lines about 3 (WCAG 2.1)."""
    assert contrast(theme.ink, theme.paper) > 7
    assert all(contrast(colour, theme.paper) > 3 for colour in theme.colours)
    assert len(set(theme.colours)) == 7
