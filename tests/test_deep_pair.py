"""Training on two classes: its gradient, what is measured, and that digits are told apart."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
import pytest

from images import Linear, digits, flat
from overlaps.giant_step.deep import Convolutional, Images, PairTraining, Residual, train_pair
from overlaps.giant_step.deep.epochs import standardised
from overlaps.giant_step.deep.networks import Recipe
from overlaps.giant_step.deep.pair import Pair, PairRun, training_loss
from overlaps.giant_step.giant import gradient
from overlaps.giant_step.scores import kendall_w
from overlaps.interface.errors import InputError, NumericalError

SMALL = Convolutional(outputs=16, widths=(8, 16))
N = 64


def trained(runs: int = 2, seed: int = 3, **change: Any) -> PairTraining:
    seen, unseen = digits()
    sets = {"digits": unseen, "three": unseen.select(["7", "8", "9"])}
    return train_pair(seen, sets, SMALL, units=N, classes=3, epochs=15, rate=0.01, runs=runs, seed=seed, **change)


@pytest.fixture(scope="module")
def result() -> PairTraining:
    return trained()


def test_gradient() -> None:
    """Of W it is that of the giant step, of the network that of finite differences; heads have none."""
    rng = np.random.default_rng(0)
    n, d, width = 12, 5, 7
    pixels, y = rng.standard_normal((n, 1, 2, 3)), np.where(np.arange(n) < 5, 1.0, -1.0)
    M, W, heads = rng.standard_normal((d, 6)), rng.standard_normal((d, width)) / 2, rng.standard_normal((2, width))
    model = Pair(Linear(jnp.asarray(M)), jnp.asarray(W), jnp.asarray(heads))
    found = eqx.filter_grad(training_loss)(model, jnp.asarray(pixels), jnp.asarray(y))
    flattened = pixels.reshape(n, 6)
    np.testing.assert_allclose(-found.W, gradient(flattened @ M.T, y, W, heads), rtol=1e-4, atol=1e-6)
    assert not np.any(found.heads)

    def loss(M: np.ndarray) -> float:
        features = np.tanh(flattened @ M.T @ W)
        return sum(np.sum((s * y - features @ a / np.sqrt(width)) ** 2) for s, a in ((1, heads[0]), (-1, heads[1]))) / (
            2 * n
        )

    for i, j in ((0, 0), (2, 4), (4, 5)):
        step = np.zeros_like(M)
        step[i, j] = 1e-5
        slope = (loss(M + step) - loss(M - step)) / 2e-5
        np.testing.assert_allclose(found.network.matrix[i, j], slope, rtol=1e-4)


def test_scores_by_hand() -> None:
    """After two epochs, from the weights: pairs one by one."""
    seen, unseen = (images.truncated(6) for images in digits())
    two, three = seen.select(["1", "4"]), unseen.select(["9", "5", "6"])
    run = PairRun(two, {"digits": three}, flat, N, optax.adam(0.01), jax.random.key(0))
    W0, heads = np.array(run.model.W, float), np.array(run.model.heads, float)
    np.testing.assert_allclose((W0**2).sum(0), 1, rtol=1e-5)
    run.learn()
    run.learn()
    found = run.measure()
    x, z = (standardised(images, two).reshape(-1, 64).astype(float) for images in (two, three))
    y = np.where(two.labels == 0, 1, -1)
    W = np.array(run.model.W, float)
    assert np.abs(W - W0).max() > 1e-3
    np.testing.assert_array_equal(run.model.heads, heads)
    b = sum(y[i] * x[i] for i in range(12)) / 12
    for c in range(3):
        mine = z[three.labels == c]
        F, before = np.tanh(mine @ W), np.tanh(mine @ W0)
        pairs = [F[i] @ F[j] for i in range(6) for j in range(6) if i != j]
        assert found["similarity"][0][c] == pytest.approx(b @ mine.mean(0), rel=1e-4)
        assert found["alignment"][0][c] == pytest.approx(np.mean(pairs), rel=1e-4)
        assert found["elasticity"][0][c] == pytest.approx(np.mean(np.sum((F - before) ** 2, 1)), rel=1e-3)
    answers = np.tanh(x @ W) @ heads.T / np.sqrt(N)
    assert run.loss() == pytest.approx(np.mean((y - answers[:, 0]) ** 2 + (y + answers[:, 1]) ** 2) / 2, rel=1e-4)
    np.testing.assert_allclose(found["correct"], np.mean(np.sign(answers) == np.stack([y, -y], 1), 0))


def test_digits(result: PairTraining) -> None:
    d = result.data
    assert dict(d.sizes) == {"run": 2, "epoch": 16, "set": 2, "unseen": 3, "head": 2, "label": 2}
    assert np.all(d["training_error"][:, -1] < 0.5 * d["training_error"][:, 0])
    assert np.all(d["correct"][:, -1] > 0.95)
    assert not d["elasticity"][:, 0].any()
    assert all(np.isfinite(d[name]).all() for name in d if d[name].dtype.kind == "f")
    similarity, *others = (d[name].values[1, 7, 0] for name in ("similarity", "alignment", "elasticity"))
    assert float(d["concordance"][1, 7, 0]) == kendall_w([np.abs(similarity), *others]).W
    assert set(d["class_name"].values[0, 1]) == {"7", "8", "9"}
    assert set(d["train_name"].values.ravel()) <= set("01234")
    assert "Kendall's W over 3 classes of digits: 0." in repr(result) or "of digits: 1." in repr(result)


def test_same_seed_same_bits(result: PairTraining) -> None:
    """And a run does not depend on how many there are."""
    again = trained(runs=1)
    for name in ("training_error", "similarity", "alignment", "elasticity"):
        np.testing.assert_array_equal(again.data[name][0], result.data[name][0])
    assert np.any(result.data["training_error"][0] != result.data["training_error"][1])


def test_plots(result: PairTraining) -> None:
    ax = result.plot()
    assert ax.get_ylabel() == "Kendall's W"
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), np.arange(1, 16))
    ax = result.plot("elasticity", run=1, set="three")
    labels = [str(line.get_label()) for line in ax.lines]
    assert labels == [*result.data["class_name"].values[1, 1], "together"]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), result.data["elasticity"].values[1, :, 1, 0])
    plt.close("all")
    with pytest.raises(InputError, match="unknown variable 'elastic'"):
        result.plot("elastic")


def test_divergence_keeps_what_came_before() -> None:
    seen, unseen = digits()

    def exploding(channels: int, *, key: Any) -> Linear:
        return Linear(jax.random.normal(key, (4, 64)) / 8)

    with pytest.raises(
        NumericalError, match=r"the loss is nan; lower the rate in run 0 at epoch 1; .* epoch 0"
    ) as caught:
        train_pair(seen, {"digits": unseen}, exploding, units=8, epochs=3, rate=1e30, runs=2)
    assert (caught.value.quantity, caught.value.time) == ("training_error", 1)
    partial = caught.value.partial
    assert partial.data.sizes["epoch"] == 1
    assert partial.data.sizes["run"] == 2
    assert "0 epochs" in repr(partial)


def test_shape_of_resnet18() -> None:
    """As many parameters as the published network, whose batch norms have as many as group norms, and its pixels."""
    recipe = Residual(outputs=1000, widths=(64, 128, 256, 512), blocks=(2, 2, 2, 2), stem=7)
    network = eqx.filter_eval_shape(recipe, 3, key=jax.random.key(0))
    leaves = jax.tree.leaves(eqx.filter(network, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct)))
    assert sum(leaf.size for leaf in leaves) == 11_689_512
    x = jax.ShapeDtypeStruct((3, 224, 224), np.float32)
    for layer in network.layers:
        x = eqx.filter_eval_shape(lambda layer, x: layer(x), layer, x)
    assert x.shape == (512, 7, 7)


@pytest.mark.parametrize("recipe", [Convolutional(6), Residual(6), Residual(6, stem=7)])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 9, 14)])
def test_any_image(recipe: Recipe, shape: tuple[int, int, int]) -> None:
    network = eqx.filter_eval_shape(recipe, shape[0], key=jax.random.key(1))
    out = eqx.filter_eval_shape(lambda network, x: network(x), network, jax.ShapeDtypeStruct(shape, np.float32))
    assert out.shape == (6,)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"units": 0}, "units: expected at least 1"),
        ({"rate": 0}, "rate: expected a number above 0"),
        ({"classes": 6}, r"unseen\['digits'\]: expected at least 6 classes, got 5"),
        ({"network": 3}, "network: expected a recipe"),
        ({"network": lambda channels, *, key: Linear(jnp.ones((2, 2, 64)))}, "network: .* to a vector"),
        ({"unseen": digits()[1]}, "unseen: expected sets of classes by name"),
        ({"unseen": {"same": digits()[0]}}, r"unseen\['same'\]: class '0' is in train too"),
        ({"train": digits()[0].select(["0"])}, "train: expected at least two classes, got 1"),
        ({"train": np.zeros(3)}, "train: expected Images, got ndarray"),
        ({"train": Images.from_arrays(np.zeros((2, 9, 9)), ["a", "b"])}, "expected images of .9, 9, 1."),
    ],
)
def test_refusals(change: dict[str, Any], message: str) -> None:
    seen, unseen = digits()
    asked = {"train": seen, "unseen": {"digits": unseen}, "network": SMALL, "runs": 1, **change}
    with pytest.raises(InputError, match=message):
        train_pair(**asked)


def test_refuses_recipes() -> None:
    with pytest.raises(InputError, match="blocks: expected 3 numbers"):
        Residual(blocks=(1, 2))
    with pytest.raises(InputError, match="stem: expected 3"):
        Residual(stem=5)
    with pytest.raises(InputError, match="widths: expected at least one"):
        Convolutional(widths=())


def test_refuses_single_images() -> None:
    seen, unseen = digits()
    few = Images.from_arrays(unseen.images[[0, 1, 2, 3, 4]], ["a", "a", "b", "c", "c"])
    with pytest.raises(InputError, match=r"unseen\['few'\]: class 'b' has one image"):
        train_pair(seen, {"few": few}, SMALL, classes=2)
