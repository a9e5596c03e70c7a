"""Inputs that are features of a latent."""

from __future__ import annotations

from typing import cast

from ..data import HiddenManifold
from ..interface.errors import InputError
from ..problem.statement import Problem


def latent_inputs(problem: Problem) -> HiddenManifold:
    """The inputs of a problem, which must be features of a latent."""
    if not problem.data.reads_latent:
        raise InputError("system: the equations of strong mixtures are for a HiddenManifold; use system='levels'")
    return cast("HiddenManifold", problem.data)
