"""What notebooks show: short HTML with a small picture, escaped; plots with legends; animations."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from PIL import Image

import overlaps as ov
from browser import browsing, complaints, requests
from notebooks import shown
from overlaps.plot.log_axes import label
from overlaps.plot.notebook import card


@pytest.fixture(scope="module")
def macro() -> ov.Trajectory:
    net = ov.Committee(2)
    problem = ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.OnlineSGD(0.5))
    return ov.solve(problem, ov.draw(problem, 100, seed=0, scale=0.5), ov.logtimes(0.1, 10, 8))


def test_every_result_shows_itself(macro) -> None:
    """Forecasts of rows and sweeps do in the tests that make them anyway."""
    meso = ov.sample(macro.problem, macro.start, macro.time, runs=4, seed=0, progress=False)
    verdict = ov.compare(macro, meso, finite_size=False, progress=False)
    for thing in (macro.problem, macro.start, macro, meso, verdict, ov.forecast(ov.PowerLaw(9, 1.0))):
        assert "<img" in shown(thing), type(thing)
    assert "student 2 x erf" in shown(macro.problem)
    figure = verdict.plot("R", interactive=True)
    assert sum(trace.mode == "lines" for trace in figure.data) == 8 and verdict.verdict in figure.layout.title.text
    with pytest.raises(ov.InputError, match="axes are for matplotlib"):
        verdict.plot("R", plt.gca(), interactive=True)


@pytest.mark.parametrize("limits", [(0.03, 0.9), (1.0, 50.0), (1e-3, 1e3), (1e-9, 1e5)])
def test_logarithmic_axes_are_labelled_in_one_size(limits: tuple[float, float]) -> None:
    """Decades, and of few decades 2 and 5; a small picture makes all labels as small."""
    figure, ax = plt.subplots()
    ax.plot([1, 2], limits)
    ax.set(yscale="log", ylim=limits)
    label(ax)
    figure.canvas.draw()
    assert not any(text.get_text() for text in ax.get_yticklabels(which="minor"))
    inside = [text.get_text() for text in ax.get_yticklabels() if limits[0] <= text.get_position()[1] <= limits[1]]
    assert len(inside) > 2 and all(inside)
    if limits[1] / limits[0] <= 100:
        assert {word.strip("0.")[:1] for word in inside} == {"1", "2", "5"}
    plt.close(figure)


def test_text_is_escaped() -> None:
    assert "<b>" not in card("<b>bold</b>") and "&lt;b&gt;" in card("<b>bold</b>")


def test_plots_have_legends_and_take_axes(macro) -> None:
    ax = macro.plot("R")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["R[0, 0]", "R[0, 1]", "R[1, 0]", "R[1, 1]"]
    _, mine = plt.subplots()
    assert macro.plot("error", mine) is mine and mine.get_legend() is None
    plt.close("all")
    figure = macro.plot("error", interactive=True)
    assert np.allclose(figure.data[0].y, macro.data["error"].values[0][macro.time > 0])
    with pytest.raises(ov.InputError, match="axes and line styles are for matplotlib"):
        macro.plot("error", interactive=True, color="k")


def test_animations_are_saved_as_gif_and_as_a_player(macro, tmp_path) -> None:
    made = macro.animate("R", frames=5)
    with Image.open(made.save(tmp_path / "a.gif")) as gif:
        assert gif.n_frames == 5  # type: ignore[attr-defined]
    path = made.save(tmp_path / "a.html")
    with browsing() as driver:
        driver.get(path.as_uri())
        first = driver.find_element("css selector", "img").get_attribute("src")
        driver.find_element("css selector", "input").send_keys("\ue014")  # the right arrow key
        assert driver.find_element("css selector", "img").get_attribute("src") != first
        assert driver.find_element("css selector", "output").text == f"t = {made.times[1]:.3g}"
        assert complaints(driver) == [] and requests(driver) == [path.as_uri()]
    with pytest.raises(ov.InputError, match=r"ends in \.gif or \.html"):
        made.save(tmp_path / "a.mp4")
    with pytest.raises(ov.InputError, match="unknown variable with entries 'error'"):
        macro.animate("error")


def test_a_spectrum_that_moves_is_animated() -> None:
    problem = ov.Problem(
        data=ov.GaussianMixture(means=2, variance=0.1), student=ov.Softmax(2), loss="cross-entropy",
        algorithm=ov.OnlineSGD(1.0),
    )  # fmt: skip
    watch = ov.spectra.Observer(kinds="hessian", samples=100)
    run = ov.train(problem, ov.draw(problem, 30), [0.0, 1.0, 2.0], runs=1, observe=watch, progress=False)
    assert len(run.animate("hessian_values").frames) == 3
