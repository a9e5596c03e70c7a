"""Deep networks: alignment and elasticity of unseen classes while a network learns from images.

- `Images`, `read_folder`, `read_cars196`, `read_cub200`, `digits`: images with classes.
- `Convolutional`, `Residual`: small networks for images of any size.
- `train_pair`: two classes, two fixed heads, square loss; do |b·μ|, alignment and elasticity of unseen classes
  rank alike?
- `train_metric`: many classes, normalised softmax; does Recall@1 of an unseen class go with its alignment?

Images need nothing more than the library does; networks need JAX, the extra ``overlaps[deep]``. Names
are loaded when first used.

>>> import overlaps.deep as deep
>>> images = deep.Images.from_arrays([[[0.0, 1.0]], [[0.5, 0.5]], [[1.0, 0.0]]], ["left", "right", "left"])
>>> images
Images(3 images of 1 x 2 x 1, 2 classes with 1 to 2 images)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..interface.errors import MissingExtraError, unknown
from .archives import read_cars196, read_cub200
from .images import Images, digits, read_folder

if TYPE_CHECKING:
    from .metric import MetricTraining as MetricTraining
    from .metric import train_metric as train_metric
    from .networks import Convolutional as Convolutional
    from .networks import Residual as Residual
    from .pair import PairTraining as PairTraining
    from .pair import train_pair as train_pair

_HOME = {
    "Convolutional": "networks",
    "MetricTraining": "metric",
    "PairTraining": "pair",
    "Residual": "networks",
    "train_metric": "metric",
    "train_pair": "pair",
}
_EXTRA = {"jax", "jaxlib", "equinox", "optax"}

__all__ = [
    "Convolutional",
    "Images",
    "MetricTraining",
    "PairTraining",
    "Residual",
    "digits",
    "read_cars196",
    "read_cub200",
    "read_folder",
    "train_metric",
    "train_pair",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(str(unknown("name in overlaps.deep:", name, __all__)))
    try:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in _EXTRA:
            raise
        raise MissingExtraError(
            f"{name}: deep networks need jax, equinox and optax, and there is no {error.name}",
            "make setup-deep in a checkout, or pip install 'overlaps[deep]' from where you got overlaps",
        ) from None


def __dir__() -> list[str]:
    return __all__
