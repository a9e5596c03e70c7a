"""Metric learning: does Recall@1 of an unseen class go with its alignment?

A network makes vectors of images, whose layer norm x (d,), without free parameters, is the embedding; every seen class
has a weight p_c (d,). The normalised softmax loss of an image of class y is, with the cosines of x and the weights,

    −log [ exp(cos(x, p_y)/T) / Σ_c exp(cos(x, p_c)/T) ],   T = 0.05

(A. Zhai and H.-Y. Wu, Classification is a strong baseline for deep metric learning, BMVC (2019)). It is lowered by SGD
with momentum 0.9 on batches of a few classes with a few images of each. After every epoch the nearest neighbours of
unseen images are found by the cosine: Recall@k of all of them, and class by class Recall@1 and the alignment of x,
|x|² = d. Over the classes of a run these two have a Pearson correlation with a two-sided p-value; p-values of the runs
are combined by Fisher's method (`overlaps.giant_step.scores`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import xarray as xr
from numpy.typing import NDArray

from ...interface.checks import checked, number, whole
from ...interface.errors import InputError, shown, unknown
from ..scores import Correlation, alignment, combined, correlation, hits
from .epochs import (
    Measured,
    build,
    check_train,
    check_unseen,
    description,
    follow,
    mean_spread,
    outputs,
    standardised,
    step,
    streams,
)
from .images import Images
from .networks import Convolutional, Recipe

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TEMPERATURE = 0.05
MOMENTUM = 0.9
NEIGHBOURS = (1, 2, 4, 8)


@dataclass(frozen=True, eq=False)
class MetricTraining:
    """What was measured while networks learned an embedding.

    Attributes
    ----------
    data: dataset with the variables

        | variable | dims | meaning |
        |---|---|---|
        | recall, alignment | run, epoch, unseen | Recall@1 and alignment of each unseen class |
        | recall_all | run, epoch, neighbours | Recall@k over all unseen images |
        | alignment_mean | run, epoch | mean of the alignment over classes |
        | correlation, p_value | run, epoch | of the two over classes |
        | combined_p_value | epoch | of all runs |
        | training_error | run, epoch | mean loss of the training images |

        Where all classes have one and the same recall nothing can go with it: correlation 0, p-value 1. Fisher's method
        takes runs as independent, but they are measured on the same images: the combined p-value is on the small side.
    """

    data: xr.Dataset

    def __repr__(self) -> str:
        d, a = self.data, self.data.attrs
        runs, epochs = d.sizes["run"], int(d["epoch"][-1])
        first, last = d.isel(epoch=0), d.isel(epoch=-1)
        found = [mean_spread(100 * x["recall_all"].sel(neighbours=1).values, 1) for x in (first, last)]
        return "\n".join(
            [
                f"metric training: {a['seen']} seen and {d.sizes['unseen']} unseen classes, "
                f"{runs} run{'s' * (runs > 1)} of {epochs} epochs, seed {a['seed']}",
                f"  network: {a['network']}; SGD at rate {a['rate']:g}, batches of {a['batch']}",
                f"  training error {float(first['training_error'].mean()):.4g} -> "
                f"{float(last['training_error'].mean()):.4g}, Recall@1 {found[0]} -> {found[1]} %",
                f"  Recall@1 against alignment over classes: r = {mean_spread(last['correlation'].values)}, "
                f"p = {float(last['combined_p_value']):.2g}",
            ]
        )

    def table(self) -> str:
        """All runs at the last epoch, and their mean ± standard deviation with the combined p-value; recalls in %."""
        last = self.data.isel(epoch=-1)
        recalls = [100 * last["recall_all"].sel(neighbours=k).values for k in NEIGHBOURS]
        columns = {
            "R@1 v. align": (last["correlation"].values, 4),
            "p-value": (last["p_value"].values, 4),
            **{f"Recall@{k}": (values, 2) for k, values in zip(NEIGHBOURS, recalls, strict=True)},
            "avg. align": (last["alignment_mean"].values, 2),
        }
        rows = [["run", *columns]]
        rows += [[str(r), *(f"{x[r]:.{n}f}" for x, n in columns.values())] for r in range(last.sizes["run"])]
        rows.append(["mean", *(mean_spread(x, n) for x, n in columns.values())])
        rows[-1][2] = f"{float(last['combined_p_value']):.4f}"
        sizes = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join("  ".join(f"{cell:>{n}}" for cell, n in zip(row, sizes, strict=True)) for row in rows)

    @checked
    def plot(self, name: str = "classes", ax: Axes | None = None) -> Axes:
        """Draw one variable.

        Parameters
        ----------
        name: ``"classes"``: Recall@1 against alignment, a point for each unseen class and run at the last epoch; or
            ``"recall_all"``, ``"alignment_mean"``, ``"correlation"`` or ``"training_error"`` against epochs: mean over
            runs with a band of one standard deviation.
        ax: where to draw.
        """
        from .curves import points, spread

        curves = ("recall_all", "alignment_mean", "correlation", "training_error")
        if name == "classes":
            last = self.data.isel(epoch=-1)
            return points(last, ax)
        if name not in curves:
            raise unknown("variable", name, ("classes", *curves))
        return spread(self.data[name], ax)


def train_metric(
    train: Images,
    unseen: Images,
    network: Recipe | None = None,
    *,
    batch: tuple[int, int] = (3, 25),
    rate: float = 1e-3,
    epochs: int = 30,
    runs: int = 4,
    seed: int = 0,
    progress: bool = True,
) -> MetricTraining:
    """Learn an embedding from seen classes and measure it on unseen ones after every epoch.

    Parameters
    ----------
    train: seen classes.
    unseen: at least three classes that are not in `train`.
    network: from an image to a vector, whose layer norm is the embedding; ``Convolutional()`` by default.
    batch: number of classes in a batch, and of images of each; repeated where a class has fewer. An epoch has as many
        batches as fit into `train`, at least one.
    rate: of SGD.
    epochs: how often to go through the training images.
    runs, seed: independent repetitions, and the seed of all of them.
    progress: show a bar on a terminal.
    """
    recipe = Convolutional() if network is None else network
    check_train(train)
    if not isinstance(batch, tuple) or len(batch) != 2:
        raise InputError(f"batch: expected (classes, images of each), got {shown(batch)}")
    shape = (
        whole("batch[0]", batch[0], least=2, most=len(train.names)),
        whole("batch[1]", batch[1], least=1),
    )
    optimiser = _sgd(number("rate", rate, above=0))
    check_unseen("unseen", unseen, train)
    if len(unseen.names) < 3:
        raise InputError(f"unseen: a correlation over classes needs at least 3 of them, got {len(unseen.names)}")
    if unseen.labels.size <= max(NEIGHBOURS):
        raise InputError(f"unseen: Recall@8 needs at least 9 images, got {unseen.labels.size}")
    pixels, others = standardised(train, train), standardised(unseen, train)
    learners = [
        MetricRun(pixels, train.labels, others, unseen.labels, recipe, shape, optimiser, rng, key)
        for rng, key in streams(seed, runs)
    ]
    dims, curves = ("run", "epoch", "unseen"), ("alignment_mean", "correlation", "p_value", "training_error")

    def finish(found: Mapping[str, NDArray[Any]]) -> MetricTraining:
        data = xr.Dataset(
            {
                **{name: (dims, found[name]) for name in ("recall", "alignment")},
                "recall_all": (("run", "epoch", "neighbours"), found["recall_all"]),
                **{name: (dims[:2], found[name]) for name in curves},
                "combined_p_value": ("epoch", [combined(p) for p in found["p_value"].T]),
            },
            {
                "epoch": np.arange(found["training_error"].shape[1]),
                "unseen": list(unseen.names),
                "neighbours": list(NEIGHBOURS),
            },
            {
                "network": description(recipe),
                "batch": f"{shape[0]} x {shape[1]}",
                "rate": float(rate),
                "seed": int(seed),
                "seen": len(train.names),
            },
        )
        return MetricTraining(data)

    return follow("metric training", learners, whole("epochs", epochs, least=1), finish, progress=progress)


class Embedding(eqx.Module):
    """The network and the weights of the seen classes (classes, d)."""

    network: Callable[[jax.Array], jax.Array]
    weights: jax.Array

    def __call__(self, pixels: jax.Array) -> jax.Array:
        """The embedding (d,) of one image (channels, height, width)."""
        return jax.nn.standardize(self.network(pixels), epsilon=1e-5)


def normalised_softmax(embedded: jax.Array, weights: jax.Array, labels: jax.Array) -> jax.Array:
    """Mean loss of embeddings (n, d) with labels (n,), given the weights of the classes (classes, d)."""
    cosines = _unit(embedded) @ _unit(weights).T
    chosen = jax.nn.log_softmax(cosines / TEMPERATURE)[jnp.arange(labels.size), labels]
    return -jnp.mean(chosen)


def training_loss(model: Embedding, pixels: jax.Array, labels: jax.Array) -> jax.Array:
    """The loss of images (n, channels, height, width), as it is differentiated."""
    return normalised_softmax(jax.vmap(model)(pixels), model.weights, labels)


class MetricRun:
    """One run."""

    def __init__(
        self,
        pixels: NDArray[np.float32],
        labels: NDArray[np.int64],
        others: NDArray[np.float32],
        classes: NDArray[np.int64],
        network: Recipe,
        batch: tuple[int, int],
        optimiser: optax.GradientTransformation,
        rng: np.random.Generator,
        key: jax.Array,
    ) -> None:
        self.pixels, self.labels, self.others, self.classes = pixels, labels, others, classes
        self.batch, self.optimiser, self.rng = batch, optimiser, rng
        self.members = [np.flatnonzero(labels == c) for c in range(labels.max() + 1)]
        first, second = jax.random.split(key)
        made, d = build(network, pixels.shape[1:], first)
        self.model = Embedding(made, jax.random.normal(second, (len(self.members), d)) / jnp.sqrt(d))
        self.state = optimiser.init(eqx.filter(self.model, eqx.is_inexact_array))

    def learn(self) -> None:
        count, each = self.batch
        for _ in range(max(1, self.labels.size // (count * each))):
            chosen = self.rng.permutation(len(self.members))[:count]
            rows = np.concatenate([self._some(self.members[c], each) for c in chosen])
            self.model, self.state = step(
                training_loss, self.optimiser, self.model, self.state, self.pixels[rows], self.labels[rows]
            )

    def _some(self, members: NDArray[np.intp], count: int) -> NDArray[np.intp]:
        return self.rng.choice(members, count, replace=members.size < count)

    def loss(self) -> float:
        embedded = outputs(self.model, self.pixels)
        return float(normalised_softmax(embedded, self.model.weights, jnp.asarray(self.labels)))

    def measure(self) -> Measured:
        x = np.asarray(outputs(self.model, self.others), float)
        found = {k: hits(x, self.classes, k) for k in NEIGHBOURS}
        groups = [self.classes == c for c in range(self.classes.max() + 1)]
        recalls = np.array([found[1][group].mean() for group in groups])
        aligned = np.array([alignment(x[group]) for group in groups])
        goes_with = (
            correlation(aligned, recalls) if min(np.ptp(aligned), np.ptp(recalls)) > 0 else Correlation(0.0, 1.0)
        )
        return {
            "recall": recalls,
            "alignment": aligned,
            "recall_all": [found[k].mean() for k in NEIGHBOURS],
            "alignment_mean": aligned.mean(),
            "correlation": goes_with.r,
            "p_value": goes_with.p_value,
        }


@cache
def _sgd(rate: float) -> optax.GradientTransformation:
    return optax.sgd(rate, momentum=MOMENTUM)  # one object per rate: a compiled step is known by it


def _unit(vectors: jax.Array) -> jax.Array:
    """Each row divided by its length; the small number only matters for zero, whose slope would not be finite."""
    return vectors * jax.lax.rsqrt(jnp.sum(vectors**2, axis=1, keepdims=True) + 1e-12)
