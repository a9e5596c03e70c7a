"""The ten measures that the README shows, each with what it is called there; all others stand in RESULTS.md alone.

A name on the left is that of a row of the suite at full size, so a row that is renamed is renamed here too.
"""

from __future__ import annotations

FRONT = {
    "NumPy loop / micro, N = 1000, K = 2, M = 2": "a training step with 1000 inputs: NumPy loop / `ov.train`",
    "micro / meso, N = 1000, K = M = 2": "the same step: `ov.train` / `ov.sample`, which has the same law",
    "meso: step at N = 10⁷ / at N = 10³": "a step of `ov.sample`: with ten million inputs / with a thousand",
    "macro at 1e-06: erf on ReLU, K = M = 2, to time 100": (
        "`ov.solve`, closed form: two erf units learn two ReLU units"
    ),
    "macro at 1e-03: twenty ReLU units on the XOR labels, to time 60": (
        "`ov.solve`, quadrature: twenty ReLU units learn XOR labels"
    ),
    "one MultiPass run of 40 epochs / its theory, N = 500, n = 8000": (
        "forty epochs over 8000 rows of 500 columns: training / its theory"
    ),
    "forecast with schedule and verdict, 10⁴ rows × 784 columns": (
        "`overlaps learn`, 10,000 rows of 784 columns: forecast, schedule and verdict"
    ),
    "forecast with schedule and verdict, 2·10⁴ rows × 3072 columns": (
        "`overlaps learn`, 20,000 rows of 3072 columns: forecast, schedule and verdict"
    ),
    "30 rates x 5 exponents x 5 seeds, macro and meso: a plain loop / a sweep on 2 processes": (
        "150 problems, 5 seeds each: plain loop / `ov.sweep` on 2 processes"
    ),
    "a slider of the page, K = M = 2": "`overlaps app`: theory drawn again when a slider moves",
}
