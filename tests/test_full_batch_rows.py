"""Full batches on rows that are learned as classes: by other routes, and next to Gaussians of the same moments."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import real_full_batch
from scipy.special import expit

import overlaps as ov

RNG = np.random.default_rng(0)
CLASSES = np.arange(400) % 2
ROWS = RNG.uniform(-1.0, 1.0, (400, 6)) + 0.8 * CLASSES[:, None] * np.array([1.0, -1.0, 0.5, 0.0, 0.0, 0.2])
HEAVY_BALL = ov.FullBatch(steps=8, rate=0.6, ratio=0.03, method="heavy-ball", momentum=0.4)


def test_a_linear_student_is_the_regression_on_the_same_labels() -> None:
    """Named groups make a classifier of it, which takes another way through the gradients."""
    names = ("error", "training_error", "Q")
    found = []
    for groups in (None, 1):
        data = ov.Samples(ROWS, CLASSES, groups=groups)
        p = ov.Problem(data=data, student=ov.Committee(2, "linear", readout=[1.0, -0.4]), algorithm=HEAVY_BALL)
        assert p.classifies_rows == (groups is not None)
        W = np.random.default_rng(1).standard_normal((2, 6))
        found.append(ov.train(p, ov.Start.from_weights(p, W), runs=2, progress=False).data)
    for name in names:
        np.testing.assert_allclose(found[0][name].values, found[1][name].values, rtol=1e-10, err_msg=name)


def test_logistic_regression_is_gradient_descent_on_the_mean_loss() -> None:
    """Written out with NumPy on the rows that the training set has; the others are tested on."""
    data = ov.Samples(ROWS, CLASSES)
    algorithm = ov.FullBatch(steps=5, rate=0.7, ratio=0.03)
    p = ov.Problem(data=data, student=ov.Committee(1, "linear"), loss="logistic", algorithm=algorithm)
    run = ov.train(p, ov.draw(p, 6, scale=0.0), [0, 2, 5], runs=1, progress=False).data
    inside = np.sort(np.random.default_rng(0).permutation(400)[:200])
    outside = np.setdiff1d(np.arange(400), inside)
    X, theta, found = data.rows, np.zeros(6), []
    for step in range(6):
        if step in (0, 2, 5):
            f = X @ theta
            loss, wrong = np.logaddexp(0.0, f) - CLASSES * f, (f > 0) != CLASSES
            found.append([loss[inside].mean(), loss[outside].mean(), wrong[outside].mean()])
        slope = expit(X[inside] @ theta) - CLASSES[inside]
        theta = theta - 0.7 * X[inside].T @ slope / 200
    for name, values in zip(("training_error", "error", "misclassified"), np.transpose(found), strict=True):
        start = 1 if name == "misclassified" else 0  # at the start all outputs are zero, which is a tie
        np.testing.assert_allclose(run[name].values[0, start:], values[start:], atol=1e-12, err_msg=name)


def test_softmax_learns_many_classes() -> None:
    data = ov.Samples(ov.digits(), ov.digit_labels())
    algorithm = ov.FullBatch(steps=20, rate=0.5, ratio=0.1)
    p = ov.Problem(data=data, student=ov.Softmax(10), loss="cross-entropy", algorithm=algorithm)
    run = ov.train(p, ov.draw(p, data.size, scale=0.1), [0, 20], runs=1, progress=False).data
    assert run["misclassified"].values[0, -1] < 0.15 < 0.7 < run["misclassified"].values[0, 0]
    np.testing.assert_allclose(run["confusion"].values.sum(-1), 1.0)


def test_universality_on_digits() -> None:
    """Errors on rows are those on ten Gaussians of their means and covariance; on isotropic ones they are not.

    Rows are not Gaussian, so that there is no level of false alarms: 10 % is what docs/real_full_batch.md promises.
    """
    rows = real_full_batch.sets()["digits, even or odd, 10 Gaussians"].of_one_covariance()
    for isotropic in (False, True):
        mean = real_full_batch.errors(rows, "logistic", 8, isotropic).mean(0)
        apart = np.abs(mean[0] / mean[1] - 1)
        assert (apart > 0.2).all() if isotropic else (apart < 0.1).all(), apart


def test_what_has_no_theory_or_diverges_is_refused() -> None:
    data = ov.Samples(ROWS, CLASSES, groups=1)
    p = ov.Problem(data=data, student=ov.Committee(1, "linear"), algorithm=ov.FullBatch(30, 5e3, ratio=0.03))
    start = ov.draw(p, 6)
    with pytest.raises(ov.InputError, match="data: theory of full batches takes classes whose covariances commute"):
        ov.solve(p, start)
    with pytest.raises(ov.NumericalError, match="training diverged at step") as caught:
        ov.train(p, start, runs=1, progress=False)
    assert caught.value.quantity == "training_error"
    assert np.isfinite(caught.value.partial.data["error"]).all()
