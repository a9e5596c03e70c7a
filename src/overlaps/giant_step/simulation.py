"""Micro: real networks, trained by giant steps and measured on unseen classes.

Every run draws weights, heads, points of the unseen classes and, unless it was given as arrays, a training set. All
classes of a run are made of the same standard normal points, so that the fields of each are a rank-one change of one
matrix product (`UnseenClass.fields`): a grid of classes costs little more than one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..data.nonlinearity import nonlinearity
from ..interface.checks import checked, whole
from ..interface.errors import InputError, NumericalError
from ..interface.progress import along
from .giant import gradient_error, rank_one, raw_gradient
from .result import Scores, saturation
from .scores import raw_alignment, raw_elasticity, recalls
from .setting import GiantStepSetting
from .unseen import UnseenClass, check_classes, marks

Array = NDArray[np.float64]


def draw_network(setting: GiantStepSetting, rng: np.random.Generator) -> tuple[Array, Array]:
    """W_0 (d, N), columns uniform on the sphere, and heads (heads, N)."""
    _, d, N = setting.count
    W = rng.standard_normal((d, N))
    W /= np.sqrt(np.einsum("ij,ij->j", W, W))
    return W, rng.standard_normal((setting.algorithm.heads, N)) / np.sqrt(N)


@checked
def train(
    setting: GiantStepSetting,
    unseen: Sequence[UnseenClass],
    runs: int = 4,
    points: int = 512,
    seed: int = 0,
    *,
    with_recall: bool = True,
    progress: bool = True,
) -> Scores:
    """Train networks by giant steps and score their features on unseen classes.

    Parameters
    ----------
    unseen: classes, such as ``scaled(setting.direction, [0.1, 0.5])``.
    runs, seed: number of independent runs; the same seed gives the same bits.
    points: samples of each unseen class, an even number; for Recall@1 one half of them changes sign and is the other
        class.
    with_recall: whether to measure Recall@1, which costs a product of features with features.
    """
    check_classes(unseen, setting.count[1])
    runs, points = whole("runs", runs, least=1), whole("points", points, least=4)
    seed = whole("seed", seed, least=0)
    few = [i for i, one in enumerate(unseen) if one.points is not None and len(one.points) < 4]
    if few and with_recall:
        raise InputError(f"unseen[{few[0]}]: Recall@1 needs at least 4 samples of a class; use with_recall=False")
    if points % 2:
        raise InputError(f"points: expected an even number, got {points}; one half is mirrored for Recall@1")
    names = ["alignment", "elasticity", "alignment_before", "similarity", "similarity_variance"]
    if with_recall:
        names += ["recall", "recall_inner", "recall_before", "recall_inner_before"]
    out = {name: np.empty((runs, len(unseen))) for name in names}
    error = np.empty(runs)
    streams = np.random.default_rng(seed).spawn(runs)
    for run in along(range(runs), "giant steps", "run", shown=progress):
        into = {name: values[run] for name, values in out.items()}
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows is found and named
                error[run] = _run(setting, unseen, points, streams[run], into)
        except (NumericalError, InputError) as trouble:
            if not run:
                raise
            done = {name: values[:run] for name, values in out.items()}
            raise NumericalError(
                f"run {run}: {trouble}; the runs before are in .partial",
                quantity=getattr(trouble, "quantity", "training set"),
                time=getattr(trouble, "time", 0.0),
                partial=_collected(setting, unseen, done, error[:run], points, seed),
            ) from trouble
    return _collected(setting, unseen, out, error, points, seed)


def _collected(
    setting: GiantStepSetting,
    unseen: Sequence[UnseenClass],
    out: dict[str, Array],
    error: Array,
    points: int,
    seed: int,
) -> Scores:
    import xarray as xr

    out["saturation"] = saturation(setting, out["similarity"], out["similarity_variance"])
    variables = {name: (("run", "unseen"), values) for name, values in out.items()}
    data = xr.Dataset(
        {**variables, "gradient_error": ("run", error)},
        {"value": ("unseen", marks(unseen))},
        {"points": points, "seed": seed, "eta": setting.eta, "window": str(setting.algorithm.window)},
    )
    return Scores(data, "micro", setting)


def _run(
    setting: GiantStepSetting,
    unseen: Sequence[UnseenClass],
    points: int,
    rng: np.random.Generator,
    out: dict[str, Array],
) -> float:
    """One run: fills the scores (unseen,) of each name, returns the error of the rank-one gradient."""
    g, f = setting.g, nonlinearity(setting.g).function
    n, d, N = setting.count
    X, y = setting.draw(rng)
    W0, a = draw_network(setting, rng)
    G = raw_gradient(X, y, W0, a, g)
    if not np.isfinite(G).all():
        raise NumericalError("gradient: not finite at the first step", quantity="gradient", time=0.0)
    error = gradient_error(G, *rank_one(X, y, a, g))
    b = y @ X / n
    step = setting.eta * np.sqrt(N)
    W = W0 + step * G
    for k in range(1, setting.algorithm.steps + 1):
        if not np.isfinite(W).all():
            raise NumericalError(f"weights: not finite after step {k}", quantity="weights", time=float(k))
        if k < setting.algorithm.steps:
            W += step * raw_gradient(X, y, W, a, g)
    Z = rng.standard_normal((points, d))
    ZW0, ZW = Z @ W0, Z @ W
    sides = np.repeat([0, 1], points // 2)
    for i, one in enumerate(unseen):
        h0, h = one.fields(Z, ZW0, W0), one.fields(Z, ZW, W)
        F0, F = f(h0), f(h)
        out["alignment"][i], out["alignment_before"][i] = raw_alignment(F), raw_alignment(F0)
        out["elasticity"][i] = raw_elasticity(F, F0)
        out["similarity"][i], out["similarity_variance"][i] = b @ one.mean, b @ one.apply(b[:, None])[:, 0]
        if "recall" not in out:
            continue
        half = len(F) // 2
        two = sides if len(F) == points else np.repeat([0, 1], [half, len(F) - half])
        for fields, features, suffix in ((h, F, ""), (h0, F0, "_before")):
            features[half:] = f(-fields[half:])
            out[f"recall{suffix}"][i], out[f"recall_inner{suffix}"][i] = recalls(features, two)
    for name, values in out.items():
        if not np.isfinite(values).all():
            raise NumericalError(f"{name}: larger than any floating-point number", quantity=name, time=1.0)
    return error
