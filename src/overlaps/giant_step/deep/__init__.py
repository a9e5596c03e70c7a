"""Deep networks: alignment and elasticity of unseen classes while a network learns from images.

- `Images`, `read_folder`, `read_cars196`, `read_cub200`, `digits`: images with classes.
- `Convolutional`, `Residual`: small networks for images of any size.
- `train_pair`: two classes, two fixed heads, square loss; do |b·μ|, alignment and elasticity of unseen classes
  rank alike?
- `train_metric`: many classes, normalised softmax; does Recall@1 of an unseen class go with its alignment?

Images need nothing more than the library does; networks need JAX, the extra ``overlaps[deep]``. Names are loaded when
first used; which name is defined in which module is stated in ``__init__.pyi`` alone.

>>> from overlaps import deep
>>> images = deep.Images.from_arrays([[[0.0, 1.0]], [[0.5, 0.5]], [[1.0, 0.0]]], ["left", "right", "left"])
>>> images
Images(3 images of 1 x 2 x 1, 2 classes with 1 to 2 images)
"""

from __future__ import annotations

from typing import Any

import lazy_loader

from ...interface.errors import MissingExtraError, unknown

_EXTRA = {"jax", "jaxlib", "equinox", "optax"}
_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(str(unknown("name in overlaps.deep:", name, __all__)))
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in _EXTRA:
            raise
        raise MissingExtraError(
            f"{name}: deep networks need jax, equinox and optax, and there is no {error.name}",
            "make setup-deep in a checkout, or pip install 'overlaps[deep]' from where you got overlaps",
        ) from None
