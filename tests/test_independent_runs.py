"""Runs in threads of their own: each keeps its linear algebra to one of them."""

import os
import subprocess
import sys

SCRIPT = """
from threadpoolctl import threadpool_info
from overlaps.trajectory.independent_runs import simulate_in_threads


def threads():
    return [library["num_threads"] for library in threadpool_info()]


def of_a_run(limit):
    return simulate_in_threads(
        lambda i, rng, progress: threads(), 1, stream=0, seed=0, name="", steps=1, progress=False, blas_threads=limit
    )[0]


print(threads(), of_a_run(1), of_a_run(None), threads())
import scipy.linalg  # brings a library of its own
print(threads(), of_a_run(1), of_a_run(None), threads())
"""


def test_linear_algebra_is_limited_also_that_of_libraries_loaded_later() -> None:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2"}  # on a machine of one core it is one all the same
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    n = min(2, os.cpu_count() or 1)
    assert done.stdout.splitlines() == [f"[{n}] [1] [{n}] [{n}]", f"[{n}, {n}] [1, 1] [{n}, {n}] [{n}, {n}]"]
