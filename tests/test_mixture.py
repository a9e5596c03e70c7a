"""Gaussian mixtures as data: what they are, what is refused, and the problems made of them."""

from __future__ import annotations

import re
import warnings

import matplotlib

matplotlib.use("Agg")
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import overlaps as ov
from mixtures import XOR, classes, xor
from overlaps.cli.experiment import Experiment
from overlaps.problem.origin import largest_pull

VECTORS = np.random.default_rng(0).standard_normal((3, 20)) / np.sqrt(20)


@pytest.mark.parametrize(
    "data",
    [
        ov.GaussianMixture(means=3),
        ov.GaussianMixture(means=VECTORS, weights=[0.5, 0.3, 0.2]),
        ov.GaussianMixture(gram=XOR, labels=[1, 1, 0, 0], variance=0.1),
        ov.GaussianMixture(gram=[np.eye(2) * 0.2, np.eye(2) * 0.8], spectrum=ov.Spectrum([2.0, 0.5], [0.3, 0.7])),
        ov.GaussianMixture(means=2, spectrum=ov.PowerLaw(4, 0.5), variance=[0.1, 0.3]),
    ],
)
def test_mean_vectors_have_the_inner_products_asked_for(data):
    size = 20
    vectors = data.mean_vectors(size)
    edges = np.concatenate([[0], np.cumsum(data.dimensions(size))])
    gram = data.mean_gram(data.dimensions(size) / size)
    for b in range(edges.size - 1):
        part = vectors[:, edges[b] : edges[b + 1]]
        np.testing.assert_allclose(part @ part.T, gram[b], atol=1e-14)


def test_means_are_orthonormal_if_only_their_number_is_given():
    np.testing.assert_allclose(ov.GaussianMixture(means=4).mean_gram(np.ones(1)), np.eye(4)[None])


@pytest.mark.parametrize("data", [ov.GaussianMixture(means=3), ov.GaussianMixture(gram=XOR, labels=[0, 1, 2, 2])])
def test_a_problem_survives_toml(data):
    problem = ov.Problem(data=data, student=ov.Softmax(3), algorithm=ov.OnlineSGD(1.0, decay=0.1), loss="cross-entropy")
    assert ov.Problem.from_toml(problem.to_toml()) == problem


def test_mean_vectors_survive_toml():
    problem = classes(3, means=VECTORS)
    assert ov.Problem.from_toml(problem.to_toml()) == problem


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "either means= .* or gram="),
        ({"means": 2, "gram": np.eye(2)}, "either means= .* or gram="),
        ({"means": 0}, "means: "),
        ({"means": 2, "weights": [0.5, 0.6]}, "weights: expected a sum of one, got 1.1"),
        ({"means": 2, "weights": [1.0, 0.0]}, "weights: expected numbers above zero"),
        ({"means": 2, "weights": [1.0]}, "weights: expected shape"),
        ({"means": 2, "variance": -0.1}, "variance"),
        ({"means": 2, "variance": [0.1, -0.1]}, r"variance\[1\]"),
        ({"means": 2, "labels": [0]}, "labels: expected 2 numbers, one per component"),
        ({"means": 2, "labels": [0, np.inf]}, r"labels\[1\]"),
        ({"means": 2, "labels": [0, "one"]}, r"labels\[1\]"),
        ({"gram": [[1, 2], [2, 1]]}, "gram: no vectors have these inner products"),
        ({"gram": [[1, 0.1], [0.2, 1]]}, "gram: expected a symmetric matrix"),
        ({"means": [[np.nan, 1.0]]}, "means: has entries that are not finite"),
        ({"means": 2, "spectrum": "flat"}, "spectrum"),
    ],
)
def test_mixtures_that_cannot_be_are_refused(change, message):
    with pytest.raises(ov.InputError, match=message):
        ov.GaussianMixture(**change)


def test_mean_vectors_fix_the_size():
    problem = classes(3, means=VECTORS)
    with pytest.raises(ov.InputError, match="so the size is 20, not 30"):
        ov.draw(problem, 30)
    with pytest.raises(ov.InputError, match="the means span 3 there"):
        ov.draw(classes(3), 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"means": 2, "labels": 2.5}, "labels: expected a list of 2 numbers, one per component"),
        ({"means": 2, "labels": iter([0])}, "labels: expected 2 numbers, one per component"),
        ({"means": [[1.0, 2.0], [1.0]]}, "means: expected an array"),
        ({"means": "three"}, "means: "),
        ({"gram": 1.0}, "gram: expected a matrix"),
        ({"gram": []}, "gram: expected a matrix"),
    ],
)
def test_what_is_no_mixture_at_all_is_refused_by_name(change, message):
    with pytest.raises(ov.InputError, match=message):
        ov.GaussianMixture(**change)


