"""Matrices, labels and styles of the paper's figures."""

from __future__ import annotations

from typing import Any

DOUBLE = 9e-5  # a tolerance that observers meet in double precision
KINDS = ("hessian", "gradient")
NAMES = {"hessian": r"\nabla^2\hat R", "gradient": r"\hat G"}
ALIGNMENT = "alignment ρ"
PREDICTED: dict[str, Any] = {"color": "k", "ls": "--", "lw": 1.0}
