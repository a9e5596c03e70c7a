"""Figures and tables of the paper on Gaussian mixtures: what they draw, and the facts they are drawn for.

Runs have fixed seeds. Means of samples are compared within five standard errors, 6e-7 each; distances of runs within
factors that are stated, between which there is nothing: those that agree are at the floor of 3 runs, within 60 % of it,
those that do not are at three times the floor or more.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import xarray as xr
from scipy.integrate import quad
from scipy.stats import norm

import overlaps as ov
from figures import made
from overlaps.papers.universality import dynamics_figures, lemma_figures, sweep, tables
from overlaps.papers.universality.model import problem, start
from overlaps.papers.universality.printed import TABLES

PAPER = ov.papers.paper("universality")
FIGURES = ("fig2", "fig3", "fig4", "fig5", "figS1", "figS2", "figS3", "figS4", "table1", "table2")
NOISE = 200**-0.5  # N^-1/2, the order of the fluctuations of one run


def quick(name: str) -> xr.Dataset:
    return made("universality", name)[1]


def rms(values: xr.DataArray) -> float:
    return float(np.sqrt((values**2).mean()))


def test_all_are_there() -> None:
    assert set(FIGURES) <= set(PAPER.figures)


def test_captions_say_what_is_open() -> None:
    for name in ("fig2", "fig3", "fig4", "figS2"):
        assert "open" in PAPER.figures[name].caption
    assert "not given" in PAPER.figures["figS1"].caption and "select" in PAPER.figures["fig5"].caption


def test_full_scales_are_those_of_the_paper() -> None:
    full = sweep.Scale.of(False)
    assert (full.size, full.latent_dim, full.steps, full.mixtures) == (1000, 500, 100_000, 20)
    assert dict(full.grid)[2] == tuple(range(1, 10)) and [m for m, _ in full.grid] == [2, 4, 8]
    assert full.times[0] == 0.001 and full.times[-1] == 100 and "instead" not in full.note()
    shown = dynamics_figures.Scale.of(False)
    assert (shown.size, shown.runs, shown.grid[-1]) == (1000, 10, 100.0) and "instead" not in shown.note()
    assert all("instead of" in module.Scale.of(True).note() for module in (sweep, dynamics_figures))


@pytest.mark.parametrize("name", ["error", "Q", "R", "v"])
def test_standardised_dynamics(name: str) -> None:
    """Figure 4: on the Gaussian equations for a label per coordinate, on its own for one per sample."""
    data = quick("fig4")
    coordinate, sample = data.sel(label="coordinate"), data.sel(label="sample")
    assert rms(coordinate[f"{name}_mixture"] - coordinate[f"{name}_ode"]) < NOISE
    assert rms(data[f"{name}_gaussian"] - data[f"{name}_ode"]) < NOISE
    far = rms(sample[f"{name}_mixture"] - sample[f"{name}_ode"])
    assert far > 1.2 * NOISE and rms(sample[f"{name}_mixture"] - sample[f"{name}_latent"]) < far / 2
    # one Gaussian component of mean zero and variance one: the two theories are one
    assert np.allclose(coordinate[f"{name}_latent"], coordinate[f"{name}_ode"], atol=1e-6)


def test_dynamics_of_mixtures_as_they_are() -> None:
    """Figure 2: far from the Gaussian equations for both labels; those of the mixture are nearer."""
    data = quick("fig2")
    for label in sweep.LABELS:
        at = data.sel(label=label)
        for name in ("Q", "R", "v"):
            far = rms(at[f"{name}_mixture"] - at[f"{name}_ode"])
            assert far > 1.5 * NOISE and rms(at[f"{name}_mixture"] - at[f"{name}_latent"]) < far


def test_dynamics_are_means_over_runs() -> None:
    """Against runs taken here, from the same start."""
    data, scale, seed = quick("fig4"), dynamics_figures.Scale.of(True), dynamics_figures.SEED
    latent = ov.LatentMixture(2, 9.0, label="coordinate", standardise="population", seed=seed)
    task = problem("relu", latent, features=seed)
    runs = ov.train(
        task, start(task, scale.size, seed), data["time"].values, runs=scale.runs, seed=seed, progress=False
    )
    R = runs.data["R"].values
    mine = data.sel(label="coordinate")
    assert np.allclose(mine["R_mixture"], R.mean(0)) and np.allclose(mine["R_spread"], R.std(0, ddof=1))


def test_saturation() -> None:
    t = np.arange(1.0, 7.0)
    assert dynamics_figures.saturation(t, np.array([2.0, 1.0, 1.04, 0.5, 1.04, 1.0])) == 5
    assert dynamics_figures.saturation(t, np.array([0.0, 1.0, 1.0, 1.0, 1.0, 1.0])) == 2  # errors that rise
    assert dynamics_figures.saturation(t, np.ones(6)) == 1
    for end, error in zip(quick("fig4")["saturation"], quick("fig4")["error_mixture"], strict=True):
        late = error.sel(time=slice(float(end), None))
        assert (np.abs(late - error[-1]) <= 0.05 * np.abs(error[0] - error[-1]) + 1e-12).all()


@pytest.mark.parametrize("name", ["fig3", "fig5", "figS3", "figS4"])
def test_summaries(name: str) -> None:
    """Means and standard errors over all mixtures, and means over the half with the smallest floor."""
    data = quick(name)
    M, floor = data["distance"].values, data["floor"].values
    columns = {"Q": slice(0, 4), "R": slice(4, 8), "v": slice(8, 10)}
    order = np.argsort(floor.mean(1))
    assert set(np.flatnonzero(data["kept"].values)) == set(order[:2])
    for metric, at in columns.items():
        mine, per_mixture = data.sel(metric=metric), M[..., at].mean(-1)
        assert np.allclose(mine["mean"], per_mixture.mean(-1))
        assert np.allclose(mine["error"], per_mixture.std(-1, ddof=1) / np.sqrt(3))
        assert np.allclose(mine["selected"], per_mixture[..., order[:2]].mean(-1))
        assert float(mine["mean_floor"]) == pytest.approx(floor[:, at].mean())
        assert float(mine["mean_size"]) == pytest.approx(data["size"].values[:, at].mean())


def test_distances_are_those_of_runs() -> None:
    """M of one run and of the floor, from weights that are trained here, by the formula."""
    data, scale = quick("fig5"), sweep.Scale.of(True)
    i, point = 1, 2
    latent = ov.LatentMixture(2, 9.0, standardise="population", seed=i)
    ratios = []
    for given, found in ((None, data["floor"][i]), (latent, data["distance"].sel(label="sample")[point, i])):
        plain, task = problem("relu", features=i), problem("relu", given, features=i)
        theory = ov.solve(plain, start(plain, scale.size, i), scale.times).data
        runs = ov.train(task, start(task, scale.size, i), scale.times, runs=8, seed=77, progress=False).data
        apart = [runs[name].values - theory[name].values for name in ("Q", "R", "v")]
        M = np.concatenate([np.sqrt((d**2).mean(1)).reshape(8, -1) for d in apart], axis=1)
        z = (found.values - M.mean(0)) / (M.std(0, ddof=1) * np.sqrt(1 + 1 / 8))
        assert np.abs(z).max() < 12  # Student with 7 degrees of freedom: 6e-6 for each of ten entries
        ratios.append(M.mean())
        sizes = np.concatenate([np.abs(theory[name].values[0]).mean(0).ravel() for name in ("Q", "R", "v")])
        assert np.allclose(data["size"][i], sizes)
    assert ratios[1] > 3 * ratios[0]


@pytest.mark.parametrize("name", ["fig5", "figS4"])
def test_standardised_mixtures(name: str) -> None:
    """At the floor for a label per coordinate, whatever the divergence; away from it for one label per sample."""
    data = quick(name)
    ratio = data["mean"] / data["mean_floor"]
    assert np.abs(ratio.sel(label="coordinate") - 1).max() < 0.6
    sample = ratio.sel(label="sample")
    assert (sample.sel(point=data["bound"] == 9) > 3).all()
    for m in (2, 4):
        assert (sample.sel(point=data["components"] == m).diff("point") > 0).all()


@pytest.mark.parametrize("name", ["fig3", "figS3"])
def test_mixtures_as_they_are(name: str) -> None:
    """Away from the floor for both labels."""
    data = quick(name)
    far = (data["mean"] / data["mean_floor"]).sel(point=data["bound"] == 9)
    assert (far > 3).all()


def test_divergence_is_that_of_the_mixture_before_standardisation() -> None:
    """The horizontal axes of figures 3 and 5 are one, that of an integral over each coordinate."""
    data = quick("fig5")
    assert data["divergence"].equals(quick("fig3")["divergence"])
    at = (data["components"].values == 4) & (data["bound"].values == 3)
    centres = ov.LatentMixture(4, 3.0, seed=2).centres(100)
    x = np.linspace(-15, 15, 6001)
    p = norm.pdf(x[:, None, None] - centres).mean(1)
    integral = ((np.log(p) - norm.logpdf(x)[:, None]) * p).sum(0) * (x[1] - x[0])
    assert float(data["divergence"].values[at, 2].item()) == pytest.approx(integral.mean(), rel=1e-9)
    assert (data["joint_divergence"] > data["divergence"]).all()


@pytest.mark.parametrize(("name", "figure"), [("table1", "figS4"), ("table2", "fig5")])
def test_tables(name: str, figure: str) -> None:
    """Rows are those of the figures of the same runs, α = 0 is the floor, and print stands next to them."""
    data, drawn = quick(name), quick(figure)
    assert data["bound"].values.tolist() == [0, 1, 3, 9]
    two = drawn["distance"].sel(point=drawn["components"] == 2)
    assert np.allclose(data["distance"][:, 1:], two.mean("mixture"))
    assert np.allclose(data["selected"][:, 1:], two.sel(mixture=drawn["kept"]).mean("mixture"))
    for label in sweep.LABELS:
        assert np.allclose(data["distance"].sel(label=label)[0], drawn["floor"].mean("mixture"))
    assert np.allclose(data["size"], drawn["size"].mean("mixture"))
    printed = data["printed"].sel(bound=9)
    assert printed.values.tolist() == list(TABLES[data.attrs["activation"]][9])
    # a covariance is symmetric; in print it is not
    assert np.allclose(data["distance"].sel(entry="Q01"), data["distance"].sel(entry="Q10"))
    assert (data["printed"].sel(entry="Q01") != data["printed"].sel(entry="Q10")).all()


def test_tables_show_numbers() -> None:
    cells = [cell for ax in made("universality", "table1")[0].axes for cell in ax.tables[0].get_celld().values()]
    shown = {cell.get_text().get_text() for cell in cells}
    assert {"0.090", "0.995", "α = 9"} <= shown
    found = quick("table1").sel(label="sample", bound=9, entry="R00")
    cell = f"{float(found['distance']):.3f} ± {float(found['error']):.3f} ({float(found['selected']):.3f})"
    assert cell in shown


def test_printed_sizes() -> None:
    """Ten entries each, and a spot check."""
    assert all(len(row) == 10 for row in tables.SIZES.values())
    assert tables.SIZES["erf"][0] == 0.995 and tables.SIZES["relu"][-1] == 0.597


@pytest.mark.parametrize("mixture", lemma_figures.MIXTURES)
@pytest.mark.parametrize("function", lemma_figures.FUNCTIONS)
def test_expectations(mixture: str, function: str) -> None:
    """Against an adaptive integral over the density, and the samples of the figure."""
    latent, f, data = lemma_figures.MIXTURES[mixture], lemma_figures.FUNCTIONS[function], quick("figS1")
    p, means, (sd,) = latent.conditional(1)
    assert float(p @ means[:, 0]) == pytest.approx(0, abs=1e-14)
    assert float(p @ (means[:, 0] ** 2 + sd**2)) == pytest.approx(1)

    def integral(power: int, of_x: int) -> float:
        def value(x: float) -> float:
            density = float(p @ norm.pdf(x, means[:, 0], sd))
            return density * float(f(np.array([x]))[0]) ** power * x**of_x

        points = sorted({0.0, *means[:, 0].tolist()})
        edges = [-12.0, *points, 12.0]
        return sum(quad(value, a, b, epsabs=1e-12, limit=200)[0] for a, b in pairwise(edges))

    at = data.sel(mixture=mixture, function=function)
    exact = integral(1, 0), integral(1, 1), integral(2, 0)
    assert [float(at[name]) for name in "abc"] == pytest.approx(exact, abs=1e-9)
    drawn, width = at["means"].values, np.sqrt((exact[2] - exact[0] ** 2) / data.attrs["samples"])
    assert abs(drawn.mean() - exact[0]) < 5 * width / np.sqrt(drawn.size)
    assert drawn.std() == pytest.approx(width, rel=5 / np.sqrt(2 * drawn.size))


def test_lemma_holds_for_odd_functions_of_symmetric_mixtures_only() -> None:
    data = quick("figS1")
    apart = abs(data["a"] - data["a"].sel(mixture="normal"))
    odd = apart.sel(mixture="symmetric", function=["sign", "erf"])
    assert odd.max() < 1e-9
    others = [float(apart.sel(mixture="symmetric", function="relu"))]
    others += [float(x) for x in apart.sel(mixture=["weights .9 and .1", "four means"]).values.ravel()]
    assert min(others) > 0.01
    symmetric = data.sel(mixture="symmetric")
    assert float(symmetric["a"].sel(function="relu")) == pytest.approx(0.5, abs=0.005)  # |x| has mean √(81/82)
    assert float(symmetric["b"].sel(function="sign")) == pytest.approx(np.sqrt(81 / 82), abs=1e-9)
    assert float(data["b"].sel(mixture="normal", function="sign")) == pytest.approx(np.sqrt(2 / np.pi))


def test_divergences() -> None:
    """Between their bounds, rising with α; that of a coordinate falls with m, that of the vector does not."""
    data = quick("figS2")
    assert (data["coordinate"] <= data["joint"]).all() and (data["joint"] <= data["joint_upper"]).all()
    assert (data["joint_lower"] <= data["joint"] + 1e-5).all()
    for name in ("coordinate", "joint"):
        assert (data[name].diff("bound") > 0).all()
    mean = data.mean("mixture")
    assert (mean["coordinate"].sel(bound=slice(None, 3)).diff("components") < 0).all()
    # E μ²/2 = α²/6 with a standard deviation of α²/(3√5) for each of m D centres
    alpha, m = data["bound"], data["components"]
    width = alpha**2 / (3 * np.sqrt(5)) / np.sqrt(m * 100 * data.sizes["mixture"])
    assert (np.abs(mean["joint_upper"] - alpha**2 / 6) < 5 * width).all()
    positive = data["joint_lower"] > 0
    gap = (data["joint_upper"] - data["joint_lower"] - np.log(m) / 100).where(positive, 0.0)
    assert positive.any() and np.abs(gap).max() < 1e-12


def test_jobs_keep_their_order_and_their_errors() -> None:
    assert sweep.together([partial(pow, i, 2) for i in range(20)], "squares") == [i**2 for i in range(20)]
    with pytest.raises(ZeroDivisionError):
        sweep.together([partial(divmod, 1, 1), partial(divmod, 1, 0)], "quotients")