@pytest.mark.parametrize("k", [6, 7, 13, 20])
def test_weights_survive_toml_bit_by_bit(k):
    assert ov.Problem.from_toml(classes(k).to_toml()) == classes(k)
    weights = np.random.default_rng(k).dirichlet(np.ones(k))
    assert ov.Problem.from_toml(classes(k, weights=weights).to_toml()) == classes(k, weights=weights)


def test_a_negative_label_is_not_answered_with_more_classes():
    with pytest.raises(ov.InputError, match=r"renumber them$"):
        classes(3, labels=[-1, 0, 1])


def test_means_on_levels_move_with_the_size():
    """Levels of a third of the dimensions have other shares at other sizes, and means with them."""
    problem = ov.Problem(
        data=ov.GaussianMixture(means=2, spectrum=ov.Spectrum([1, 2], [1 / 3, 2 / 3]), variance=0.2),
        student=ov.Softmax(2),
        algorithm=ov.OnlineSGD(1.0),
        loss="cross-entropy",
    )
    start = ov.draw(problem, 99, seed=0)
    moved = start.at_size(problem, 100)
    np.testing.assert_allclose(moved.m.sum(0), start.m.sum(0), atol=0.02)
    np.testing.assert_allclose(moved.G.sum(0), np.eye(2), atol=1e-12)
    assert np.linalg.eigvalsh(moved.gram).min() > -1e-12
    ov.sample(problem, ov.Start.from_overlaps(problem, Q=start.Q, m=start.m, size=64), [1.0], runs=2)


def test_starts_of_other_mean_vectors_are_refused():
    """The same inner products, other vectors: training and test samples would not be of one law."""
    turned = classes(3, means=np.linalg.qr(np.random.default_rng(0).standard_normal((20, 3)))[0].T)
    straight = classes(3)
    with pytest.raises(ov.InputError, match="other mean vectors"):
        ov.train(straight, ov.draw(turned, 20), [1.0])


def test_a_unit_without_noise_is_refused_by_macro():
    problem = ov.Problem(
        data=ov.GaussianMixture(gram=XOR, labels=[1, 1, 0, 0], variance=[0.1, 0.1, 0.1, 0.0]),
        student=ov.Committee(3, "relu", train_readout=True),
        algorithm=ov.OnlineSGD(1.0),
        loss="logistic",
    )
    with pytest.raises(ov.InputError, match="slides along its kinks"):
        ov.solve(problem, ov.draw(problem, 20), [1.0])


def test_a_spec_whose_means_do_not_fit_is_refused_before_it_runs():
    with pytest.raises(ov.InputError, match="the means span 3 there"):
        Experiment.from_toml(SPEC.replace("size = 60", "size = 2"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "square"}, "cross-entropy and Softmax go together"),
        ({"student": ov.Committee(3)}, "cross-entropy and Softmax go together"),
        ({"student": ov.Softmax(2)}, "labels: expected labels from 0 to 1 .* got 2"),
        ({"student": ov.Committee(3), "loss": "logistic"}, "labels: expected 0 and 1, or -1 and 1"),
        ({"teacher": ov.Committee(1)}, "drop the teacher"),
        ({"label_noise": 0.1}, "label_noise: the cross-entropy loss takes labels as they are"),
        ({"loss": "hinge"}, "hinge"),
        ({"data": ov.GaussianInputs()}, "teacher: these inputs carry no labels"),
    ],
)
def test_problems_that_do_not_fit_together_are_refused(change, message):
    parts = {
        "data": ov.GaussianMixture(means=3),
        "student": ov.Softmax(3),
        "algorithm": ov.OnlineSGD(1.0),
        "loss": "cross-entropy",
    }
    with pytest.raises(ov.InputError, match=message):
        ov.Problem(**{**parts, **change})


def test_starts_of_other_means_are_refused():
    start = ov.draw(classes(3), 20)
    with pytest.raises(ov.InputError, match="inputs of other means"):
        ov.solve(classes(3, gram=2 * np.eye(3)), start, [1.0])
    with pytest.raises(ov.InputError, match="no weights have these overlaps"):
        ov.Start.from_overlaps(classes(3), Q=np.eye(3), m=1.1 * np.eye(3))


def transition_in(warned: pytest.WarningsRecorder) -> float:
    """The largest decay that leaves the origin unstable, as a warning says it."""
    found = re.search(r"is not below (\S+), where the origin", str(warned[0].message))
    assert found is not None
    return float(found.group(1))


def test_a_decay_that_wins_over_the_data_is_warned_of():
    """Above the transition (0.0935 at variance 0.1) small weights shrink to nothing, and the warning says so."""
    with pytest.warns(UserWarning, match="where the origin becomes stable") as warned:
        problem = xor(decay=0.1)
    assert transition_in(warned) == pytest.approx(0.0935, abs=5e-5)
    start = ov.draw(problem, 200, seed=0, scale=0.3)
    end = ov.sample(problem, start, [0.0, 400.0], runs=4, seed=0).data["v"].values[:, :, 0]
    assert np.abs(end[:, 1]).max() < 0.1 * end[:, 0].max()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        xor(decay=0.09)


