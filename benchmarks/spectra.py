"""Spectra: eigenpairs of all blocks against dense and matrix-free routes, observing against training, false stops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.stats import beta, norm

import overlaps as ov
from overlaps.spectra.batch import Batch
from overlaps.spectra.eigenpairs import Eigenpairs, eigenpairs
from overlaps.spectra.empirical import NetworkMatrix, gradient_matrix, hessian
from overlaps.spectra.observer import Observer
from overlaps.spectra.operators import SymmetricOperator
from overlaps.spectra.population import readout_block
from overlaps.spectra.stopping import StoppingRule, outlier_rank

from .problems import classes
from .table import Row, at_least, at_most, duration, times
from .timing import race

Array = NDArray[np.float64]
XOR = [[1.0, -1.0, 0.0, 0.0], [-1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0], [0.0, 0.0, -1.0, 1.0]]
SIDES = np.array([1, 1, -1, -1])  # of the outputs of the four hidden classes


def by_eigh(matrix: NetworkMatrix, count: int) -> Array:
    """Largest eigenvalues of every diagonal block by forming and diagonalising it."""
    return np.array([np.linalg.eigh(matrix.block(i).dense())[0][::-1][:count] for i in range(matrix.units)])


def by_eigsh(matrix: NetworkMatrix, count: int, tolerance: float) -> Array:
    """The same by SciPy's Lanczos, one vector at a time, with products as cheap as they can be."""
    X, values = matrix.inputs, []
    for i in range(matrix.units):
        a = matrix.weights(i, i) / len(X)

        def product(x: Array, a: Array = a) -> Array:
            return X.T @ (a * (X @ x))

        operator = LinearOperator((X.shape[1],) * 2, matvec=product, dtype=float)  # pyright: ignore[reportCallIssue]
        found = eigsh(operator, count, tol=tolerance, v0=np.ones(X.shape[1]))[0]  # pyright: ignore[reportArgumentType]
        values.append(np.sort(found)[::-1])
    return np.array(values)


def blocks(quick: bool = False) -> list[Row]:
    """The ten largest eigenpairs of all ten Hessian blocks."""
    count, size, samples = (3, 60, 300) if quick else (10, 1000, 5000)
    problem = classes(count)
    point = ov.draw(problem, size, seed=0)
    H = hessian(problem, point, Batch.draw(problem, point, samples, seed=1))
    tolerance = 1e-6
    found: dict[str, Array] = {}

    def keep(name: str, go: Callable[[], Array]) -> Callable[[], None]:
        return lambda: found.update({name: go()})

    result = race(
        {
            "ours": (keep("ours", lambda: eigenpairs(H.blocks, count, tolerance=tolerance).values), 1),
            "eigh": (keep("eigh", lambda: by_eigh(H, count)), 1),
            "eigsh": (keep("eigsh", lambda: by_eigsh(H, count, tolerance)), 1),
        },
        1 if quick else 3,
    )
    where = f"{count} largest pairs of {count} Hessian blocks, N = {size}, {samples} samples"
    apart = {name: float(np.abs(found["ours"] / found[name] - 1).max()) for name in ("eigh", "eigsh")}
    return [
        at_least(
            f"form and diagonalise / family of operators, {where}",
            result.ratio("eigh", "ours"),
            2,
            f"{duration(result.cost('eigh'))} and {duration(result.cost('ours'))}, residuals below {tolerance:g}; the "
            f"eigenvalues differ by {apart['eigh']:.0e}.",
        ),
        at_least(
            f"SciPy eigsh without a matrix / family of operators, {where}",
            result.ratio("eigsh", "ours"),
            1.5,
            f"{duration(result.cost('eigsh'))} at the same tolerance; the eigenvalues differ by {apart['eigsh']:.0e}. "
            "It multiplies one vector at a time, and does not search for what it may have missed.",
        ),
    ]


def gram(quick: bool = False) -> list[Row]:
    """The whole G-matrix from fewer samples than parameters: the samples' Gram matrix against products."""
    count, size, samples = (3, 300, 40) if quick else (10, 1000, 500)
    problem = classes(count)
    point = ov.draw(problem, size, seed=0)
    G = gradient_matrix(problem, point, Batch.draw(problem, point, samples, seed=1))
    factored = G.whole
    F = factored.factor
    assert F is not None
    direct = SymmetricOperator(factored.dimension, lambda V: F.T @ (F @ V))
    found: dict[str, Eigenpairs] = {}
    result = race(
        {
            "gram": (lambda: found.update(gram=eigenpairs(factored, 10, tolerance=1e-6)), 1),
            "direct": (lambda: found.update(direct=eigenpairs(direct, 10, tolerance=1e-6)), 1),
        },
        1 if quick else 11,
    )
    apart = float(np.abs(found["gram"].values / found["direct"].values - 1).max())
    return [
        Row(
            f"products / Gram matrix, 10 largest pairs of the whole G-matrix, {count * size} parameters, "
            f"{samples} samples",
            times(result.ratio("direct", "gram")),
            f"{duration(result.cost('direct'))} and {duration(result.cost('gram'))} ({found['gram'].method}); the "
            f"eigenvalues differ by {apart:.0e}.",
        )
    ]


