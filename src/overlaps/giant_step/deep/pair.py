"""Two classes, two heads: do |b·μ|, alignment and elasticity of unseen classes rank alike while a deep network learns?

A network makes vectors x (d,) of images; F(x) = tanh(Wᵀx) are N features, and two heads answer F(x)·a_c/√N. The labels
of the heads are y_1 = ±1 and y_2 = −y_1, and the loss over n images is

    (1/2n) Σ_c |y_c − F a_c/√N|²

At the start columns of W are uniform on the unit sphere and a_c ~ N(0, 1/N); the network and W learn, by Adam on all
images at once, and the heads stay as they are. After every epoch, which is one step, for each unseen class

    similarity   b·μ,  b = Xᵀ y_1/n of the training images, μ the mean x of the class
    alignment, elasticity   of F, the latter against F at the start (`overlaps.giant_step.scores`)

and over the classes of a set Kendall's W of |b·μ| and the other two. Both b and μ are those of the network at that
epoch.
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
from ..scores import alignment, elasticity, kendall_w
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

SCORES = ("similarity", "alignment", "elasticity")


@dataclass(frozen=True, eq=False)
class PairTraining:
    """What was measured while networks learned to distinguish two classes.

    Attributes
    ----------
    data: dataset with the variables

        | variable | dims | meaning |
        |---|---|---|
        | similarity, alignment, elasticity | run, epoch, set, unseen | of each unseen class |
        | similarity_all, alignment_all, elasticity_all | run, epoch, set | of all images of its classes together |
        | concordance | run, epoch, set | Kendall's W of the size of the similarity and the other two over classes |
        | training_error | run, epoch | mean loss of the training images |
        | correct | run, epoch, head | share of training images whose answer has the right sign |
        | class_name | run, set, unseen | which classes they are |
        | train_name | run, label | which classes were trained on |

        At epoch 0 nothing has moved, so elasticity is zero for all classes and ranks none before another.
    """

    data: xr.Dataset

    def __repr__(self) -> str:
        d, a = self.data, self.data.attrs
        runs, epochs = d.sizes["run"], int(d["epoch"][-1])
        last = d.isel(epoch=-1)
        right = ", ".join(f"{100 * float(x):.0f} %" for x in last["correct"].mean("run"))
        lines = [
            f"pair training: {runs} run{'s' * (runs > 1)} of {epochs} epochs, seed {a['seed']}",
            f"  network: {a['network']}, {a['units']} features; Adam at rate {a['rate']:g}",
            f"  training error {float(d['training_error'][:, 0].mean()):.4g} -> "
            f"{float(last['training_error'].mean()):.4g}, heads right on {right}",
        ]
        for name in d["set"].values:
            found = mean_spread(last["concordance"].sel(set=name).values)
            lines.append(f"  Kendall's W over {d.sizes['unseen']} classes of {name}: {found} at the end")
        return "\n".join(lines)

    @checked
    def plot(self, name: str = "concordance", ax: Axes | None = None, *, run: int = 0, set: str | None = None) -> Axes:
        """Draw a variable against epochs.

        Parameters
        ----------
        name: ``"concordance"``, ``"training_error"`` or ``"correct"``: mean over runs with a band of one standard
            deviation; or ``"similarity"``, ``"alignment"`` or ``"elasticity"``: a line for each class of one run and
            set, and a grey one for all images of these classes together.
        ax: where to draw.
        run, set: which run and set of classes, for the last three; the first by default.
        """
        from .curves import lines, spread

        curves = ("concordance", "training_error", "correct")
        if name in curves:
            # W before training is that of two rankings and a tie of all
            return spread(self.data[name].isel(epoch=slice(1 if name == "concordance" else 0, None)), ax)
        if name not in SCORES:
            raise unknown("variable", name, (*curves, *SCORES))
        sets = [str(s) for s in self.data["set"].values]
        chosen = sets[0] if set is None else set
        if chosen not in sets:
            raise unknown("set", chosen, sets)
        one = self.data.isel(run=whole("run", run, least=0, most=self.data.sizes["run"] - 1)).sel(set=chosen)
        ax = lines(one[name], [str(n) for n in one["class_name"].values], ax)
        ax.plot(one["epoch"], one[f"{name}_all"], color="0.6", label="together")
        ax.legend()
        return ax


def train_pair(
    train: Images,
    unseen: Mapping[str, Images],
    network: Recipe | None = None,
    *,
    units: int = 256,
    classes: int = 5,
    images: int = 48,
    rate: float = 1e-3,
    epochs: int = 20,
    runs: int = 4,
    seed: int = 0,
    progress: bool = True,
) -> PairTraining:
    """Train on two classes and measure unseen ones after every epoch, which is one step on all training images.

    Every run draws two classes of `train`, `classes` classes of each set in `unseen`, and a network.

    Parameters
    ----------
    train: at least two classes.
    unseen: sets of classes that are not in `train`, by name.
    network: from an image to the vector x; ``Convolutional(outputs=256)`` by default.
    units: N, number of features.
    classes: how many classes of each set are measured.
    images: how many of a class are used at most, the first ones.
    rate: of Adam.
    epochs: number of steps.
    runs, seed: independent repetitions, and the seed of all of them.
    progress: show a bar on a terminal.
    """
    recipe = Convolutional(outputs=256) if network is None else network
    N = whole("units", units, least=1)
    count = whole("classes", classes, least=2)
    most = whole("images", images, least=2)
    optimiser = _adam(number("rate", rate, above=0))
    check_train(train)
    if not isinstance(unseen, Mapping) or not unseen:
        raise InputError(
            f"unseen: expected sets of classes by name, for instance {{'birds': Images}}, got {shown(unseen)}"
        )
    for name, held in unseen.items():
        check_unseen(f"unseen[{name!r}]", held, train)
        if len(held.names) < count:
            raise InputError(
                f"unseen[{name!r}]: expected at least {count} classes, got {len(held.names)}; lower classes"
            )

    def learner(rng: np.random.Generator, key: jax.Array) -> PairRun:
        two = _drawn(train, 2, rng).truncated(most)
        others = {name: _drawn(held, count, rng).truncated(most) for name, held in unseen.items()}
        return PairRun(two, others, recipe, N, optimiser, key)

    learners = [learner(rng, key) for rng, key in streams(seed, runs)]
    dims = ("run", "epoch", "set", "unseen")

    def finish(found: Mapping[str, NDArray[Any]]) -> PairTraining:
        data = xr.Dataset(
            {
                **{name: (dims, found[name]) for name in SCORES},
                **{f"{name}_all": (dims[:3], found[f"{name}_all"]) for name in SCORES},
                "concordance": (dims[:3], found["concordance"]),
                "training_error": (dims[:2], found["training_error"]),
                "correct": (("run", "epoch", "head"), found["correct"]),
                "class_name": (
                    ("run", "set", "unseen"),
                    [[u.names for u in run.unseen.values()] for run in learners],
                ),
                "train_name": (("run", "label"), [run.train.names for run in learners]),
            },
            {"epoch": np.arange(found["training_error"].shape[1]), "set": list(unseen), "label": [1, -1]},
            {"network": description(recipe), "units": N, "rate": float(rate), "seed": int(seed)},
        )
        return PairTraining(data)

    return follow("pair training", learners, whole("epochs", epochs, least=1), finish, progress=progress)


class Pair(eqx.Module):
    """The network, W (d, N) and the heads (2, N)."""

    network: Callable[[jax.Array], jax.Array]
    W: jax.Array
    heads: jax.Array

    def features(self, x: jax.Array) -> jax.Array:
        """F (n, N) of x (n, d)."""
        return jnp.tanh(x @ self.W)

    def answers(self, features: jax.Array) -> jax.Array:
        """Of both heads, which do not learn: (n, 2)."""
        return features @ jax.lax.stop_gradient(self.heads).T / jnp.sqrt(self.heads.shape[1])


def square_loss(answers: jax.Array, y: jax.Array) -> jax.Array:
    """(1/2n) Σ_c |y_c − answers_c|², for y = y_1 (n,)."""
    return jnp.sum((jnp.stack([y, -y], axis=1) - answers) ** 2) / (2 * y.size)


def training_loss(model: Pair, pixels: jax.Array, y: jax.Array) -> jax.Array:
    """The loss of images (n, channels, height, width), as it is differentiated."""
    return square_loss(model.answers(model.features(jax.vmap(model.network)(pixels))), y)


class PairRun:
    """One run."""

    def __init__(
        self,
        train: Images,
        unseen: Mapping[str, Images],
        network: Recipe,
        width: int,
        optimiser: optax.GradientTransformation,
        key: jax.Array,
    ) -> None:
        self.train, self.unseen = train, unseen
        self.pixels = np.concatenate([standardised(i, train) for i in (train, *unseen.values())])
        self.y = np.where(train.labels == 0, 1.0, -1.0).astype(np.float32)
        first, second, third = jax.random.split(key, 3)
        made, d = build(network, self.pixels.shape[1:], first)
        W = jax.random.normal(second, (d, width))
        heads = jax.random.normal(third, (2, width)) / jnp.sqrt(width)
        self.model = Pair(made, W / jnp.linalg.norm(W, axis=0), heads)
        self.optimiser = optimiser
        self.state = optimiser.init(eqx.filter(self.model, eqx.is_inexact_array))
        self._evaluate()
        self.before = self.F

    def learn(self) -> None:
        pixels = self.pixels[: self.y.size]
        self.model, self.state = step(training_loss, self.optimiser, self.model, self.state, pixels, self.y)
        self._evaluate()

    def _evaluate(self) -> None:
        """Outputs, features and answers of the network as it is now."""
        x = outputs(self.model.network, self.pixels)
        F = self.model.features(x)
        self.x, self.F = np.asarray(x, float), np.asarray(F, float)
        self.answers = self.model.answers(F[: self.y.size])

    def loss(self) -> float:
        return float(square_loss(self.answers, jnp.asarray(self.y)))

    def measure(self) -> Measured:
        n = self.y.size
        b = self.x[:n].T @ self.y / n
        found: dict[str, list[Any]] = {name: [] for name in (*SCORES, *(f"{s}_all" for s in SCORES), "concordance")}
        for images in self.unseen.values():
            mine = np.arange(n, n + images.labels.size)
            n += images.labels.size
            groups = [mine[images.labels == c] for c in range(len(images.names))]
            table = np.array([self._scores(b, group) for group in groups]).T
            for name, row, together in zip(SCORES, table, self._scores(b, mine), strict=True):
                found[name].append(row)
                found[f"{name}_all"].append(together)
            found["concordance"].append(kendall_w([np.abs(table[0]), *table[1:]]).W)
        right = np.sign(np.asarray(self.answers)) == np.stack([self.y, -self.y], axis=1)
        return {**found, "correct": right.mean(0)}

    def _scores(self, b: NDArray[np.float64], rows: NDArray[np.intp]) -> tuple[float, float, float]:
        similarity = float(b @ self.x[rows].mean(0))
        return similarity, alignment(self.F[rows]), elasticity(self.F[rows], self.before[rows])


@cache
def _adam(rate: float) -> optax.GradientTransformation:
    return optax.adam(rate)  # one object per rate: a compiled step is known by it


def _drawn(images: Images, count: int, rng: np.random.Generator) -> Images:
    """Some of the classes, at random."""
    return images.select([images.names[c] for c in rng.permutation(len(images.names))[:count]])
