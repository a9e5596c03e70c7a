"""Measure everything, print it, write RESULTS.md and the README's table (`--quick`: tiny sizes, nothing written)."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main(arguments: list[str]) -> int:
    """Run the suite; 2 for an unknown argument."""
    if arguments not in ([], ["--quick"]):
        print("usage: python -m benchmarks [--quick]", file=sys.stderr)
        return 2
    # One thread on both sides of every ratio; it must be said before NumPy is loaded.
    for name in ("OPENBLAS", "OMP", "MKL", "NUMBA"):
        os.environ[f"{name}_NUM_THREADS"] = "1"
    from .suite import run

    here = Path(__file__)
    if arguments:
        run(quick=True)
    else:
        run(out=here.with_name("RESULTS.md"), front=here.parents[1] / "README.md")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
