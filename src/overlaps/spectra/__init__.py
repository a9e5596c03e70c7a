"""Spectra of Hessian and gradient matrices: empirical, of the population, and along training.

With δ = ∂loss/∂λ the gradient of one sample with respect to a row w_i (length O(1)) is δ_i x, so that every block of
the Hessian or of the matrix of gradients G = E[∇loss ∇lossᵀ] is a weighted second moment of the inputs, E[a_ij x xᵀ]:
the means of the inputs make its outliers, their noise its bulk.

- `hessian`, `gradient_matrix`: from samples (a `Batch`), at any weights; `population`: their limit, exactly.
- `eigenpairs`: the largest, with residuals; `subspace_alignment`, `lives_in`: of weights with eigenspaces.
- `predicted_outliers`, `bulk_edge`, `visibility`, `count_outliers`: what a finite sample shows.
- `Observer`: all this along `train`; `stop_time`: when training has discerned as many classes as there are.
- `Model`: the same for any network given as functions of its parameters.
"""

from .alignment import distance_from, lives_in, subspace_alignment
from .batch import Batch
from .eigenpairs import Eigenpairs, eigenpairs, gram_eigenpairs
from .empirical import NetworkMatrix, gradient_matrix, hessian
from .models import Model
from .observer import Observer
from .operators import OperatorFamily, SymmetricOperator
from .outliers import PredictedSpectrum, bbp, bulk_edge, count_outliers, mp_edge, predicted_outliers, visibility
from .population import PopulationMatrix, population, readout_block
from .population_block import PopulationBlock
from .stopping import StoppingRule, outlier_rank, stop_time

__all__ = [
    "Batch",
    "Eigenpairs",
    "Model",
    "NetworkMatrix",
    "Observer",
    "OperatorFamily",
    "PopulationBlock",
    "PopulationMatrix",
    "PredictedSpectrum",
    "StoppingRule",
    "SymmetricOperator",
    "bbp",
    "bulk_edge",
    "count_outliers",
    "distance_from",
    "eigenpairs",
    "gradient_matrix",
    "gram_eigenpairs",
    "hessian",
    "lives_in",
    "mp_edge",
    "outlier_rank",
    "population",
    "predicted_outliers",
    "readout_block",
    "stop_time",
    "subspace_alignment",
    "visibility",
]
