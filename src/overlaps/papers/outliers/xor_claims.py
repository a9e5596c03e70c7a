"""Claims about the two-layer network on the XOR mixture: Theorems 2.6 and 2.7, hidden classes, and their formulas.

Units end in four sets by the hidden class μ, −μ, ν or −ν that they answer to; a class is discerned if its set is not
empty.
"""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, chisquare, fisher_exact, norm

import overlaps as ov

from ..ledger import Measurement, told, verdict
from . import printed
from .class_claims import leaves, misalignment, whole
from .formula_claims import power
from .model import start, xor
from .paper import PAPER

Array = NDArray[np.float64]
Trained = tuple[ov.Start, ov.spectra.PopulationMatrix, ov.spectra.PopulationMatrix]
SIDES = np.array([1, 1, -1, -1])  # of the output for μ, −μ, ν, −ν


@cache
def trained(lam: float) -> Trained:
    """A point of the overlap chain at time 150 with all four sets, K = 6, β = .05, d = 2000, with its two matrices."""
    problem = xor(6, variance=1 / lam, decay=0.05)
    v, a, b = np.array(
        [[1.0, 0.8, -0.9, -1.1, 0.7, -0.6], [0.3, -0.3, 0.1, 0.05, 0.2, -0.1], [0.1, 0.1, 0.3, -0.3, -0.1, 0.2]]
    )
    begin = ov.Start.from_overlaps(
        problem, Q=np.eye(6), m=np.stack([a, -a, b, -b], axis=1), student_readout=v, size=2000
    )
    run = ov.sample(problem, begin, [150.0], runs=1, seed=26, progress=False).data
    Q, m, v = (run[name].values[0, -1] for name in ("Q", "m", "v"))
    point = ov.Start.from_overlaps(problem, Q=Q, m=m, student_readout=v, size=2000)
    return point, ov.spectra.population(problem, point), ov.spectra.population(problem, point, "gradient")


def _noises(quick: bool) -> list[float]:
    return [30.0, 100.0, 300.0] if quick else [30.0, 100.0, 300.0, 1000.0, 3000.0]


def _bounded(quick: bool, errors: dict[str, list[float]]) -> Measurement:
    """Whether all errors fall at least as λ^-½; those below 1e-4 are lost in the error of the averages."""
    lams = _noises(quick)
    fits = {name: power(lams, x) for name, x in errors.items() if max(x) > 1e-4}
    slope, width = max(fits.values())
    holds = slope < -0.45
    note = f"slowest of {len(fits)}, -1/2 said; at lambda = {lams[-1]:g}: " + ", ".join(
        f"{name} {x[-1]:.1g}" for name, x in errors.items()
    )
    return Measurement("holds" if holds else "fails", slope, width, note)


@PAPER.claim(
    "theorem-2.6",
    where="theorem 2.6",
    statement="W_i comes to live in the two top eigenvectors of blocks W_i W_i, and v in the four top ones of vv, of "
    "Hessian and G-matrix, up to O(eps + lambda^-1/2)",
    expected="holds",
)
def theorem26(quick: bool) -> Measurement:
    """Power of λ in 1 − ρ for the population matrices at a trained point, K = 6, β = .05, all four sets; worst unit."""
    errors: dict[str, list[float]] = {f"{x} in {y}": [] for x in "Wv" for y in ("H", "G")}
    errors |= {f"W in {y} of 10d samples": [] for y in ("H", "G")}
    for lam in _noises(quick):
        point, *matrices = trained(lam)
        for name, matrix in zip("HG", matrices, strict=True):
            errors[f"W in {name}"].append(max(misalignment(matrix, i, 2) for i in range(6)))
            seen = ov.spectra.predicted_outliers(matrix.span.problem, point, 20_000, kind=matrix.kind)
            errors[f"W in {name} of 10d samples"].append(1 - seen.alignment_of_student(0, 2))
            pairs = ov.spectra.eigenpairs(matrix.block("v").core, 4)
            errors[f"v in {name}"].append(1 - float(ov.spectra.subspace_alignment(point.v, pairs.vectors)))
    return _bounded(quick, errors)


