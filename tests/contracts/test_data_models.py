"""Every data model, in each of its examples: levels, samples against what it says of them, and all three scales."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import overlaps as ov

from .cases import EXAMPLES, LEVEL, MODELS, equal_in_law, refused_by_field, round_trip, tends_to_theory

every = pytest.mark.parametrize("name", EXAMPLES)
REFUSED = [(name, i) for name, module in MODELS.items() for i in range(len(module.REFUSED))]


def test_every_model_has_examples_and_refusals() -> None:
    for name, module in MODELS.items():
        assert module.REFUSED and module.examples(), name
        assert all(type(data) is module.MODEL for data in module.examples()), name


def size_of(data: Any, wanted: int) -> int:
    """`wanted`, or the size that the data fix."""
    try:
        data.dimensions(wanted)
    except ov.InputError as error:
        found = re.search(r"the size is (\d+), not", str(error))
        assert found, error
        return int(found[1])
    return wanted


def problem_on(data: Any, rate: float = 0.3) -> ov.Problem:
    """Two units learn the labels where there are some, otherwise a teacher."""
    return ov.Problem(
        data=data,
        teacher=None if data.labelled else ov.Committee(1),
        student=ov.Committee(2, readout=[1.0, -0.7], train_readout=True),
        algorithm=ov.OnlineSGD(rate),
    )


@every
def test_levels_fill_the_space(name: str) -> None:
    """Eigenvalues, shares and dimensions of levels, components, and means that have the overlaps they are said to."""
    data = EXAMPLES[name]
    N = size_of(data, 60)
    assert np.all(data.eigenvalues >= 0) and data.eigenvalues.shape == data.fractions.shape
    assert np.all(data.fractions > 0) and data.fractions.sum() == pytest.approx(1, abs=1e-12)
    omega, n = data.eigenvalues_at(N), data.dimensions(N)
    assert n.dtype.kind == "i" and n.sum() == N and np.all(n >= 1)
    assert omega.shape == n.shape and np.all(np.isfinite(omega)) and np.all(omega >= 0)
    weights, variances, labels = data.components
    assert weights.sum() == pytest.approx(1, abs=1e-12) and np.all(weights > 0) and np.all(variances >= 0)
    assert weights.shape == variances.shape == labels.shape
    means = data.mean_vectors(N)
    assert means.shape == ((weights.size if data.has_means else 0), N)
    blocks = np.split(data.turned(means), np.cumsum(n)[:-1], axis=1)
    np.testing.assert_allclose(data.mean_gram(n / N, N), [block @ block.T for block in blocks], atol=1e-12)
    rows = np.random.default_rng(0).standard_normal((3, N))
    np.testing.assert_allclose(data.turned(rows) @ data.turned(rows).T, rows @ rows.T, rtol=1e-10)
    B = np.random.default_rng(1).standard_normal((2, data.teacher_size(N)))
    assert data.teacher_rows(B, N).shape == (2, N)


class Inputs:
    """An observer that keeps the first inputs and labels of a training run."""

    times = None

    def __init__(self, count: int) -> None:
        self.count = count

    def variables(self, problem: ov.Problem, start: ov.Start) -> dict[str, tuple[str, ...]]:
        return {"nothing": ()}

    def begin(self, problem: ov.Problem, start: ov.Start, redraw: Any, seed: int) -> Inputs:
        self.inputs, self.labels = redraw(self.count)
        return self

    def observe(self, W: Any, v: Any) -> dict[str, Any]:
        return {"nothing": np.zeros(())}


@every
def test_samples_have_the_statistics_of_the_population(name: str) -> None:
    """Inputs that a training run draws: how often each label comes, and given it the mean and second moments.

    Second moments are those of random directions within a level and across levels. Those of a hidden manifold are the
    stated ones up to N^-1/2, and exactly so in total.
    """
    data = EXAMPLES[name]
    N = size_of(data, 144 if data.reads_latent else 24)
    p = problem_on(data)
    seen = Inputs(20_000)
    ov.train(p, ov.draw(p, N, seed=0, scale=0.5), [1 / N], runs=1, seed=5, observe=seen, progress=False)
    X, labels = data.turned(seen.inputs), seen.labels
    if data.targets is not None:  # labels of rows: each comes with its own row, and says nothing about components
        order = {row.tobytes(): target for row, target in zip(data.rows, data.targets, strict=True)}
        assert [order[x.tobytes()] for x in seen.inputs] == labels.tolist()
        labels = np.zeros(len(X))
    omega, n = np.repeat(data.eigenvalues_at(N), data.dimensions(N)), data.dimensions(N)
    weights, variances, own = data.components
    means = data.turned(data.mean_vectors(N)) if data.has_means else np.zeros((weights.size, N))
    rng = np.random.default_rng(7)
    directions = rng.standard_normal((4, N))
    level = np.repeat(np.arange(n.size), n)
    directions = np.concatenate([directions, *(directions[:2] * (level == b) for b in range(min(n.size, 5)))])
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    scores, total = [], []
    for label in np.unique(own):
        here, mine = labels == label, own == label
        share = weights[mine].sum()
        if share < 1:
            scores.append((here.mean() - share) / np.sqrt(share * (1 - share) / len(X)))
        parts = weights[mine] / share
        along = X[here] @ directions.T
        first = parts @ means[mine] @ directions.T
        second = parts @ (along_directions(data, directions, omega)[mine] + (means[mine] @ directions.T) ** 2)
        slack = N**-0.5 * second if data.reads_latent else 0.0
        scores += [*z(along, first), *z(along**2, second, slack)]
        length = parts @ (variances[mine] * omega.sum() + (means[mine] ** 2).sum(1))
        total += [*z((X[here] ** 2).sum(1)[:, None], length)]
    limit = norm.isf(LEVEL / 2 / (len(scores) + len(total)))
    worst = float(np.abs([*scores, *total]).max())
    assert worst < limit, f"{worst:.1f} standard errors from what the model says; {limit:.1f} are allowed"


def along_directions(data: Any, directions: np.ndarray, omega: np.ndarray) -> np.ndarray:
    """Variance of the inputs of each component along directions (n, N) in the eigenbasis, (components, n)."""
    if isinstance(data, ov.GaussianClasses):
        basis = data.turned(np.eye(data.size))
        return np.array([np.diag(directions @ basis.T @ matrix @ basis @ directions.T) for matrix in data.matrices])
    if not data.one_covariance:
        return np.repeat(data.component_eigenvalues, data.dimensions(omega.size), axis=1) @ directions.T**2
    return data.components.variances[:, None] * (directions**2 @ omega)


def z(samples: np.ndarray, expected: Any, slack: Any = 0.0) -> np.ndarray:
    """Deviation of the means over rows beyond `slack`, in standard errors; zero where nothing varies and nothing is."""
    apart = np.maximum(np.abs(samples.mean(0) - expected) - slack - 1e-9, 0.0)
    return apart / np.maximum(samples.std(0) / np.sqrt(len(samples)), 1e-12)


@every
def test_a_problem_on_it_survives_toml(name: str) -> None:
    """Arrays are the exception, and the refusal says what to do."""
    p = problem_on(EXAMPLES[name])
    assert type(p.data).__name__ in repr(p)
    if any(isinstance(getattr(p.data, part.name), np.ndarray) for part in fields(p.data)):
        with pytest.raises(ov.InputError, match=r"^\w+: an array cannot be written to TOML; .*numpy.save"):
            p.to_toml()
    else:
        round_trip(p)


@pytest.mark.parametrize(("name", "i"), REFUSED)
def test_what_is_outside_its_domain_is_refused_by_field(name: str, i: int) -> None:
    refused_by_field(MODELS[name].MODEL, MODELS[name].REFUSED[i])


@every
def test_the_three_scales_agree(name: str) -> None:
    """Hidden manifolds have no meso, so that training is compared with theory; samples have a Gaussian one."""
    data = EXAMPLES[name]
    p = problem_on(data)
    if data.reads_latent:
        with pytest.raises(ov.InputError, match=r"^data: .*use train"):
            ov.sample(p, ov.draw(p, size_of(data, 40)), [1.0])
        tends_to_theory(p, ov.train, size_of(data, 256), runs=30, times=(0.5, 2.0))
    elif not data.commuting:
        with pytest.raises(ov.InputError, match=r"^data: covariances that do not commute .*use train"):
            ov.sample(p, ov.draw(p, size_of(data, 40)), [1.0])
        tends_to_theory(p, ov.train, data.size, runs=200, times=(0.5, 2.0))
    elif p.classifies_rows:  # theory against training: test_classified_rows.py
        with pytest.raises(ov.InputError, match=r"^data: theory takes each class .*use train or solve"):
            ov.sample(p, ov.draw(p, data.size), [1.0])
        for result in (ov.solve(p, ov.draw(p, data.size), [1.0]), ov.train(p, ov.draw(p, data.size), [1.0], runs=2)):
            assert np.isfinite(result.data["confusion"]).all() and result.data["error"].values.min() > 0
    elif data.targets is not None:  # labelled rows: theory is for linear students, see test_labelled_rows.py
        with pytest.raises(ov.InputError, match=r"^student: theory of labelled rows is for linear students"):
            ov.solve(p, ov.draw(p, data.size), [1.0])
        assert np.isfinite(ov.train(p, ov.draw(p, data.size), [1.0], runs=2, progress=False).data["error"]).all()
    elif isinstance(data, ov.Samples):
        gaussian = problem_on(ov.GaussianInputs(data.spectrum))
        start = ov.draw(p, size_of(data, 40), seed=0)
        both = (ov.sample(q, start, [1.0, 3.0], runs=3, progress=False).data["Q"] for q in (p, gaussian))
        np.testing.assert_array_equal(*both)
    else:
        equal_in_law(p, size_of(data, 40), runs=120)
        tends_to_theory(p, size=size_of(data, 1000))
