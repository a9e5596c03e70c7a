"""Solutions by a route that shares neither averages nor tolerances with the library, to hold stated errors against.

Averages over the fields h = μ + X z are sums over a tensor grid of Gauss and Legendre on |z_j| ≤ 9, X the symmetric
root of the covariance, with the losses written out again in NumPy and D = E[δ (h − μ)ᵀ] C⁻¹. Kinked losses of one
variable are written in closed form, of two by panels, and more than three fields are taken four at a time. The equation
of motion is that of the library, which its tests compare with training runs.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.special import expit, ndtr

import overlaps as ov
from overlaps.averages import Averages
from overlaps.averages.field_rule import FieldRule
from overlaps.online.macro import equation_of_levels

Array = NDArray[np.float64]
Slope = Callable[[Array, Array, float, Array], tuple[Array, Array, Array]]
RADIUS = 9.0


class Reference:
    """The averages of a problem on a dense grid of `nodes` a dimension."""

    name, gain, jumps, default_accuracy = "reference", 3.0, False, 1e-9

    def __init__(self, problem: ov.Problem, law: Any, nodes: int) -> None:
        self.problem, self.law = problem, law
        x, w = np.polynomial.legendre.leggauss(nodes)
        d = problem.student.units + problem.teacher_units
        line, share = RADIUS * x, RADIUS * w * np.exp(-((RADIUS * x) ** 2) / 2) / np.sqrt(2 * np.pi)
        self.z = np.stack(np.meshgrid(*[line] * d, indexing="ij"), -1).reshape(-1, d)
        weights = np.prod(np.stack(np.meshgrid(*[share] * d, indexing="ij"), -1).reshape(-1, d), axis=1)
        keep = weights > 1e-22
        self.z, self.w = self.z[keep], weights[keep]

    def component(self, C: Array, mean: Array, label: float, v: Array) -> tuple[Array, Array, Array, float, Array]:
        """D, S, dv, error and E[δ] of one component."""
        values, vectors = np.linalg.eigh(C)
        X = vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T
        centred = self.z @ X
        h, K = mean + centred, v.size
        value, dlam, dv = self.law(h[:, :K], h[:, K:], label, v)
        weighted = dlam * self.w[:, None]
        D = weighted.T @ centred @ np.linalg.pinv(C, rcond=1e-13)
        return D, weighted.T @ dlam, self.w @ dv, float(self.w @ value), weighted.sum(0)

    def __call__(self, C: Array, v: Array, means: Array | None = None) -> Averages:
        weights, variances, labels = self.problem.data.components
        P = 0 if means is None else means.shape[1]
        at = means if means is not None and P else np.zeros((len(C), weights.size))
        D, S, dv, error, E = 0.0, 0.0, 0.0, 0.0, []
        for p, s, label, mean in zip(weights, variances, labels, at.T, strict=True):
            one = self.component(s * C, mean, float(label), v)
            D, S = D + p * s * one[0], S + p * s * one[1]
            dv, error = dv + p * one[2], error + p * one[3]
            E.append(p * one[4])
        noise = self.problem.label_noise
        if noise:
            ones = self.law.outputs(C, v, self)
            S = S + noise**2 * ones
        return Averages(D, S, dv, error, np.array(E).T[:, :P])  # type: ignore[arg-type]

    def errors(self, C: Array, v: Array, means: Array | None = None) -> Array:
        """Errors of a batch."""
        empty = np.zeros((len(C), C.shape[1], 0)) if means is None else means
        return np.array([self(c, r, m).error for c, r, m in zip(C, v, empty, strict=True)])


class Output:
    """A loss of the output f = Σ v g(λ): its value and slope in f, given the target."""

    def __init__(self, g: Callable[[Array], Array], dg: Callable[[Array], Array], loss: str, u: Array) -> None:
        self.g, self.dg, self.loss, self.u = g, dg, loss, u

    def __call__(self, lam: Array, nu: Array, label: float, v: Array) -> tuple[Array, Array, Array]:
        values = self.g(lam)
        f = values @ v
        y = self.g(nu) @ self.u if nu.shape[1] else label
        if self.loss == "square":
            value, slope = (f - y) ** 2 / 2, f - y
        else:
            value, slope = np.logaddexp(0, f) - y * f, expit(f) - y
        return value, slope[:, None] * v * self.dg(lam), slope[:, None] * values

    def outputs(self, C: Array, v: Array, rule: Reference) -> Array:
        """v v E[g' g'], which label noise multiplies."""
        values, vectors = np.linalg.eigh(C)
        h = rule.z @ (vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T)
        slopes = v * self.dg(h[:, : v.size])
        return (slopes * rule.w[:, None]).T @ slopes


def softmax(lam: Array, nu: Array, label: float, v: Array) -> tuple[Array, Array, Array]:
    """Cross-entropy of the fields themselves."""
    top = lam.max(1, keepdims=True)
    total = np.log(np.exp(lam - top).sum(1, keepdims=True)) + top
    dlam = np.exp(lam - total)
    value = total[:, 0] - lam[:, int(label)]
    dlam[:, int(label)] -= 1
    return value, dlam, np.zeros_like(lam)


def log_cosh(lam: Array, nu: Array, label: float, v: Array) -> tuple[Array, Array, Array]:
    """A user's smooth loss of λ − ν."""
    apart = lam - nu
    return np.log(np.cosh(apart[:, 0])), np.tanh(apart), np.zeros_like(lam)


