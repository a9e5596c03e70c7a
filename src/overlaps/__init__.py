"""Predict how a network will learn, from a handful of overlaps.

Names are loaded when first used, so that `overlaps --help` does not wait for the numerical libraries; which name is
where stands in ``__init__.pyi`` alone.
"""

import lazy_loader

__version__ = "0.2.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
