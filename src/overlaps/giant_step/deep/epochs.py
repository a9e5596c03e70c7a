"""Epochs of independent runs in turn, so that what came before a divergence is there for all runs.

What `train_pair` and `train_metric` share: runs with random numbers of their own, images as networks take them, outputs
in chunks, and the loop over epochs. A state is measured before training, at epoch 0, and after every epoch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from ...interface.checks import whole
from ...interface.errors import InputError, NumericalError, shown
from ...interface.progress import bar
from .images import Images
from .networks import Recipe

CHUNK = 256  # images whose activations are in memory at the same time, outside training
Result = TypeVar("Result")
Model = TypeVar("Model")
Measured = Mapping[str, Any]


class Learner(Protocol):
    """One run."""

    def learn(self) -> None:
        """Train for one epoch."""
        ...

    def loss(self) -> float:
        """Mean loss of the training images."""
        ...

    def measure(self) -> Measured:
        """Everything else, as arrays of the same shape at all epochs."""
        ...


def follow(
    what: str,
    learners: Sequence[Learner],
    epochs: int,
    finish: Callable[[Mapping[str, NDArray[Any]]], Result],
    *,
    progress: bool,
) -> Result:
    """Measure at epochs 0 to `epochs`, and finish with what was measured, arrays of shape (run, epoch, ...).

    A loss that is not finite, or features that cannot be scored, end it with the epochs before in the error.
    """
    tape: list[list[Measured]] = []

    def finished() -> Result:
        columns = [list(column) for column in zip(*tape, strict=True)]  # from (epoch, run) to (run, epoch)
        return finish({name: np.array([[row[name] for row in rows] for rows in columns]) for name in tape[0][0]})

    def stop(run: int, epoch: int, why: str, quantity: str) -> NumericalError:
        message = f"{what}: {why} in run {run} at epoch {epoch}"
        message += f"; the result up to epoch {epoch - 1} is in .partial" if tape else ""
        return NumericalError(message, quantity=quantity, time=epoch, partial=finished() if tape else None)

    total = len(learners) * (epochs + 1)
    with bar(total, what, "epoch", shown=progress) as shown:
        for epoch in range(epochs + 1):
            row: list[Measured] = []
            for run, learner in enumerate(learners):
                if epoch > 0:
                    learner.learn()
                loss = learner.loss()
                if not math.isfinite(loss):
                    raise stop(run, epoch, f"the loss is {loss}; lower the rate", "training_error")
                try:
                    row.append({"training_error": loss, **learner.measure()})
                except InputError as error:
                    raise stop(run, epoch, f"the features cannot be scored ({error})", "features") from None
                shown.update()
            tape.append(row)
    return finished()


def streams(seed: int, runs: int) -> list[tuple[np.random.Generator, jax.Array]]:
    """Random numbers of each run, for NumPy and for JAX; those of a run do not depend on the number of runs."""
    children = np.random.SeedSequence(whole("seed", seed, least=0)).spawn(whole("runs", runs, least=1))
    return [(np.random.default_rng(child), jax.random.key(int(child.generate_state(1)[0]))) for child in children]


def build(network: Recipe, shape: tuple[int, ...], key: jax.Array) -> tuple[Any, int]:
    """The network for images (channels, height, width), and the length of its output."""
    if not callable(network):
        raise InputError(f"network: expected a recipe, for instance Convolutional(), got {shown(network)}")
    made = network(shape[0], key=key)
    out = eqx.filter_eval_shape(made, jax.ShapeDtypeStruct(shape, np.float32))
    if not isinstance(out, jax.ShapeDtypeStruct) or len(out.shape) != 1:
        raise InputError(f"network: expected one that maps an image {shape} to a vector, got {out}")
    return made, out.shape[0]


def outputs(network: Callable[[jax.Array], jax.Array], pixels: NDArray[np.float32]) -> jax.Array:
    """What a network makes of images (n, channels, height, width): (n, outputs)."""
    if len(pixels) <= CHUNK:
        return _mapped(network, jnp.asarray(pixels))
    # the last chunk is filled up: all have one shape, and are compiled once
    padded = np.concatenate([pixels, np.zeros((-len(pixels) % CHUNK, *pixels.shape[1:]), np.float32)])
    chunks = [_mapped(network, jnp.asarray(padded[i : i + CHUNK])) for i in range(0, len(padded), CHUNK)]
    return jnp.concatenate(chunks)[: len(pixels)]


@eqx.filter_jit
def _mapped(network: Callable[[jax.Array], jax.Array], pixels: jax.Array) -> jax.Array:
    return jax.vmap(network)(pixels)


@eqx.filter_jit
def step(
    loss: Callable[..., jax.Array],
    optimiser: optax.GradientTransformation,
    model: Model,
    state: Any,
    *batch: jax.Array | NDArray[Any],
) -> tuple[Model, Any]:
    """The model and the state of the optimiser after one step on ``loss(model, *batch)``."""
    gradient = eqx.filter_grad(loss)(model, *batch)
    updates, state = optimiser.update(gradient, state)
    return eqx.apply_updates(model, updates), state


def standardised(images: Images, like: Images) -> NDArray[np.float32]:
    """Images (n, channels, height, width), less the mean of each channel of `like` and in units of its deviation."""
    mean, deviation = like.images.mean((0, 1, 2)), like.images.std((0, 1, 2))
    scaled = (images.images - mean) / np.where(deviation > 0, deviation, 1)
    return np.moveaxis(scaled, -1, 1).astype(np.float32)


def check_train(images: Images) -> None:
    """What is trained on has two classes or more."""
    _check_type("train", images)
    if len(images.names) < 2:
        raise InputError(f"train: expected at least two classes, got {len(images.names)}")


def check_unseen(name: str, images: Images, train: Images) -> None:
    """Unseen classes are not those trained on, have two images each, and images of the same shape."""
    _check_type(name, images)
    if images.images.shape[1:] != train.images.shape[1:]:
        raise InputError(
            f"{name}: expected images of {train.images.shape[1:]} (height, width, channels) as in train, got "
            f"{images.images.shape[1:]}; read both with the same size"
        )
    shared = set(images.names) & set(train.names)
    if shared:
        raise InputError(
            f"{name}: class {min(shared)!r} is in train too, so it is not unseen; use Images.split, or another name"
        )
    if images.counts.min() < 2:
        alone = images.names[int(np.argmin(images.counts))]
        raise InputError(
            f"{name}: class {alone!r} has one image, and alignment is a mean over pairs; leave it out by Images.select"
        )


def _check_type(name: str, images: Images) -> None:
    if not isinstance(images, Images):
        raise InputError(f"{name}: expected Images, got {type(images).__name__}; use read_folder or Images.from_arrays")


def description(network: Recipe) -> str:
    """A recipe in a few words: its repr, or the name of a function."""
    return str(getattr(network, "__name__", repr(network)))


def mean_spread(values: NDArray[Any], digits: int = 2) -> str:
    """Mean over runs, and their standard deviation where there are several."""
    mean = f"{values.mean():.{digits}f}"
    return f"{mean} ± {values.std(ddof=1):.{digits}f}" if values.size > 1 else mean
