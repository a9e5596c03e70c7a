"""Expectations under standardised mixtures, and how far mixtures are from Gaussian: figures S1 and S2.

Lemma V.3 has E f(x) of a standardised mixture equal to that of N(0, 1) for f = erf, ReLU and sign. Figure S1 shows
means of n samples of f(x), with the normal law that they tend to, of mean a = E f and variance (E f² − a²)/n. For
x = μ_s + σ z with probability p_s

    E f(x) = Σ_s p_s E f(μ_s + σ z)        E x f(x) = Σ_s p_s [μ_s E f(μ_s + σ z) + σ E z f(μ_s + σ z)].

The lemma holds for odd f and mixtures that are symmetric about their mean, and in no other case shown: for two far
components of equal weight E relu → 1/2, not 1/√(2π) = .399. Two components of equal weight are always symmetric; even
then b = E x f, by which the fields of students and teachers are correlated (10), is another: for sign it is E|x| → 1,
not .798. Neither n nor the mixture of the printed figure is given; here there are three mixtures.

Figure S2 is the divergence of the mixtures (17) from N(0, I) against α, D = 500, mean over 20 mixtures with its
standard error. Whether it is that of one coordinate or of the vector is not said. The first falls with m, as the text
says. The second, per dimension, is α²/6 on average less what a sample tells of its label, at most ln m/D, and so hardly
depends on m.

In full S1 takes 4 s and S2 a minute.

>>> a, b, c = expectations(np.sign, MIXTURES["symmetric"])
>>> bool(abs(a) < 1e-12), round(b, 2), round(c, 12)
(True, 0.99, 1.0)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import overlaps as ov

from ..estimates import mean_error
from ..panels import finish, headroom, panels, titled
from .lemma_claims import FUNCTIONS
from .model import NAMES
from .paper import PAPER
from .sweep import divergences

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
MIXTURES = {
    "normal": ov.LatentMixture(means=[[0.0]], standardise="population"),
    "symmetric": ov.LatentMixture(means=[[-9.0], [9.0]], standardise="population"),
    "weights .9 and .1": ov.LatentMixture(means=[[-9.0], [9.0]], weights=(0.9, 0.1), standardise="population"),
    "four means": ov.LatentMixture(means=[[-9.0], [2.0], [4.0], [7.0]], standardise="population"),
}
SEED = 1


def expectations(f: Callable[[Array], Array], latent: ov.LatentMixture) -> tuple[float, float, float]:
    """E f(x), E x f(x) and E f(x)² of a mixture on a line."""
    weights, means, (sd,) = latent.conditional(1)
    a = b = c = 0.0
    for p, (mean,) in zip(weights.tolist(), means.tolist(), strict=True):
        given = ov.gaussian_equivalent(lambda z, mean=mean: f(mean + sd * z))
        a, b, c = a + p * given.a, b + p * (mean * given.a + float(sd) * given.b), c + p * given.c
    return a, b, c


def sample_means(latent: ov.LatentMixture, samples: int, repeats: int) -> dict[str, Array]:
    """Means of f(x) over that many samples, (repeats,), for each f."""
    rng = np.random.default_rng(SEED)
    found: dict[str, list[float]] = {name: [] for name in FUNCTIONS}
    for _ in range(repeats):
        x = latent.sample(rng, samples, 1)[0]
        for name, f in FUNCTIONS.items():
            found[name].append(float(f(x).mean()))
    return {name: np.array(means) for name, means in found.items()}


def draw_means(ax: Axes, name: str, means: Array, exact: Array, samples: int, color: str) -> None:
    """A histogram of means, and the normal law that they tend to by E f, E x f and E f²."""
    a, b, c = exact.round(12) + 0.0  # no minus sign before zero
    width = np.sqrt((c - a**2) / samples)
    x = a + width * np.linspace(-4, 4, 101)
    # sums of signs come in steps of two: each bin must hold the same number of them
    step = 2 * np.ceil(0.15 * width * samples) / samples
    edges = np.arange(means.min() - 1 / samples, means.max() + step, step)
    ax.hist(means, edges.tolist(), density=True, color=color, alpha=0.4, label=f"{name}: a = {a:.3f}, b = {b:.3f}")
    ax.plot(x, np.exp(-0.5 * ((x - a) / width) ** 2) / (np.sqrt(2 * np.pi) * width), color=color, lw=1)


@PAPER.figure(
    "figS1",
    "means of f(x) under standardised mixtures and N(0, 1), equal for odd f and symmetric mixtures only; the printed "
    "mixture is not given, three are chosen here",
    claims=("lemma-V.3",),
)
def figS1(quick: bool) -> tuple[Figure, xr.Dataset]:
    """f = erf, ReLU, sign; mixtures of two components of equal and of unequal weight, and of four."""
    samples, repeats = (500, 1000) if quick else (1000, 10_000)
    drawn = {name: sample_means(latent, samples, repeats) for name, latent in MIXTURES.items()}
    exact = np.array([[expectations(f, latent) for f in FUNCTIONS.values()] for latent in MIXTURES.values()])
    figure, axes = panels(len(MIXTURES) - 1, len(FUNCTIONS))
    places = iter(axes)
    for i, mixture in list(enumerate(MIXTURES))[1:]:
        for j, f in enumerate(FUNCTIONS):
            ax = next(places)
            draw_means(ax, "normal", drawn["normal"][f], exact[0, j], samples, color="0.5")
            draw_means(ax, mixture, drawn[mixture][f], exact[i, j], samples, color="C3")
            shown = NAMES.get(f, f)
            headroom(ax, 0.25)
            finish(ax, f"{shown}, mixture: {mixture}", f"mean of {shown}(x) over {samples} samples", "density")
    note = f"{repeats:,} means of {samples:,} samples; lines: N(a, (c − a²)/n)"
    if quick:
        note += "\nquick: 1000 means of 500 samples instead of 10,000 of 1000"
    titled(figure, note)
    names = {"mixture": list(MIXTURES), "function": list(FUNCTIONS)}
    means = np.array([[drawn[mixture][f] for f in FUNCTIONS] for mixture in MIXTURES])
    found = {
        "means": (("mixture", "function", "repeat"), means, {"long_name": f"mean of f(x) over {samples} samples"}),
        "a": (("mixture", "function"), exact[..., 0], {"long_name": "E f(x)"}),
        "b": (("mixture", "function"), exact[..., 1], {"long_name": "E x f(x)"}),
        "c": (("mixture", "function"), exact[..., 2], {"long_name": "E f(x)²"}),
    }
    return figure, xr.Dataset(found, names, {"parameters": note, "samples": samples})


@PAPER.figure(
    "figS2",
    "divergence of mixtures from N(0, I) against α; whether of one coordinate or of the vector is open in print: both "
    "are shown",
    claims=("kl",),
)
def figS2(quick: bool) -> tuple[Figure, xr.Dataset]:
    """α from 1/4 to 9, m = 2, 4, 8."""
    bounds = (0.25, 0.5, 1.0, 3.0, 9.0) if quick else (0.25, 0.5, *(float(a) for a in range(1, 10)))
    dimension, mixtures = (100, 5) if quick else (500, 20)
    counts = (2, 4, 8)
    found = np.array([divergences(m, bounds, mixtures, dimension) for m in counts])
    mean, error = mean_error(found, 2)
    alpha = np.array(bounds)
    figure, axes = panels(1, 2)
    for column, ax in enumerate(axes):
        for i, m in enumerate(counts):
            y, dy = mean[i, :, column], error[i, :, column]
            ax.plot(alpha, y, f"C{i}o-", ms=3, label=f"m = {m}")
            ax.fill_between(alpha, y - dy, y + dy, color=f"C{i}", alpha=0.25, lw=0)
            if column == 1:
                style = {"color": f"C{i}", "ls": "--", "lw": 0.8}
                ax.plot(alpha, mean[i, :, 3], **style, label="upper and lower bounds" if i == 0 else None)
                positive = found[i, :, :, 2].min(1) > 0
                ax.plot(alpha[positive], mean[i, positive, 2], **style)
        ax.plot(alpha, alpha**2 / 6, "k:", lw=1, label="α²/6")
        ax.set(xscale="log", yscale="log", ylim=(found[..., 0].min() / 2, 2 * found[..., 3].max()))
        finish(ax, ("one coordinate", "all coordinates, one label per sample")[column], "α", "KL divergence/D (nats)")
    note = f"D = {dimension}, {mixtures} mixtures; bands: ± standard error over mixtures"
    if quick:
        note += "\nquick: D = 100 instead of 500, 5 mixtures instead of 20"
    titled(figure, note)
    nats = {"units": "nats per dimension"}
    dims = ("components", "bound", "mixture")
    names = ("coordinate", "joint", "joint_lower", "joint_upper")
    curves = {name: (dims, found[..., i], nats) for i, name in enumerate(names)}
    return figure, xr.Dataset(curves, {"components": list(counts), "bound": alpha}, {"parameters": note})