@PAPER.claim(
    "theorem-2.7",
    where="theorem 2.7",
    statement="W_i and blocks W_i W_i live in the span of mu and nu, v and blocks vv in that of the four g(W theta), "
    "up to O(eps + lambda^-1/2)",
    expected="holds",
)
def theorem27(quick: bool) -> Measurement:
    """Power of λ in these errors for the population matrices at the trained point of theorem-2.6; worst unit."""
    errors: dict[str, list[float]] = {"W": [], "v": [], "H_WW": [], "G_WW": [], "H_vv": [], "G_vv": []}
    for lam in _noises(quick):
        point, *matrices = trained(lam)
        hidden = np.maximum(point.m[0], 0.0)
        inside = np.sum(point.m[0, :, [0, 2]] ** 2, axis=0) / np.diag(point.Q[0])
        errors["W"].append(float(1 - np.sqrt(inside.min())))
        errors["v"].append(1 - float(ov.spectra.subspace_alignment(point.v, hidden)))
        for name, matrix in zip("HG", matrices, strict=True):
            errors[f"{name}_WW"].append(max(leaves(matrix.block(i), matrix.span.means[[0, 2]]) for i in range(6)))
            errors[f"{name}_vv"].append(ov.spectra.distance_from(matrix.block("v").core, hidden))
    return _bounded(quick, errors)


@PAPER.claim(
    "eq-7.11",
    where="eq. (7.11)",
    statement="blocks W_i W_i of the Hessian are v_i^2/4 sum_theta F(m_i (lambda/R_ii)^1/2) theta theta^T up to "
    "O(lambda^-1/2), (7.11); corrected: each term times sigma'(v.g(W theta))",
    expected="holds corrected",
)
def eq711(quick: bool) -> Measurement:
    """Largest deviation, in units of the exact block, at the trained point of theorem-2.6, and its power of λ."""
    lams, gaps = _noises(quick), []
    for lam in lams:
        point, H, _ = trained(lam)
        (mu, _, nu, _), Q = point.m[0].T, point.Q[0]
        laws = printed.eq711(point.v, mu, nu, Q, 1 / lam), ov.laws.xor_outliers(point.v, mu, nu, Q, 1 / lam)
        gaps.append([max(_deviation(H.block(i), law[i], H.span.means[[0, 2]]) for i in range(6)) for law in laws])
    wrong, right = np.array(gaps).T
    slope, width = power(lams, right)
    falls = [power(lams, x)[0] < -0.45 for x in (wrong, right)]
    found = "holds" if falls[0] else "holds corrected" if falls[1] else "fails"
    note = f"printed, at lambda = {lams[-1]:g}; corrected {right[-1]:.2g}, with the power {slope:.2f} ± {width:.2f}"
    return Measurement(found, float(wrong[-1]), float(right[-1]), note)


def _deviation(block: ov.spectra.PopulationBlock, values: Array, directions: Array) -> float:
    """|block − Σ values directionᵀ direction| / |block| for directions (2, r)."""
    exact = whole(block)
    law = np.zeros_like(exact)
    law[:-1, :-1] = (directions.T * values) @ directions
    return float(np.linalg.norm(exact - law, 2) / np.linalg.norm(exact, 2))


@PAPER.claim(
    "initial-readout-outlier",
    where="figure 2.5",
    statement="at the start block vv of the Hessian has one outlier, since ReLU is positive (figure 2.5); it is at "
    "(1/2 + (K-1)/(2 pi))/(4 lambda) for d >> lambda >> 1",
    expected="holds",
)
def initial_outlier(quick: bool) -> Measurement:
    """Largest eigenvalue over this formula for rows that do not see the means, K = 8, v ~ N(0, 1), as λ grows."""
    lams, seeds = [10.0, 100.0, 1000.0], range(2 if quick else 10)
    ratios, gaps = np.empty((len(lams), len(seeds))), []
    for i, lam in enumerate(lams):
        problem = xor(8, variance=1 / lam)
        for seed in seeds:
            v = np.random.default_rng(seed).standard_normal(8)
            point = ov.Start.from_overlaps(problem, Q=np.eye(8), m=np.zeros((8, 4)), student_readout=v)
            values = np.linalg.eigvalsh(ov.spectra.readout_block(problem, point))[::-1]
            ratios[i, seed] = values[0] / ov.laws.xor_initial_outlier(8, 1 / lam)
            gaps.append((values[0] / values[1], values[1] / values[-1]))
    first, rest = np.min(gaps, axis=0)[0], np.max(gaps, axis=0)[1]
    off = np.abs(ratios - 1).mean(1)
    holds = first > 2 * rest and off[-1] < 0.02 and off[-1] < off[0]
    finite = xor(8, variance=1e-3)
    top = np.linalg.eigvalsh(ov.spectra.readout_block(finite, start(finite, 1000, 0)))[-1]
    grown = top / ov.laws.xor_initial_outlier(8, 1e-3)
    note = (
        f"at lambda = {lams[-1]:g}; deviations {', '.join(f'{x:.3f}' for x in off)} at 10, 100, 1000; at least "
        f"{first:.1f} times the second, which is at most {rest:.1f} times the last; rows drawn at d = lambda = 1000 "
        f"see the means, which makes it {grown:.1f} times as large"
    )
    return Measurement("holds" if holds else "fails", float(ratios[-1].mean()), float(ratios[-1].std()), note)


