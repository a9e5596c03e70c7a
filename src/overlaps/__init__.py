"""Predict how a network will learn, from a handful of overlaps.

Names are loaded when first used, so that `overlaps --help` does not wait for the numerical libraries. Which name is
defined in which module is stated in ``__init__.pyi`` alone.
"""

from typing import Any

import lazy_loader

__version__ = "0.2.0"
_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return _load(name)
    from .interface.errors import unknown

    raise AttributeError(str(unknown("name in overlaps:", name, __all__)))
