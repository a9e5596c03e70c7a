"""The diffusion: drift of macro, and fluctuations of the exact chain where N is large.

Variances are compared as ratios to those of the chain; for Gaussian fluctuations the logarithm of a ratio of two sample
variances of n and m runs has standard deviation √(2/(n−1) + 2/(m−1)). Bounds are at 4.5 of these, about 100 numbers in
all: false alarms below 1e-3.
"""

from __future__ import annotations

import numpy as np
import pytest

import overlaps as ov
from mixtures import classes
from overlaps.online.diffusion import Diffusion
from overlaps.trajectory.points import points
from problems import problem

TIMES = [0.3, 2.0]
CASES = {
    "softmax": classes(3, gram=[[1, 0.3, 0], [0.3, 1, -0.2], [0, -0.2, 0.8]], weights=[0.5, 0.3, 0.2], decay=0.05),
    "committee on two levels": problem(spectrum=ov.Spectrum([2.0, 0.5], [0.4, 0.6]), train_readout=True, rate=1.5),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_means_and_spreads_are_those_of_the_chain(case):
    chosen = CASES[case]
    start = ov.draw(chosen, 1000, seed=1, scale=0.7)
    many, few = 300, 60
    chain = points(ov.sample(chosen, start, TIMES, runs=many, seed=1)).values
    limit = points(ov.sample(chosen, start, TIMES, runs=few, seed=1, method="diffusion")).values
    alive = chain.std(0) > 1e-9
    a, b = chain[:, alive], limit[:, alive]
    spread = np.log(b.var(0, ddof=1) / a.var(0, ddof=1))
    assert np.abs(spread).max() < 4.5 * np.sqrt(2 / (many - 1) + 2 / (few - 1))
    z = (b.mean(0) - a.mean(0)) / np.sqrt(a.var(0, ddof=1) / many + b.var(0, ddof=1) / few)
    assert np.abs(z).max() < 4.5


def test_correlations_are_those_of_the_chain():
    """The whole covariance, not only its diagonal: the first principal direction of the chain has the same variance."""
    chosen = CASES["softmax"]
    start = ov.draw(chosen, 1000, seed=1)
    chain = points(ov.sample(chosen, start, [4.0], runs=300, seed=2)).values
    limit = points(ov.sample(chosen, start, [4.0], runs=80, seed=2, method="diffusion")).values
    axes = np.linalg.svd(chain - chain.mean(0))[2][:3]
    ratio = ((limit - limit.mean(0)) @ axes.T).var(0, ddof=1) / ((chain - chain.mean(0)) @ axes.T).var(0, ddof=1)
    assert np.abs(np.log(ratio)).max() < 4.5 * np.sqrt(2 / 299 + 2 / 79)


def test_a_wrong_volatility_is_noticed(monkeypatch):
    """Power: noise of 1.5 times the size is far outside the bound of the first test."""
    chosen = CASES["softmax"]
    start = ov.draw(chosen, 1000, seed=1, scale=0.7)
    draw = Diffusion._noise
    monkeypatch.setattr(Diffusion, "_noise", lambda self, flow: 1.5 * draw(self, flow))
    chain = points(ov.sample(chosen, start, TIMES, runs=300, seed=1)).values
    limit = points(ov.sample(chosen, start, TIMES, runs=60, seed=1, method="diffusion")).values
    alive = chain.std(0) > 1e-9
    spread = np.log(limit.var(0, ddof=1)[alive] / chain.var(0, ddof=1)[alive])
    assert np.abs(spread).max() > 4.5 * np.sqrt(2 / 299 + 2 / 59)


def test_a_large_network_follows_macro():
    """At N = 10^8 noise is 1e-4 of order one: what is left is the drift, integrated to the same accuracy."""
    chosen = CASES["softmax"]
    start = ov.Start.from_overlaps(chosen, Q=np.eye(3), size=10**8)
    theory = ov.solve(chosen, start, [1.0, 5.0, 20.0])
    run = ov.sample(chosen, start, [1.0, 5.0, 20.0], runs=2, method="diffusion")
    np.testing.assert_allclose(run.data["m"].values[0], theory.data["m"].values[0], atol=1e-3)
    assert run.scale == "diffusion" and "diffusion trajectory" in repr(run)


def test_points_have_noise_in_every_direction():
    """Seventy-five levels of two students and two teachers: frozen points vary in all of their 300 coordinates."""
    chosen = problem(spectrum=ov.PowerLaw(75, 1.0))
    z = Diffusion(chosen, ov.draw(chosen, 150)).z
    values = np.linalg.eigvalsh(np.einsum("ibk,icl->bkcl", z, z).reshape(300, 300) / len(z))
    assert z.shape[1:] == (75, 4) and values[0] > 0.1 and values.mean() == pytest.approx(1.0, abs=0.1)


def test_what_it_cannot_do_is_refused():
    chosen = CASES["softmax"]
    start = ov.draw(chosen, 50)
    with pytest.raises(ov.InputError, match="exact"):
        ov.sample(chosen, start, [1.0], method="euler")
    noisy = problem(label_noise=0.1)
    with pytest.raises(ov.InputError, match="noise on the labels"):
        ov.sample(noisy, ov.draw(noisy, 50), [1.0], method="diffusion")
    wide = problem(spectrum=ov.PowerLaw(300, 1.0))
    with pytest.raises(ov.InputError, match="more than 300"):
        ov.sample(wide, ov.draw(wide, 300), [1.0], method="diffusion")


def test_overlaps_stay_what_weights_can_have():
    """Ten dimensions, where noise is as large as the overlaps: every recorded matrix is still that of some weights."""
    chosen = problem("erf", 3, 1, rate=3.0, decay=0.1)
    start = ov.draw(chosen, 10, seed=0, scale=0.3)
    data = ov.sample(chosen, start, np.linspace(0.5, 10, 20), runs=4, method="diffusion").data
    Q, R, T = (data[name].values for name in ("Q", "R", "T"))
    assert np.linalg.eigvalsh(Q - R @ np.swapaxes(R, -1, -2) / T).min() > -1e-12


def test_noise_too_large_for_a_diffusion_is_an_error(monkeypatch):
    chosen = problem("erf", 3, 1)
    start = ov.draw(chosen, 10, seed=0, scale=0.3)
    draw = Diffusion._noise
    monkeypatch.setattr(Diffusion, "_noise", lambda self, flow: 30 * draw(self, flow))
    with pytest.raises(ov.NumericalError, match="no weights have the overlaps at time") as caught:
        ov.sample(chosen, start, [1.0, 5.0], runs=2, method="diffusion")
    assert caught.value.quantity == "Q" and 0 < caught.value.time <= 5