def test_the_transition_without_noise_is_one_eighth():
    with pytest.warns(UserWarning, match="where the origin becomes stable") as warned:
        xor(variance=0.0, decay=0.1251)
    assert transition_in(warned) == pytest.approx(1 / 8, rel=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        xor(variance=0.0, decay=0.1249)


@pytest.mark.parametrize("variance", [0.01, 0.1, 1.0])
def test_the_transition_of_xor_is_that_of_its_law(variance):
    gram = np.array(XOR, dtype=float)
    found = largest_pull(gram, np.full(4, 0.25), np.full(4, variance), np.array([1, 1, 0, 0]))
    assert found == pytest.approx(ov.laws.xor_transition(variance), rel=1e-6)


def test_telling_representations():
    assert repr(xor().data) == "GaussianMixture(4 components, variance 0.1, labels [1, 1, 0, 0])"
    start = ov.draw(classes(3), 20)
    assert repr(start) == "Start(weights and overlaps: K = 3, 3 means, 1 level, N = 20)"
    run = ov.sample(classes(3), start, [1.0], runs=2)
    assert "K = 3, 3 means, 1 level" in repr(run)
    assert run.variables == ("Q", "m", "error")


def test_results_of_mixtures_are_saved_and_read_back(tmp_path):
    problem = xor()
    start = ov.draw(problem, 30)
    run = ov.sample(problem, start, [1.0, 2.0], runs=2, levels=True)
    again = ov.load(run.save(tmp_path / "xor.nc"))
    assert again.problem == problem
    np.testing.assert_array_equal(again.data["m"], run.data["m"])
    np.testing.assert_array_equal(again.start.m, start.m)
    np.testing.assert_allclose(run.data["m_levels"].sum("level"), run.data["m"], atol=1e-14)


SPEC = """
loss = "cross-entropy"
[data]
kind = "GaussianMixture"
means = 3
weights = [0.5, 0.3, 0.2]
variance = 0.1
[student]
kind = "Softmax"
classes = 3
[algorithm]
rate = 1.0
decay = 0.01
[run]
size = 60
last = 4.0
count = 5
meso_runs = 20
micro_runs = 4
"""


def test_a_spec_runs_at_all_scales(tmp_path):
    experiment = Experiment.from_toml(SPEC)
    assert "softmax of 3 classes" in experiment.describe()
    outcome = experiment.execute(tmp_path / "out", progress=False)
    assert outcome.figure_path.is_file() and set(outcome.results) == {"macro", "meso", "micro"}
    assert Experiment.from_toml((tmp_path / "out" / "spec.toml").read_text()) == experiment
    cited = " ".join(outcome.results["meso"].citations())
    assert "effective dynamics" in cited and "outlier eigenspaces" in cited


@settings(max_examples=12, derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    k=st.integers(2, 4),
    softmax=st.booleans(),
    activation=st.sampled_from(["relu", "tanh"]),
    variance=st.floats(0, 1),
    length=st.floats(0, 2),
    rate=st.floats(1e-2, 5),
    decay=st.floats(0, 1),
    size=st.integers(1, 40),
    seed=st.integers(0, 5),
)
def test_fuzzed_mixtures_give_finite_trajectories_or_typed_refusals(
    k, softmax, activation, variance, length, rate, decay, size, seed
):
    """Never a NaN, never an error of another type."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((k, 3))
    student = ov.Softmax(k) if softmax else ov.Committee(2, activation, [1.0, -0.5], train_readout=True)
    labels = None if softmax else (np.arange(k) % 2).tolist()
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a decay that wins
        problem = ov.Problem(
            data=ov.GaussianMixture(
                gram=length**2 * rows @ rows.T / 3, labels=labels, variance=variance, weights=rng.dirichlet([3.0] * k)
            ),
            student=student,
            algorithm=ov.OnlineSGD(rate, decay=decay),
            loss="cross-entropy" if softmax else "logistic",
        )
    try:
        start = ov.draw(problem, size, seed=1)
    except ov.InputError as refusal:
        assert "span" in str(refusal)
        return
    for scale in (lambda: ov.solve(problem, start, [0.5, 2.0]), lambda: ov.sample(problem, start, [0.5, 2.0], runs=2)):
        try:
            results.append(scale())
        except ov.NumericalError as error:
            assert error.quantity and np.isfinite(error.time)
            results += [error.partial] if error.partial is not None else []
        except ov.InputError as refusal:
            assert "overshoots" in str(refusal) or "slides along its kinks" in str(refusal)
    for result in results:
        for name in result.variables:
            assert np.isfinite(result.data[name].values).all()