def sets(v: Array, m: Array) -> int:
    """Number of sets that are not empty, of units with |v_i| > .15 for readout (K,) and overlaps m (K, 4)."""
    chosen = np.where(v > 0, np.where(m[:, 0] > 0, 0, 1), np.where(m[:, 2] > 0, 2, 3))
    return len(set(chosen[np.abs(v) > 0.15].tolist()))


def ends(problem: ov.Problem, size: int, runs: int) -> list[tuple[Array, Array, Array]]:
    """Q, m and v of the overlap chain at time 150 from drawn starts, one run each."""
    found = []
    for seed in range(runs):
        run = ov.sample(problem, start(problem, size, seed), [150.0], runs=1, seed=seed, progress=False).data
        found.append(tuple(run[name].values[0, -1] for name in ("Q", "m", "v")))
    return found


@PAPER.claim(
    "rank-deficiency",
    where="figures 2.5 and 2.6",
    statement="after training block vv has as many outliers as hidden classes are discerned, 1 to 4",
    expected="holds",
)
def rank_deficiency(quick: bool) -> Measurement:
    """Fraction of chains, K = 6, λ = 1000, β = .05, with as many outliers of the population block as sets."""
    runs, problem = 40 if quick else 150, xor(6, variance=1e-3, decay=0.05)
    pairs = []
    for seed, (Q, m, v) in enumerate(ends(problem, 100, runs)):
        point = ov.Start.from_overlaps(problem, Q=Q, m=m, student_readout=v)
        first, last = (
            np.linalg.eigvalsh(ov.spectra.readout_block(problem, at)) for at in (start(problem, 100, seed), point)
        )
        pairs.append((sets(v, m), int(ov.spectra.outlier_rank(last, np.median(first)))))
    discerned, rank = np.array(pairs).T
    same = float(np.mean(discerned == rank))
    seen = ", ".join(f"{j}: {np.sum(discerned == j)}" for j in np.unique(discerned))
    error = float(np.sqrt(max(same * (1 - same), 1 / runs) / runs))
    judged = told("holds" if same >= 0.95 else "fails", same, error)
    return Measurement(judged, same, error, f"runs by sets that are not empty, {seen}")


@PAPER.claim(
    "hidden-classes",
    where="section 2.2.2, after figure 2.6",
    statement="SGD ends sub-optimal, with less than four classes discerned, with a probability that goes to zero "
    "exponentially in K; for lambda >> d it is 1 - 24 S(K,4)/4^K, S of Stirling, ~ 4 (3/4)^K, and with noise less",
    expected="holds",
)
def hidden_classes(quick: bool) -> Measurement:
    """Sub-optimal chains at λ = 10⁵, β = .05, over the law, mean over K; chi-square of the sets; and at λ = 10."""
    # chains of few units are the slow ones with noise, of which no number is judged
    size, plan, few = (100, {4: 250, 8: 200}, 10) if quick else (200, {4: 300, 6: 600, 8: 1500}, 100)
    chances, shares, laws, noisy = [], [], [], []
    for units, runs in plan.items():
        # signs of overlaps of order d^-½ are kept if the noise of the fields, λ^-½, is small beside them
        found = _discerned(xor(units, variance=1e-5, decay=0.05), size, runs)
        chances.append(_chance(found, ov.laws.hidden_classes(units)))
        shares.append(float(np.mean(np.array(found) < 4)))
        laws.append(1 - float(ov.laws.hidden_classes(units)[-1]))
        noisy.append(float(np.mean(np.array(_discerned(xor(units, decay=0.05), size, few)) < 4)))
    tail = [1 - float(ov.laws.hidden_classes(units)[-1]) for units in (30, 31)]
    law, runs = np.array(laws), np.array(list(plan.values()))
    precision = runs * law / (1 - law)  # one over the variance of a share over the law
    ratio, error = float(np.average(shares / law, weights=precision)), float(precision.sum() ** -0.5)
    holds = min(chances) > 1e-3 and abs(ratio - 1) <= 3 * error
    holds &= abs(tail[1] / tail[0] - 0.75) < 1e-3 and 0 < noisy[-1] < noisy[0]
    note = (
        "; ".join(
            f"K = {K}: {x:.3f}, law {y:.3f}, p = {z:.2g}, at lambda = 10 {noise:.3f}"
            for K, x, y, z, noise in zip(plan, shares, laws, chances, noisy, strict=True)
        )
        + f"; from K = 30 to 31 the law falls by {tail[1] / tail[0]:.4f}"
    )
    return Measurement(told("holds" if holds else "fails", ratio, error), ratio, error, note)


