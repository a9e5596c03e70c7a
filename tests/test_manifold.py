"""The hidden manifold: inputs, starts, and theory against training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import erf

import overlaps as ov
from manifolds import DATA, apart, hidden, reference
from overlaps.data import features as matrices
from overlaps.online.micro import AHEAD, HiddenWeights
from overlaps.online.weak_mixture import left_out

BATCHES = (1, 10, 10**6)


@pytest.mark.parametrize("activation", ["erf", "relu"])
def test_theory_is_the_reference_and_training_follows_it(activation: str) -> None:
    """To the tolerance of the reference; training within sampling error, with one false alarm in a thousand."""
    with np.load(DATA / "r000_ode_vs_sgd.npz") as file:
        kept = dict(file)
    problem, start = reference(activation)
    theory = ov.solve(problem, start, kept[f"{activation}_t"][1:])
    for name, short in (("Q", "Q"), ("R", "R"), ("v", "v"), ("error", "e")):
        assert apart(theory.data[name][0], kept[f"{activation}_ode_{short}"][1:]) < 2e-6
    times = np.geomspace(0.1, 40, 12)  # later times are those of the reference alone: training takes nearly all of it
    theory = ov.solve(problem, start, times)
    runs = ov.train(problem, start, times, runs=6, seed=1, progress=False)
    verdict = ov.compare(theory, runs, level=1e-3, resolve=0.2, finite_size=False)
    assert verdict.verdict == "agrees", verdict.reason


@pytest.mark.parametrize("f", ["sign", "relu", "tanh", "linear", "erf", np.cos])
def test_gaussian_equivalence_for_any_nonlinearity(f: object) -> None:
    """Theory against training for odd, one-sided and even f; false alarms one in a thousand each."""
    problem = hidden(nonlinearity=f)
    start, times = ov.draw(problem, 400, seed=2), np.geomspace(0.1, 20, 6)
    theory = ov.solve(problem, start, times)
    runs = ov.train(problem, start, times, runs=8, seed=3, progress=False)
    verdict = ov.compare(theory, runs, level=1e-3, resolve=0.3, finite_size=False)
    assert verdict.verdict == "agrees", verdict.reason


@pytest.mark.parametrize(
    ("data", "size"),
    [
        ({"features": "orthogonal"}, 300),
        ({"features": "hadamard"}, 256),
        ({"features": "hadamard", "latent_ratio": 2.0}, 128),
        ({"latent_ratio": 3.0}, 150),
        ({"latent_ratio": None, "latent_dim": 40}, 300),
    ],
)
def test_features_of_all_kinds_and_shapes(data: dict[str, object], size: int) -> None:
    """Also more latent dimensions than inputs; false alarms one in a thousand each."""
    problem = hidden(**data)
    start, times = ov.draw(problem, size, seed=2), np.geomspace(0.1, 10, 5)
    verdict = ov.compare(
        ov.solve(problem, start, times),
        ov.train(problem, start, times, runs=10, seed=3, progress=False),
        level=1e-3,
        resolve=0.4,
        finite_size=False,
    )
    assert verdict.verdict == "agrees", verdict.reason


@pytest.mark.parametrize(("ratio", "size"), [(0.5, 1200), (2.0, 600), (1.0, 800)])
def test_spectrum_of_gaussian_features_is_marchenko_pastur(ratio: float, size: int) -> None:
    """First three moments of the limit are exact, and those of a matrix are near them."""
    s, share = matrices.limit("gaussian", ratio)
    y = 1 / ratio
    exact = [1.0, 1.0, 1 + y, 1 + 3 * y + y**2]
    assert apart([share @ s**n for n in range(4)], exact) < 1e-11
    realised = ov.HiddenManifold(latent_ratio=ratio).at(size)
    weights = realised.dimensions / size
    f = ov.gaussian_equivalent("sign")
    mine = (realised.eigenvalues - (f.c - f.b**2)) / f.b**2
    assert apart([weights @ mine**n for n in range(4)], exact) < 0.05 * exact[-1]
    zero = int(realised.dimensions[mine < 1e-12].sum())
    assert zero == max(0, size - round(ratio * size))


def test_infinite_size_is_the_mean_over_features_and_weights() -> None:
    """Overlaps alone, with the law of Marchenko and Pastur, against the mean over drawn problems of N = 800."""
    times = [1.0, 5.0, 20.0]
    drawn = []
    for seed in range(8):
        problem = hidden(seed=seed)
        drawn.append(ov.solve(problem, ov.draw(problem, 800, seed=seed), times).data["error"].values[0])
    problem = hidden()
    limit = ov.Start.from_overlaps(problem, Q=np.eye(2), R=np.zeros((2, 2)), T=np.eye(2))
    theory = ov.solve(problem, limit, times)
    spread = np.std(drawn, axis=0, ddof=1) / np.sqrt(8)
    # a start without overlaps never breaks the symmetry of its units: drawn ones differ by their fluctuations
    assert apart(theory.data["Q"][0, :, 0, 0], theory.data["Q"][0, :, 1, 1]) < 1e-9
    assert np.all(np.abs(np.mean(drawn, axis=0) - theory.data["error"].values[0]) < 6 * spread + 0.01)


def test_typical_profile_from_the_reference_start() -> None:
    """Covariances of the fields alone give the error of the whole start to the 2 % that its profile is worth."""
    start = reference()[1]
    whole = hidden()
    Q, R, T = np.einsum("b,bij->ij", start.eigenvalues, start.Q), start.R.sum(0), start.teacher_fields.T
    limit = ov.Start.from_overlaps(whole, Q, R, T, student_readout=start.v)
    error = ov.solve(whole, limit, [100.0]).data["error"].item()
    assert error == pytest.approx(0.1253, abs=2e-3)  # .1273 with the realised features


def test_population_statistics_of_the_inputs() -> None:
    """Means and covariances of drawn inputs and teacher fields, given each component, to 6 standard errors and 1/D."""
    latent = ov.LatentMixture(3, 0.8, standardise="population", seed=4, weights=[0.5, 0.3, 0.2])
    for f in ("tanh", "sign", "relu"):
        data = ov.HiddenManifold(latent_dim=60, nonlinearity=f, latent=latent)
        realised, rng = data.at(40), np.random.default_rng(5)
        B, count = rng.standard_normal((2, 60)), 60_000
        X, nu, labels = realised.draw(rng, count, B)
        parts = realised.parts
        for s, p in enumerate(latent.probabilities):
            mine = labels == s
            assert mine.mean() == pytest.approx(p, abs=5 * np.sqrt(p / count))
            x, y = X[mine], nu[mine]
            noise = 6 / np.sqrt(mine.sum())
            assert apart(x.mean(0), parts.mean[s]) < noise
            assert apart(np.cov(x.T), parts.covariance(s)) < noise + 3 / 60
            fields = parts.teacher_fields(B)
            assert apart(y.mean(0), fields.m[:, s]) < 2 * noise
            assert apart(np.cov(y.T), fields.T) < 3 * noise
            cross = (x - x.mean(0)).T @ (y - y.mean(0)) / len(x)
            assert apart(cross, parts.teacher_rows(B)[s].T / np.sqrt(40)) < 2 * noise + 0.02


def test_fields_given_a_component_are_those_of_the_covariance() -> None:
    data = ov.HiddenManifold(latent_dim=30, latent=ov.LatentMixture(2, 2.0))
    parts, rng = data.at(50).parts, np.random.default_rng(0)
    W, B = rng.standard_normal((3, 50)), rng.standard_normal((2, 30))
    C, means = parts.fields(W, B)
    for s in range(2):
        assert apart(C[s, :3, :3], W @ parts.covariance(s) @ W.T / 50) < 1e-12
        assert apart(C[s, :3, 3:], W @ parts.teacher_rows(B)[s].T / 50) < 1e-12
        assert np.linalg.eigvalsh(C[s])[0] > -1e-12
    assert apart(means[:3], W @ parts.mean.T / np.sqrt(50)) < 1e-12


def test_a_run_does_not_depend_on_where_it_is_looked_at() -> None:
    problem = hidden(nonlinearity="tanh")
    start = ov.draw(problem, 60, seed=1)
    few = ov.train(problem, start, [5.0], runs=2, seed=4, progress=False)
    many = ov.train(problem, start, np.arange(1, 61) / 12, runs=2, seed=4, progress=False)
    assert apart(few.data["Q"][:, -1], many.data["Q"][:, -1]) < 1e-12


def test_steps_are_those_of_a_plain_loop() -> None:
    """The same inputs through NumPy, one step at a time, to rounding."""
    problem = ov.Problem(
        data=ov.HiddenManifold(latent_ratio=0.5, nonlinearity="relu", latent=ov.LatentMixture(2, 1.0)),
        teacher=ov.Committee(3, "tanh", readout=[0.5, 1.0, -1.0]),
        student=ov.Committee(2, "tanh", train_readout=True),
        algorithm=ov.OnlineSGD(0.7, readout_rate=0.3, decay=0.2),
        label_noise=0.3,
    )
    start = ov.draw(problem, 40, seed=1)
    run = HiddenWeights(problem, start).copy_with(np.random.default_rng(3))
    run.record(np.array([300]))
    rng, W, v = np.random.default_rng(3), start.student, start.v
    assert W is not None and start.teacher is not None
    rows: list[tuple[np.ndarray, np.ndarray, float]] = []
    while len(rows) < 300:
        X, nu, _ = problem.data.at(40).draw(rng, AHEAD, start.teacher)
        rows += zip(X, nu, 0.3 * rng.standard_normal(AHEAD), strict=True)
    for x, nu, shift in rows[:300]:
        g = np.tanh(W @ x / np.sqrt(40))
        delta = g @ v - np.tanh(nu) @ [0.5, 1.0, -1.0] - shift
        W, v = (
            (1 - 0.7 * 0.2 / 40) * W - 0.7 / np.sqrt(40) * np.outer(delta * v * (1 - g**2), x),
            (1 - 0.3 * 0.2 / 40) * v - 0.3 / 40 * delta * g,
        )
    assert apart(run.W, W) < 1e-11 and apart(run.v, v) < 1e-12


def test_label_noise_and_decay() -> None:
    """False alarms one in a thousand."""
    problem = ov.Problem(
        data=ov.HiddenManifold(latent_ratio=0.5),
        teacher=ov.Committee(1),
        student=ov.Committee(2, train_readout=True),
        algorithm=ov.OnlineSGD(0.5, decay=0.1),
        label_noise=0.5,
    )
    start, times = ov.draw(problem, 400, seed=3), [0.5, 2.0, 8.0]
    runs = ov.train(problem, start, times, runs=10, seed=5, progress=False)
    verdict = ov.compare(ov.solve(problem, start, times), runs, level=1e-3, resolve=0.3, finite_size=False)
    assert verdict.verdict == "agrees", verdict.reason


def test_specs_files_and_equality(tmp_path: Path) -> None:
    latent = ov.LatentMixture(3, 2.0, label="coordinate", standardise="population")
    problem = hidden(nonlinearity="tanh", latent=latent, seed=5)
    assert ov.Problem.from_toml(problem.to_toml()) == problem
    assert hidden() != hidden(features="orthogonal") and hash(hidden().data) == hash(hidden().data)
    F = np.random.default_rng(0).standard_normal((30, 50))
    np.save(tmp_path / "F.npy", F)
    given, named = hidden(latent_ratio=None, features=F), hidden(latent_ratio=None, features=tmp_path / "F.npy")
    assert given == named
    again = ov.Problem.from_toml(named.to_toml())
    assert again == named
    start = ov.draw(given, 50, seed=1)
    result = ov.solve(given, start, [1.0, 2.0])
    loaded = ov.load(result.save(tmp_path / "a.nc"))
    assert loaded.start.latent is not None and apart(loaded.start.latent.T, start.teacher_fields.T) == 0
    assert apart(ov.solve(named, loaded.start, [1.0, 2.0]).data["Q"], result.data["Q"]) < 1e-12
    np.save(tmp_path / "F.npy", F + 1)
    with pytest.raises(ov.InputError, match="digest"):
        ov.Problem.from_toml(named.to_toml())
    assert "T_levels" not in ov.solve(given, start, [1.0], levels=True).data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"latent_ratio": None}, "either latent_dim= .* or latent_ratio="),
        ({"latent_dim": 5}, "either latent_dim="),
        ({"latent_ratio": 0.0}, "latent_ratio: expected a number above 0"),
        ({"latent_ratio": None, "latent_dim": 2.5}, "latent_dim: expected a whole number"),
        ({"features": "fourier"}, "features"),
        ({"latent_ratio": None, "features": np.ones(4)}, "features: expected shape"),
        ({"latent_ratio": None, "features": np.ones((0, 4))}, r"expected a matrix \(D, N\)"),
        ({"latent_ratio": None, "features": np.array([[1.0, 0.0], [1.0, 0.0]])}, "column 1 is zero"),
        ({"latent_ratio": None, "features": np.array([[1.0, np.nan]])}, "not finite"),
        ({"features": np.ones((2, 2))}, "leave them out"),
        ({"latent_ratio": None, "features": "missing.npy"}, "no file missing.npy"),
        ({"nonlinearity": "cube"}, "cube"),
        ({"nonlinearity": np.ones_like}, "is constant"),
        ({"nonlinearity": lambda u: u**9}, "by its standard deviation"),
        ({"nonlinearity": lambda u: np.exp(u**2 / 4)}, "c"),
        ({"latent": 3}, "expected None"),
        ({"centre": 1}, "centre"),
        ({"digest": "ab"}, "none is given"),
    ],
)
def test_bad_input_is_refused(data: dict[str, object], message: str) -> None:
    with pytest.raises((ov.InputError, ov.NumericalError), match=message):
        hidden(**data)


def test_what_a_hidden_manifold_cannot_do_says_why() -> None:
    problem = hidden()
    start = ov.draw(problem, 40, seed=1)
    with pytest.raises(ov.InputError, match="not Gaussian"):
        ov.sample(problem, start, [1.0])
    with pytest.raises(ov.InputError, match="features of a hidden manifold are others"):
        start.at_size(problem, 80)
    with pytest.raises(ov.InputError, match="teacher reads"):
        ov.solve(problem, start, [1.0], system="moments")
    with pytest.raises(ov.InputError, match="latent_ratio= "):
        ov.Start.from_overlaps(hidden(latent_ratio=None, latent_dim=5), np.eye(2), np.zeros((2, 2)), np.eye(2))
    with pytest.raises(ov.InputError, match="use draw"):
        ov.Start.from_overlaps(problem, np.eye(2), np.zeros((2, 2)), np.eye(2), size=100)
    with pytest.raises(ov.InputError, match="no fields have these"):
        ov.Start.from_overlaps(problem, np.eye(2), 2 * np.eye(2), np.eye(2))
    with pytest.raises(ov.InputError, match="R: too large"):
        ov.Start.from_overlaps(problem, np.eye(2), 0.95 * np.eye(2), np.eye(2))
    with pytest.raises(ov.InputError, match="teacher: expected shape"):
        ov.Start.from_weights(problem, np.ones((2, 40)), np.ones((2, 40)))
    with pytest.raises(ov.InputError, match="50 columns"):
        ov.draw(hidden(latent_ratio=None, features=np.random.default_rng(0).standard_normal((30, 50))), 60)
    with pytest.raises(ov.InputError, match="power of two"):
        ov.draw(hidden(features="hadamard"), 100)
    with pytest.raises(ov.InputError, match="other eigenvalues"):
        ov.solve(hidden(seed=1), start, [1.0])
    hadamard = hidden(features="hadamard")
    with pytest.raises(ov.InputError, match="other features"):
        ov.solve(hidden(features="hadamard", seed=1), ov.draw(hadamard, 64), [1.0])
    with pytest.raises(ov.InputError, match="overlap chain"):
        ov.check_scaling(problem, [20, 40])
    with pytest.raises(ov.InputError, match="reads the latent"):
        ov.train(problem, start, [1.0], runs=1, observe=ov.spectra.Observer(), progress=False)
    with pytest.raises(ov.InputError, match="reads the latent"):
        ov.spectra.population(problem, start)
    with pytest.raises(ov.InputError, match="same Gaussian inputs of mean zero"):
        ov.laws.plateau(problem)
    with pytest.raises(ov.InputError, match="teacher: these inputs carry no labels"):
        ov.Problem(data=ov.HiddenManifold(latent_ratio=0.5), student=ov.Committee(2), algorithm=ov.OnlineSGD(0.2))


@pytest.mark.parametrize(
    ("data", "size", "dropped"),
    [({"latent_dim": 20}, 100, 0.16), ({"latent_dim": 20, "nonlinearity": "relu"}, 100, 0.2), ({}, 1000, 0.0045)],
)
def test_what_gaussian_equivalence_leaves_out(data: dict[str, object], size: int, dropped: float) -> None:
    """For Gaussian features ρ² is 3/D² and ρ³ 15/D³ in mean square; at the largest that is taken, training agrees."""
    data = {"latent_ratio": None if "latent_dim" in data else 0.5, **data}
    problem = hidden(**data)
    realised = problem.data.at(size)
    assert realised.dropped == pytest.approx(dropped, rel=0.2)
    if size > 200:
        return
    start, times = ov.draw(problem, size, seed=1), [1.0, 4.0]
    runs = ov.train(problem, start, times, runs=20, seed=2, progress=False)
    X, nu, _ = realised.draw(np.random.default_rng(3), 20_000, start.teacher)
    fields = X @ start.student.T / np.sqrt(size)
    out = [erf(h / np.sqrt(2)) @ r for h, r in ((fields, start.v), (nu, start.u))]
    real = (out[0] - out[1]) ** 2 / 2
    predicted = ov.solve(problem, start, [0.0]).data["error"].item()
    assert abs(real.mean() - predicted) < 5 * real.std() / np.sqrt(20_000) + 0.05 * predicted
    theory = ov.solve(problem, start, times)
    assert np.all(np.abs(theory.data["error"][0] - runs.data["error"].mean("run")) < 0.1 * theory.data["error"][0])


@pytest.mark.parametrize(
    ("data", "size", "message"),
    [
        ({"latent_dim": 5}, 100, "too alike"),
        ({"features": np.tile(np.random.default_rng(0).standard_normal((50, 100)), 2)}, 200, "too alike"),
        ({"features": 1 + 0.5 * np.random.default_rng(0).standard_normal((50, 100))}, 100, "too alike"),
        (
            {"features": np.eye(100), "latent": ov.LatentMixture(2, 5.0, label="coordinate")},
            100,
            "sum many coordinates",
        ),
    ],
)
def test_features_without_a_gaussian_equivalent(data: dict[str, object], size: int, message: str) -> None:
    problem = hidden(latent_ratio=None, **data)
    start = ov.draw(problem, size, seed=1)
    with pytest.raises(ov.InputError, match=message):
        ov.solve(problem, start, [1.0])
    with pytest.warns(UserWarning, match="is not that of the inputs"):
        ov.train(problem, start, [0.1], runs=1, progress=False)


def test_what_weak_mixtures_leave_out_by_batches() -> None:
    """Batches of many rows are steps of gradient flow, and no worse described; single rows are noise besides."""
    problem = hidden(latent=ov.LatentMixture(2, 0.1, seed=1))
    start, kinds = ov.draw(problem, 100, seed=0), [ov.GradientFlow(0.5), *(ov.OnlineSGD(0.5, batch=b) for b in BATCHES)]
    flow, *found = (left_out(replace(problem, algorithm=kind), start) for kind in kinds)
    assert flow == pytest.approx(found[-1], rel=1e-5)
    # noise is one part in as many as a batch has rows
    np.testing.assert_allclose(np.array(found) - flow, (found[0] - flow) / np.array(BATCHES), rtol=0, atol=1e-12 * flow)
    assert found[0] > 1.1 * flow
