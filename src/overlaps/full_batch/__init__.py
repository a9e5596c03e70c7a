"""Full-batch training: mean-field kernels, the comparison theorem, and what finite size adds.

`solve`, `sample` and `train` of a problem with `FullBatch` are the three scales; macro is dynamical mean-field theory.
Besides the variables of every `Trajectory` its data have kernels of two steps each, with dimensions (run, component,
step, step_, student, student_); δ = ∂loss/∂λ, times the multiplier of the sample where steps use a part of them
(`overlaps.full_batch.batches`).

| variable | meaning |
|---|---|
| V_theta | covariance of the fields at two steps |
| V_omega | share of the component times E[δ δᵀ] at two steps |
| B_theta | share of the component times the mean response of δ at step_ to the fields at step |
| B_omega | memory: how δ at step comes back in the fields at step_ |

of which `train` and `sample` measure V_theta and V_omega in every run, with ``kernels=True``.

- `alternative`, `perturbed`: the two processes that the comparison theorem says are equal in law; `check_theorem`: the
  test of it.
- `continued`: variances of the original process by continuation in z.
- `fluctuations`: variance and bias of a run around mean-field theory, to order 1/m, without sampling.
"""

from .comparison_processes import alternative, perturbed
from .comparison_theorem import Theorem, check_theorem
from .continuation import continued
from .finite_size_fluctuations import fluctuations

__all__ = ["Theorem", "alternative", "check_theorem", "continued", "fluctuations", "perturbed"]