def _discerned(problem: ov.Problem, size: int, runs: int) -> list[int]:
    return [sets(v, m) for _, m, v in ends(problem, size, runs)]


def _chance(found: list[int], law: Array) -> float:
    """p of chi-square for numbers of sets; one and two sets are counted as one."""
    counts, parts = np.bincount(found, minlength=5)[1:], np.array([law[:2].sum(), law[2], law[3]])
    return float(chisquare([counts[:2].sum(), counts[2], counts[3]], len(found) * parts).pvalue)


def growth(variance: float, decay: float) -> float:
    """Rate at which a small unit along μ grows in the solved equations of first order, by the flow without noise."""
    small, time = 1e-3, 5.0
    if variance == 0:
        v = ov.laws.xor_flow([small], [small], [0.0], decay, [time])[0][-1, 0]
        return float(np.log(v / small) / time)
    problem = ov.Problem(
        data=xor(1, variance=variance).data,
        student=ov.Committee(1, "relu", train_readout=True),
        algorithm=ov.GradientFlow(1.0, decay=decay),
        loss="logistic",
    )
    begin = ov.Start.from_overlaps(problem, Q=[[small**2]], m=[[small, -small, 0.0, 0.0]], student_readout=[small])
    v = float(ov.solve(problem, begin, [time]).data["v"].values[0, -1, 0])
    return float(np.log(v / small) / time)


@PAPER.claim(
    "beta-transition",
    where="remark 1 and section 5.4.3",
    statement="for beta > 1/8 SGD converges to the origin, at every lambda, and for beta < 1/8 it does not if lambda "
    "is large enough",
    expected="holds",
)
def beta_transition(quick: bool) -> Measurement:
    """β where a small unit stops growing, without noise, 1/8, and at λ = 10, 100, 1000, less; a chain at β = .14."""
    found = [growth(s, 0.05) + 0.05 for s in (0.1, 0.01, 0.001, 0.0)]
    (left,) = remaining((0.14,), 1 if quick else 10)
    holds = bool((np.diff(found) > 0).all()) and abs(found[-1] - 0.125) < 1e-4 and left < 1e-3
    note = f"without noise; {', '.join(f'{x:.4f}' for x in found[:-1])} at lambda = 10, 100, 1000; |v|^2 of chains at "
    note += f"beta = .14, time 400: {left:.1g}"
    return Measurement("holds" if holds else "fails", found[-1], 1e-4, note)


@PAPER.claim(
    "noisy-transition",
    where="not in the paper; lambda_0 of theorem 2.6",
    statement="at finite lambda SGD converges to the origin from beta = kappa/8 on, kappa = erf((lambda/2)^1/2) - "
    "(2/(pi lambda))^1/2 (1 - exp(-lambda/2)): .0935 at lambda = 10",
    expected="found here",
)
def noisy_transition(quick: bool) -> Measurement:
    """β where a small unit stops growing at λ = 10 over κ/8, and at 100; and chains at β = .08 and .11, λ = 10."""
    ratios = [(growth(s, 0.05) + 0.05) / ov.laws.xor_transition(s) for s in (0.1, 0.01)]
    left = remaining((0.08, 0.11), 2 if quick else 20)
    found = max(abs(ratio - 1) for ratio in ratios) < 1e-3 and left[1] < 0.01 < left[0]
    note = f"at lambda = 100 {ratios[1]:.6f}; |v|^2 of chains at time 400: {left[0]:.3f} for beta = .08, {left[1]:.1g} "
    return Measurement("found here" if found else "fails", ratios[0], 1e-3, note + "for .11, below 1/8")


def remaining(decays: tuple[float, ...], runs: int) -> list[float]:
    """|v|² of the overlap chain at time 400, mean over runs, K = 4, λ = 10, d = 200, for each decay."""
    left = []
    for decay in decays:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a decay that lets nothing be learned, which is what is shown
            problem = xor(4, decay=decay)
        paths = [
            ov.sample(problem, start(problem, 200, seed), [400.0], runs=1, seed=seed, progress=False)
            for seed in range(runs)
        ]
        left.append(float(np.mean([np.sum(run.data["v"].values[0, -1] ** 2) for run in paths])))
    return left


