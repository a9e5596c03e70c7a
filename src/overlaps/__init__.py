"""Predict how a network will learn, from a handful of overlaps.

Names are loaded when first used, so that `overlaps --help` does not wait for the numerical libraries.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from . import deep as deep
    from . import dmft as dmft
    from . import laws as laws
    from . import one_step as one_step
    from . import papers as papers
    from . import spectra as spectra
    from .activations import Activation as Activation
    from .algorithms import FullBatch as FullBatch
    from .algorithms import GiantStep as GiantStep
    from .algorithms import GradientFlow as GradientFlow
    from .algorithms import OnlineSGD as OnlineSGD
    from .averages import gaussian_averages as gaussian_averages
    from .comparison import compare as compare
    from .data import GaussianInputs as GaussianInputs
    from .data import GaussianMixture as GaussianMixture
    from .data import HiddenManifold as HiddenManifold
    from .data import Isotropic as Isotropic
    from .data import LatentMixture as LatentMixture
    from .data import PowerLaw as PowerLaw
    from .data import Samples as Samples
    from .data import Spectrum as Spectrum
    from .data.digits import digits as digits
    from .data.nonlinearity import gaussian_equivalent as gaussian_equivalent
    from .discrepancy import tlog_rmse as tlog_rmse
    from .errors import InputError as InputError
    from .errors import NumericalError as NumericalError
    from .losses import Loss as Loss
    from .macro import solve as solve
    from .meso import sample as sample
    from .micro import train as train
    from .network import Committee as Committee
    from .network import Softmax as Softmax
    from .power import fit_power as fit_power
    from .prediction import forecast as forecast
    from .problem import Problem as Problem
    from .scaling import check_scaling as check_scaling
    from .start import Start as Start
    from .start import draw as draw
    from .times import logtimes as logtimes
    from .trajectory import Trajectory as Trajectory
    from .trajectory import load as load

_MODULES = ("deep", "dmft", "laws", "one_step", "papers", "spectra")
_HOME = {
    "Activation": "activations",
    "Committee": "network",
    "FullBatch": "algorithms",
    "GaussianInputs": "data",
    "GaussianMixture": "data",
    "GiantStep": "algorithms",
    "GradientFlow": "algorithms",
    "HiddenManifold": "data",
    "InputError": "errors",
    "Isotropic": "data",
    "LatentMixture": "data",
    "Loss": "losses",
    "NumericalError": "errors",
    "OnlineSGD": "algorithms",
    "PowerLaw": "data",
    "Problem": "problem",
    "Samples": "data",
    "Softmax": "network",
    "Spectrum": "data",
    "Start": "start",
    "Trajectory": "trajectory",
    "check_scaling": "scaling",
    "compare": "comparison",
    "digits": "data.digits",
    "draw": "start",
    "fit_power": "power",
    "forecast": "prediction",
    "gaussian_averages": "averages",
    "gaussian_equivalent": "data.nonlinearity",
    "load": "trajectory",
    "logtimes": "times",
    "sample": "meso",
    "solve": "macro",
    "tlog_rmse": "discrepancy",
    "train": "micro",
}

__all__ = [
    "Activation",
    "Committee",
    "FullBatch",
    "GaussianInputs",
    "GaussianMixture",
    "GiantStep",
    "GradientFlow",
    "HiddenManifold",
    "InputError",
    "Isotropic",
    "LatentMixture",
    "Loss",
    "NumericalError",
    "OnlineSGD",
    "PowerLaw",
    "Problem",
    "Samples",
    "Softmax",
    "Spectrum",
    "Start",
    "Trajectory",
    "__version__",
    "check_scaling",
    "compare",
    "deep",
    "digits",
    "dmft",
    "draw",
    "fit_power",
    "forecast",
    "gaussian_averages",
    "gaussian_equivalent",
    "laws",
    "load",
    "logtimes",
    "one_step",
    "papers",
    "sample",
    "solve",
    "spectra",
    "tlog_rmse",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _HOME:
        return getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    from .errors import unknown

    raise AttributeError(str(unknown("name in overlaps:", name, [*_HOME, *_MODULES])))


def __dir__() -> list[str]:
    return __all__