class Hinge(Reference):
    """One linear unit of readout one and the hinge loss: integrals over a half line."""

    def component(self, C: Array, mean: Array, label: float, v: Array) -> tuple[Array, Array, Array, float, Array]:
        y, q = (1.0 if label > 0 else -1.0), float(np.sqrt(C[0, 0]))
        margin = (1 - y * mean[0]) / q  # the loss is q (margin − ξ) where ξ < margin
        inside, edge = float(ndtr(margin)), float(np.exp(-(margin**2) / 2) / np.sqrt(2 * np.pi))
        slope = np.array([-y * inside])
        field = y * (y * mean[0] * inside - q * edge)  # E[λ 1(y λ < 1)]
        return (
            np.array([[edge / q]]), np.array([[inside]]), np.array([-y * field]), q * (margin * inside + edge), slope,
        )  # fmt: skip


class Absolute(Reference):
    """|λ − ν| of one student and one teacher."""

    def component(self, C: Array, mean: Array, label: float, v: Array) -> tuple[Array, Array, Array, float, Array]:
        width = np.sqrt(C[0, 0] + C[1, 1] - 2 * C[0, 1])
        bend = 2 / (np.sqrt(2 * np.pi) * width)
        return np.array([[bend, -bend]]), np.ones((1, 1)), np.zeros(1), float(width * np.sqrt(2 / np.pi)), np.zeros(1)


def solution(problem: ov.Problem, start: ov.Start, times: Array, how: Any, rtol: float) -> dict[str, Array]:
    """Q, R, m, v and error at the times, by SciPy's own driver of an eighth-order method."""
    motion = equation_of_levels(problem, start, how)
    y = motion.pack(start.Q, start.A, start.v)
    t, states = 0.0, []
    knots = [x for x in motion.update.knots.tolist() if 0 < x < times[-1]]
    for end in sorted({*times.tolist(), *knots}):  # one by one, since output between steps is of lower order
        if end > t:
            with np.errstate(all="ignore"):
                y = solve_ivp(motion.before(end), (t, end), y, "DOP853", rtol=rtol, atol=rtol * 1e-3).y[:, -1]
        t = end
        if end in times:
            states.append(y)
    Q, R, m, v = (np.array(part)[None] for part in zip(*(motion.totals(s) for s in states), strict=True))
    averaged = [motion.averages(s, how).error for s in states]
    return {"Q": Q, "R": R, "m": m, "v": v, "error": np.array(averaged)[None]}


