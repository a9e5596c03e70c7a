"""Metric learning: its loss, its scores by hand, and that it learns digits."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.stats import combine_pvalues, pearsonr

from images import Linear, digits, flat
from overlaps.giant_step.deep import Convolutional, Images, MetricTraining, train_metric
from overlaps.giant_step.deep.epochs import standardised
from overlaps.giant_step.deep.metric import Embedding, normalised_softmax, training_loss
from overlaps.interface.errors import InputError, NumericalError

SMALL = Convolutional(outputs=16, widths=(8, 16))


def trained(runs: int = 2) -> MetricTraining:
    seen, unseen = (images.truncated(60) for images in digits())
    return train_metric(seen, unseen, SMALL, batch=(5, 10), epochs=6, rate=0.003, runs=runs, seed=1)


@pytest.fixture(scope="module")
def result() -> MetricTraining:
    return trained()


def test_normalised_softmax() -> None:
    rng = np.random.default_rng(0)
    x, p, labels = rng.standard_normal((6, 5)), rng.standard_normal((4, 5)), np.array([0, 1, 2, 3, 3, 1])
    total = 0.0
    for row, label in zip(x, labels, strict=True):
        odds = [np.exp(row @ w / np.linalg.norm(row) / np.linalg.norm(w) / 0.05) for w in p]
        total -= np.log(odds[label] / sum(odds)) / 6
    assert float(normalised_softmax(jnp.asarray(x), jnp.asarray(p), jnp.asarray(labels))) == pytest.approx(
        total, rel=1e-5
    )
    M, pixels = rng.standard_normal((5, 6)), rng.standard_normal((6, 1, 2, 3))
    model = Embedding(Linear(jnp.asarray(M)), jnp.asarray(p))
    raw = pixels.reshape(6, 6) @ M.T
    normed = (raw - raw.mean(1, keepdims=True)) / raw.std(1, keepdims=True)
    expected = normalised_softmax(jnp.asarray(normed), jnp.asarray(p), jnp.asarray(labels))
    found = training_loss(model, jnp.asarray(pixels), jnp.asarray(labels))
    assert float(found) == pytest.approx(float(expected), rel=1e-3)


def test_scores_by_hand() -> None:
    """A network that cannot learn: its embedding is the layer norm of the pixels at every epoch."""
    seen, unseen = (images.truncated(12) for images in digits())
    d = train_metric(seen, unseen, flat, epochs=1, runs=2).data.isel(epoch=1)
    x = standardised(unseen, seen).reshape(60, 64).astype(float)
    x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    cosines = x @ x.T / np.sqrt(np.outer((x**2).sum(1), (x**2).sum(1)))
    np.fill_diagonal(cosines, -2)
    nearest = unseen.labels[np.argsort(-cosines, axis=1)]
    found = {k: (nearest[:, :k] == unseen.labels[:, None]).any(1) for k in (1, 2, 4, 8)}
    by_class = [found[1][unseen.labels == c].mean() for c in range(5)]
    aligned = []
    for c in range(5):
        mine = x[unseen.labels == c]
        aligned.append(np.mean([mine[i] @ mine[j] for i in range(12) for j in range(12) if i != j]))
    r, p = pearsonr(aligned, by_class)
    for run in range(2):
        one = d.isel(run=run)
        np.testing.assert_allclose(one["recall_all"], [found[k].mean() for k in (1, 2, 4, 8)])
        np.testing.assert_allclose(one["recall"], by_class)
        np.testing.assert_allclose(one["alignment"], aligned, rtol=1e-4)
        assert float(one["alignment_mean"]) == pytest.approx(np.mean(aligned), rel=1e-4)
        assert float(one["correlation"]) == pytest.approx(r, abs=1e-4)
        assert float(one["p_value"]) == pytest.approx(p, abs=1e-4)
    assert float(d["combined_p_value"]) == pytest.approx(combine_pvalues([p, p]).pvalue, abs=1e-4)
    assert d["unseen"].values.tolist() == list("56789")


def test_digits(result: MetricTraining) -> None:
    d = result.data
    assert dict(d.sizes) == {"run": 2, "epoch": 7, "neighbours": 4, "unseen": 5}
    assert np.all(d["training_error"][:, -1] < 0.5 * d["training_error"][:, 0])
    assert all(np.isfinite(d[name]).all() for name in d)
    assert np.all(np.diff(d["recall_all"], axis=2) >= 0)
    assert "5 seen and 5 unseen classes, 2 runs of 6 epochs, seed 1" in repr(result)


def test_table(result: MetricTraining) -> None:
    lines = result.table().splitlines()
    assert len({len(line) for line in lines}) == 1
    assert [line.split()[0] for line in lines] == ["run", "0", "1", "mean"]
    last = result.data.isel(epoch=-1)
    r = last["correlation"].values
    assert lines[3].split()[1:5] == [
        f"{r.mean():.4f}",
        "±",
        f"{r.std(ddof=1):.4f}",
        f"{float(last['combined_p_value']):.4f}",
    ]
    assert float(lines[1].split()[3]) == pytest.approx(100 * float(last["recall_all"][0, 0]), abs=0.006)


def test_same_seed_same_bits(result: MetricTraining) -> None:
    again = trained(runs=1)
    for name in ("training_error", "recall", "alignment"):
        np.testing.assert_array_equal(again.data[name][0], result.data[name][0])


def test_plots(result: MetricTraining) -> None:
    ax = result.plot()
    np.testing.assert_array_equal(ax.lines[1].get_xdata(), result.data["alignment"][1, -1])
    assert len(result.plot("recall_all").lines) == 4
    plt.close("all")
    with pytest.raises(InputError, match="unknown variable"):
        result.plot("accuracy")


def test_divergence_keeps_what_came_before() -> None:
    seen, unseen = (images.truncated(10) for images in digits())
    with pytest.raises(NumericalError, match=r"metric training: .* at epoch 1; .* epoch 0 is in \.partial") as caught:
        train_metric(seen, unseen, SMALL, rate=1e30, runs=2, epochs=2)
    assert caught.value.time == 1
    assert caught.value.partial.data.sizes == {**caught.value.partial.data.sizes, "epoch": 1, "run": 2}


def test_equal_recalls_have_no_correlation() -> None:
    """Three classes that nothing can confuse: every recall is one."""
    rng = np.random.default_rng(0)
    stripes = np.zeros((6, 8, 8))
    for c in range(6):
        stripes[c, c] = 1
    labels = np.repeat(np.arange(6), 5)
    images = Images.from_arrays(0.8 * stripes[labels] + 0.1 * rng.random((30, 8, 8)), labels)
    found = train_metric(*images.split(), flat, epochs=1, runs=1).data.isel(epoch=-1)
    assert found["recall"].values.tolist() == [[1, 1, 1]]
    assert (found["correlation"].item(), found["p_value"].item()) == (0, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": (6, 2)}, r"batch\[0\]: expected at most 5"),
        ({"batch": 75}, "batch: expected .classes, images of each., got 75"),
        ({"unseen": digits()[1].select(["5", "6"])}, "unseen: a correlation over classes needs at least 3"),
        ({"unseen": digits()[1].truncated(1)}, "unseen: class '5' has one image"),
        ({"epochs": 0}, "epochs: expected at least 1"),
        ({"runs": 0}, "runs: expected at least 1"),
    ],
)
def test_refusals(change: dict[str, Any], message: str) -> None:
    seen, unseen = digits()
    with pytest.raises(InputError, match=message):
        train_metric(**{"train": seen, "unseen": unseen, "network": SMALL, "runs": 1, **change})
