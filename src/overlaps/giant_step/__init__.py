"""One giant step: alignment and local elasticity of features on unseen classes.

A wide two-layer network takes one full-batch gradient step whose size grows with the number of samples. What does it do
to the features of classes that it has not been trained on? `train` measures it on real networks, `solve` predicts it;
both return `Scores` under the same names.

- `GiantStepSetting`: data (`TwoClasses`, `TrainingSet` of arrays, or a sampler), sizes, activation and
  `overlaps.GiantStep`.
- `scaled`, `rotated`, `UnseenClass`: unseen classes.
- `alignment`, `elasticity`, `hits`, `recall`, `kendall_w`, `correlation`, `combined`: scores of features of any model;
  `alignment_error`, `elasticity_error`, `recall_error`: their standard errors.
- `gradient`, `rank_one`, `expanded_features`, `gradient_error`, `operator_norm`: the step and its approximations.
- `hermite_coefficients`, `hermite_mean`, `hermite_product`, `gaussian_moment`, `sphere_moment`, `initial_series`,
  `centred`: expansions and exact averages.
- `deep`: the same scores along the training of deep networks (an extra).
"""

from ..data.two_classes import TwoClasses
from . import deep
from .giant import expanded_features, gradient, gradient_error, operator_norm, rank_one
from .hermite import Hermite, centred, gaussian_moment, hermite_coefficients, hermite_mean, hermite_product
from .prediction import solve
from .result import Scores
from .scores import (
    alignment,
    alignment_error,
    combined,
    correlation,
    elasticity,
    elasticity_error,
    hits,
    kendall_w,
    recall,
    recall_error,
)
from .setting import GiantStepSetting, TrainingSet
from .simulation import train
from .sphere import initial_series, sphere_moment
from .unseen import UnseenClass, rotated, scaled

__all__ = [
    "GiantStepSetting",
    "Hermite",
    "Scores",
    "TrainingSet",
    "TwoClasses",
    "UnseenClass",
    "alignment",
    "alignment_error",
    "centred",
    "combined",
    "correlation",
    "deep",
    "elasticity",
    "elasticity_error",
    "expanded_features",
    "gaussian_moment",
    "gradient",
    "gradient_error",
    "hermite_coefficients",
    "hermite_mean",
    "hermite_product",
    "hits",
    "initial_series",
    "kendall_w",
    "operator_norm",
    "rank_one",
    "recall",
    "recall_error",
    "rotated",
    "scaled",
    "solve",
    "sphere_moment",
    "train",
]
