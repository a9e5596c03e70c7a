"""The rate of a problem for the laws that read one, which are written for one constant rate.

They know plain SGD, w ← w − η δx, and its limit of small rates, gradient flow. A schedule, a batch, momentum or memory
is refused by name rather than ignored:

>>> import overlaps as ov
>>> net = ov.Committee(2)
>>> problem = ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.OnlineSGD(0.1, batch=4))
>>> ov.laws.plateau(problem)  # doctest: +ELLIPSIS
Traceback (most recent call last):
...
overlaps.InputError: algorithm: this law is for one sample a step, at a constant rate and without momentum, got ...
"""

from __future__ import annotations

from ..interface.errors import InputError
from ..problem.statement import Problem


def constant_rate(problem: Problem) -> float:
    """η of one-pass training with one sample a step, a constant rate and no momentum; other updates are refused."""
    algorithm = problem.algorithm
    rate = algorithm.rate
    if not getattr(algorithm, "plain", False) or not isinstance(rate, float):
        raise InputError(
            "algorithm: this law is for one sample a step, at a constant rate and without momentum, got "
            f"{algorithm!r}; use solve"
        )
    return rate