def linear_steps(problem: ov.Problem, start: ov.Start, times: Array) -> dict[str, Array]:
    """Means over runs of one linear unit, step by step, by its N × N matrix of second moments.

    With x of covariance Σ, the difference e from the teacher moves as e ← e − (η/N) x (x·e) in a step, so that

        m ← m − (η/N) Σ m,    M ← M − (η/N) (Σ M + M Σ) + (η/N)² (2 Σ M Σ + Tr(Σ M) Σ),    m = E[e], M = E[e eᵀ].
    """
    assert start.student is not None and start.teacher is not None and start.size is not None
    N, B = start.size, start.teacher[0] * start.u[0] / start.v[0]
    omega = np.repeat(start.eigenvalues, problem.data.dimensions(N))
    h = float(problem.algorithm.rate) * start.v[0] ** 2 / N  # type: ignore[arg-type]
    m = start.student[0] - B
    second, out, done = np.outer(m, m), {"Q": [], "R": [], "error": []}, 0
    for stop in np.rint(times * N).astype(int).tolist():
        for _ in range(stop - done):
            pull = omega[:, None] * second
            level = np.diag(omega) * float(np.trace(pull))
            second = second - h * (pull + pull.T) + h * h * (2 * pull * omega + level)
            m = m - h * omega * m
        done = stop
        out["Q"].append(float(omega @ (np.diag(second) + 2 * m * B + B * B)) / N)
        out["R"].append(float(omega @ ((m + B) * start.teacher[0])) / N)
        out["error"].append(0.5 * start.v[0] ** 2 * float(omega @ np.diag(second)) / N)
    found = {name: np.array(x).reshape((1, -1) + (1, 1) * (name != "error")) for name, x in out.items()}
    return found | {"v": np.broadcast_to(start.v, (1, times.size, 1))}


class Differences(Reference):
    """Softmax of K classes on a grid over the K − 1 differences of its fields, which are all that it feels."""

    def __init__(self, problem: ov.Problem, law: Any, nodes: int) -> None:
        K = problem.student.units
        self.P = np.linalg.qr(np.column_stack([np.ones(K), np.eye(K)[:, 1:]]))[0][:, 1:]
        x, w = np.polynomial.legendre.leggauss(nodes)
        line, share = RADIUS * x, RADIUS * w * np.exp(-((RADIUS * x) ** 2) / 2) / np.sqrt(2 * np.pi)
        grids = [np.stack(np.meshgrid(*[one] * (K - 1), indexing="ij"), -1).reshape(-1, K - 1) for one in (line, share)]
        keep = grids[1].prod(1) > 1e-14
        self.problem, self.law, self.z, self.w = problem, law, grids[0][keep], grids[1].prod(1)[keep]

    def component(self, C: Array, mean: Array, label: float, v: Array) -> tuple[Array, Array, Array, float, Array]:
        inner = self.P.T @ C @ self.P
        values, vectors = np.linalg.eigh(inner)
        centred = self.z @ (vectors * np.sqrt(np.maximum(values, 0)) @ vectors.T)
        value, dlam, dv = self.law(mean + centred @ self.P.T, np.zeros((len(self.z), 0)), label, v)
        weighted = dlam * self.w[:, None]
        D = weighted.T @ centred @ np.linalg.pinv(inner, rcond=1e-13) @ self.P.T
        return D, weighted.T @ dlam, self.w @ dv, float(self.w @ value), weighted.sum(0)


class TwoReLUs(Reference):
    """The hinge loss of two ReLU units, by panels between its kinks: in one field, and in the other given the first."""

    def __init__(self, problem: ov.Problem, nodes: int = 40) -> None:
        self.problem, (self.x, self.share) = problem, np.polynomial.legendre.leggauss(nodes)

    def panels(self, edges: Array) -> tuple[Array, Array]:
        """Nodes (n, panels × nodes) and their Gaussian weights between places (n, edges) of a standard normal."""
        cuts = np.sort(np.clip(edges, -RADIUS, RADIUS), axis=1)
        half, middle = np.diff(cuts) / 2, (cuts[:, 1:] + cuts[:, :-1]) / 2
        z = (middle[:, :, None] + half[:, :, None] * self.x).reshape(len(edges), -1)
        w = (half[:, :, None] * self.share).reshape(len(edges), -1)
        return z, w * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)

    def component(self, C: Array, mean: Array, label: float, v: Array) -> tuple[Array, Array, Array, float, Array]:
        y = 1.0 if label > 0 else -1.0
        sd, along = float(np.sqrt(C[0, 0])), C[0, 1] / C[0, 0]
        rest = float(np.sqrt(max(C[1, 1] - along * C[0, 1], 1e-14)))
        ends, turn = [-RADIUS, RADIUS], 1 / (y * v[0])
        own = [*ends, *np.linspace(-6, 6, 7), -mean[0] / sd, (turn - mean[0]) / sd if turn > 0 else RADIUS]
        z, w = self.panels(np.array([own]))
        first = mean[0] + sd * z[0]
        middle = mean[1] + along * (first - mean[0])
        place = (1 - y * v[0] * np.maximum(first, 0)) / (y * v[1])
        place = np.where(place > 0, place, 0.0)
        spread = np.tile([*ends, *np.linspace(-5, 5, 3)], (len(first), 1))
        other, share = self.panels(np.column_stack([spread, -middle / rest, (place - middle) / rest]))
        h = np.stack([np.broadcast_to(first[:, None], other.shape), middle[:, None] + rest * other], -1).reshape(-1, 2)
        weight = (w[0][:, None] * share).ravel()
        out = np.maximum(h, 0)
        f = out @ v
        active = y * f < 1
        dlam = -y * v * (h > 0) * active[:, None]
        weighted = dlam * weight[:, None]
        D = weighted.T @ (h - mean) @ np.linalg.pinv(C, rcond=1e-13)
        dv = -y * (weight * active) @ out
        return D, weighted.T @ dlam, dv, float(weight @ np.maximum(1 - y * f, 0)), weighted.sum(0)