def observing(quick: bool = False) -> list[Row]:
    """Following eigenpairs at 100 times against the training run that is followed."""
    size, last, looks = (60, 0.2, 3) if quick else (1000, 50.0, 100)
    problem = classes(10)
    start = ov.draw(problem, size, seed=0)
    t = np.linspace(0, last, looks)

    def run(observe: Observer | None) -> Callable[[], None]:
        return lambda: ov.train(problem, start, t, runs=1, observe=observe, progress=False) and None

    sides = {
        "training": (run(None), 1),
        "H_00": (run(Observer(kinds="hessian", blocks=[0])), 1),
        "H_00 and G_00": (run(Observer(blocks=[0])), 1),
        "all 20": (run(Observer()), 1),
    }
    result = race(sides, 1 if quick else 3)
    alone = result.cost("training")
    more = {name: max(result.cost(name) - alone, 1e-9) for name in sides}
    where = f"at {looks} times / the training run, N = {size}, {2 * size} samples"
    return [
        at_most(
            f"observing one Hessian block {where}",
            more["H_00"] / alone,
            1,
            f"{duration(more['H_00'])} more than the {duration(alone)} of the run, {duration(more['H_00'] / looks)} a "
            "time; 10 pairs to residuals of 0.005.",
        ),
        Row(
            f"observing one Hessian block and one of the G-matrix {where}",
            times(more["H_00 and G_00"] / alone),
            f"{duration(more['H_00 and G_00'])}.",
        ),
        Row(
            f"observing all 20 blocks {where}",
            times(more["all 20"] / alone),
            f"{duration(more['all 20'])}, {duration(more['all 20'] / 20 / looks)} for a block and a time. A residual "
            "takes a product with 280 vectors, and that alone costs several times the training between two looks.",
        ),
    ]


@dataclass(frozen=True)
class Stops:
    """How runs stopped: all, those that ended with every hidden class discerned, stops, false stops."""

    runs: int
    discerned: int
    stops: int
    false: int

    @property
    def interval(self) -> tuple[float, float]:
        """Of the rate of false stops among stops, 95 % (Clopper-Pearson)."""
        low = float(beta.ppf(0.025, self.false, self.stops - self.false + 1)) if self.false else 0.0
        high = float(beta.ppf(0.975, self.false + 1, self.stops - self.false)) if self.false < self.stops else 1.0
        return low, high


def false_stops(runs: int, seed: int, *, every: float = 2.0) -> Stops:
    """Runs of the overlap chain for the XOR mixture, s = 0.01, decay 0.05, until time 100; see `spectra.stopping`."""
    rng, s, size, units = np.random.default_rng(seed), 0.01, 100, 6
    problem = ov.Problem(
        data=ov.GaussianMixture(gram=XOR, labels=[1, 1, 0, 0], variance=s),
        student=ov.Committee(units, "relu", 1.0, train_readout=True),
        algorithm=ov.OnlineSGD(1.0, decay=0.05),
        loss="logistic",
    )
    rule, t = StoppingRule(4, 8.0), np.arange(0.0, 100.0 + every / 2, every)
    discerned = stops = false = 0
    for _ in range(runs):
        W, v = rng.standard_normal((units, size)), rng.standard_normal(units)
        start = ov.Start.from_weights(problem, W, student_readout=v)
        run = ov.sample(problem, start, t, runs=1, seed=int(rng.integers(2**31)), progress=False).data.isel(run=0)
        Q, m, v = run["Q"].values, run["m"].values, run["v"].values
        spread = np.sqrt(s * np.diagonal(Q, axis1=1, axis2=2))[:, :, None]
        rectified = m * norm.cdf(m / spread) + spread * norm.pdf(m / spread)
        margin = np.min(SIDES * np.einsum("tk,tkc->tc", v, rectified), axis=1)
        points = (ov.Start.from_overlaps(problem, Q[i], m=m[i], student_readout=v[i]) for i in range(t.size))
        values = np.array([np.linalg.eigvalsh(readout_block(problem, point)) for point in points])
        at = rule.first_stop(t, outlier_rank(values, np.median(values[0])))
        discerned += margin[-1] >= 0.1
        if np.isfinite(at):
            stops += 1
            false += bool(margin[t == at][0] < 0.1)
    return Stops(runs, int(discerned), stops, int(false))


def stopping(quick: bool = False) -> list[Row]:
    """How often the stopping rule stops too early."""
    seen = false_stops(runs=2 if quick else 100, seed=12, every=10.0 if quick else 2.0)
    low, high = seen.interval if seen.stops else (0.0, 1.0)
    return [
        Row(
            "false stops of the stopping rule, XOR mixture, 6 units",
            f"{seen.false} of {seen.stops}",
            f"{100 * low:.1f} to {100 * high:.1f} % of stops (95 %); {seen.discerned} of {seen.runs} runs discern all "
            "four hidden classes in the end.",
        )
    ]
