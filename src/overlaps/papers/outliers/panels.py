"""Labels and styles of the paper's figures."""

from __future__ import annotations

from typing import Any

from ..panels import time_label

TIME = time_label("ℓδ")
ALIGNMENT = "alignment ρ"
PREDICTED: dict[str, Any] = {"color": "k", "ls": "--", "lw": 1.0}