class ByFours:
    """The square loss of an activation in moments of at most four fields, each on a lattice of its own.

    With w = (v, −u), E[g'_k g'_l Δ²] is the sum of w_a w_b E[g'_k g'_l g_a g_b], and by Stein's lemma

        E[h_k g'_k g_a] = C_kk E[g''_k g_a] + C_ka E[g'_k g'_a].
    """

    name, gain, jumps, default_accuracy = "reference", 3.0, False, 1e-9

    def __init__(
        self, problem: ov.Problem, g: Callable[[Array], Array], dg: Callable[[Array], Array], u: Array, finer: int = 0
    ) -> None:
        self.problem, self.g, self.dg, self.u = problem, g, dg, u
        fields, sharpness = problem.student.units + problem.teacher_units, problem.student.g.sharpness  # type: ignore[union-attr]
        self.chosen = list(combinations(range(fields), min(fields, 4)))
        d = min(fields, 4)
        self.rule = FieldRule(
            [()] * d, finer + (1 if d < 4 else 4 - fields), sharpness=np.full(d, sharpness), shifted=True
        )

    def moments(self, C: Array, K: int) -> tuple[Array, Array, Array, Array]:
        """E[g g], E[g' g'], E[g'' g] and E[g' g' g g]."""
        F = len(C)
        both, slopes, bends, fours = np.zeros((F, F)), np.zeros((K, F)), np.zeros((K, F)), np.zeros((K, K, F, F))
        for some in self.chosen:
            at, own = list(some), [k for k in some if k < K]
            L = np.linalg.cholesky(C[np.ix_(at, at)] + 1e-15 * np.eye(len(at)))
            z, w, _ = self.rule.points(L)
            h = z @ L.T
            G, dG = self.g(h), self.dg(h)
            both[np.ix_(at, at)] = (G * w[:, None]).T @ G
            n = len(own)
            slopes[np.ix_(own, at)] = (dG[:, :n] * w[:, None]).T @ dG
            stein = (h[:, :n] * dG[:, :n] * w[:, None]).T @ G
            bends[np.ix_(own, at)] = (stein - C[np.ix_(own, at)] * slopes[np.ix_(own, at)]) / np.diag(C)[own][:, None]
            pairs = (G[:, :, None] * G[:, None]).reshape(len(w), -1)
            outer = (dG[:, :n, None] * dG[:, None, :n] * w[:, None, None]).reshape(len(w), -1)
            fours[np.ix_(own, own, at, at)] = (outer.T @ pairs).reshape(n, n, len(at), len(at))
        return both, slopes, bends, fours

    def __call__(self, C: Array, v: Array, means: Array | None = None) -> Averages:
        K, w = v.size, np.concatenate([v, -self.u])
        both, slopes, bends, fours = self.moments(C, K)
        D = v[:, None] * w * slopes
        D[:, :K] += np.diag(v * (bends @ w))
        S = np.outer(v, v) * (fours @ w @ w + self.problem.label_noise**2 * slopes[:, :K])
        return Averages(D, S, both[:K] @ w, 0.5 * float(w @ both @ w), np.zeros((K, 0)))