@PAPER.claim(
    "fixed-point",
    where="section 5.4.3",
    statement="without noise sum v_i^2 = logit(-4 beta) over each set that is not empty; corrected: logit(1 - 4 beta) "
    "= log((1 - 4 beta)/(4 beta))",
    expected="holds corrected",
)
def fixed_point(quick: bool) -> Measurement:
    """Sum over each set at the end of the flow without noise, K = 6, β = .02 to .12, and of the chain at λ = 1000."""
    v, a, b = [1.0, 0.8, -0.9, -1.1, 0.7, -0.6], [0.3, -0.3, 0.1, 0.05, 0.2, -0.1], [0.1, 0.1, 0.3, -0.3, -0.1, 0.2]
    off, wrong = 0.0, np.inf
    for decay in (0.02, 0.05, 0.1, 0.12):
        last, mu, nu = (x[-1] for x in ov.laws.xor_flow(v, a, b, decay, [3000.0]))
        sums = np.array([np.sum(last[x > 1e-3] ** 2) for x in (mu, -mu, nu, -nu)])
        off = max(off, float(np.abs(sums / ov.laws.xor_norm(decay) - 1).max()))
        wrong = min(wrong, float(np.abs(sums - printed.fixed_point(decay)).min()))
    point = trained(300.0 if quick else 1000.0)[0]
    chain = np.array([np.sum(point.v[x > 0.15] ** 2) for x in point.m[0].T])
    difference = float(np.abs(chain / ov.laws.xor_norm(0.05) - 1).max())
    shown = verdict(wrong, off, 1e-6) if difference < 0.1 else "fails"
    note = (
        f"deviation of the corrected sums; the printed, logit of a negative number, is not real and {wrong:.1f} off at "
        f"least; the chain at beta = .05 is within {100 * difference:.1f} %, with noise"
    )
    return Measurement(shown, off, 1e-9, note)


@PAPER.claim(
    "stopping-rule",
    where="section 2.2.2, after figure 2.6",
    statement="the rank of the outliers of block vv tells when all four hidden classes are discerned, a stopping rule",
    expected="holds",
)
def stopping_rule(quick: bool) -> Measurement:
    """Rate of false stops of `stop_time` in SGD runs, K = 6, λ = 100, β = .05, d = 100, until time 100."""
    runs, times = (24 if quick else 200), np.arange(0.0, 101.0, 4.0 if quick else 2.0)
    problem, size = xor(6, variance=0.01, decay=0.05), 100
    watch = ov.spectra.Observer(kinds="hessian", blocks=[0], count=1, samples=500 if quick else 2000)
    table, false = np.zeros((2, 2), dtype=int), 0
    for seed in range(runs):
        run = ov.train(problem, start(problem, size, seed), times, runs=1, seed=seed, observe=watch, progress=False)
        at = float(ov.spectra.stop_time(run, 4)[0])
        good = margins(run) >= 0.1
        table[int(np.isfinite(at)), int(good[-1])] += 1
        false += bool(np.isfinite(at) and not good[times == at][0])
    stops = int(table[1].sum())
    rate = false / stops if stops else 1.0
    high = float(beta.ppf(0.975, false + 1, stops - false)) if false < stops else 1.0
    chance = float(fisher_exact(table)[1])  # pyright: ignore[reportArgumentType,reportIndexIssue]
    holds = rate <= 0.1 and chance < 1e-3
    (_, missed), (wrongly, rightly) = table
    note = (
        f"{false} of {stops} stops false, at most {100 * high:.0f} % (95 %); stopped {rightly} of {missed + rightly} "
        f"runs that end with all classes discerned and {wrongly} of {table[:, 0].sum()} others, p = {chance:.1g}"
    )
    return Measurement("holds" if holds else "fails", rate, (high - rate) / 2, note)


def margins(run: ov.Trajectory) -> Array:
    """Least mean output over the hidden classes, each on its side of zero, (times,)."""
    Q, m, v = (run.data[name].values[0] for name in ("Q", "m", "v"))
    assert run.problem is not None
    spread = np.sqrt(run.problem.data.components.variances[0] * np.diagonal(Q, axis1=1, axis2=2))[:, :, None]
    rectified = m * norm.cdf(m / spread) + spread * norm.pdf(m / spread)
    return np.min(SIDES * np.einsum("tk,tkc->tc", v, rectified), axis=1)
