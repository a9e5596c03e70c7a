"""Population Hessian and G-matrix of a network on Gaussian inputs and mixtures, exact at any noise.

Both are made of averages E[f x xᵀ] with a scalar weight f of the fields and the label: f = ∂²loss/∂λ_i∂λ_j in block
(w_i, w_j) of the Hessian, f = δ_i δ_j, δ = ∂loss/∂λ, in that of the G-matrix, the mean outer product of gradients. For
isotropic noise, with U an orthonormal basis of the span of students, teachers and means and u = Uᵀx (`span`),

    E[f x xᵀ] = U E[f u uᵀ] Uᵀ + bulk (I − U Uᵀ),      bulk = Σ_c p_c s_c E_c[f]:

at most K + M + P outliers, the eigenvalues of a small matrix, and one bulk eigenvalue. The other blocks are averages
over u and the fields alone: E[∂²loss/∂λ_i∂v_j x], E[∂²loss/∂v_i∂v_j], and δ_i γ_j, γ_i γ_j with γ = ∂loss/∂v. For small
noise the block is close to Σ_c p_c E_c[f] μ_c μ_cᵀ (`leading`), with as many outliers as the means have dimensions.

Where covariances Σ_c are any matrices the bulk is one as well (`given_fields`): with Σ'_c what is left of Σ_c given the
fields, the block is B = Σ_c p_c E_c[f] Σ'_c and a matrix of rank P (K + M + 1) at most, and outliers are eigenvalues
outside the range of those of B.

Derivatives are with respect to w = W/√N and v. Weight decay is not included. Where an activation has a kink, as ReLU
at zero, second derivatives are those almost everywhere, as in the matrices of samples that these are the limit of.

Reference: Ben Arous, Gheissari, Huang and Jagannath, High-dimensional SGD aligns with emerging outlier eigenspaces,
arXiv:2310.03010, Lemmas 3.1 to 3.3 and 4.1 to 4.5, which are expansions of these averages.

>>> import overlaps as ov
>>> problem = ov.Problem(
...     data=ov.GaussianMixture(means=3, variance=0.1), student=ov.Softmax(3), loss="cross-entropy",
...     algorithm=ov.OnlineSGD(1.0),
... )
>>> origin = ov.Start.from_overlaps(problem, Q=[[0.0] * 3] * 3)
>>> block = population(problem, origin).block(0)  # all probabilities are 1/3: (2/9) (Σ_c μ_c μ_cᵀ/3 + I/10)
>>> (9 / 2 * block.values).round(6).tolist(), round(9 / 2 * block.bulk, 6)
([0.433333, 0.433333, 0.433333], 0.1)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..averages.quadrature import LossQuadrature
from ..compiled.functions import loop
from ..interface.checks import checked, whole
from ..interface.errors import InputError, NumericalError, shown, unknown
from ..network.architectures import Softmax
from ..problem.start import Start
from ..problem.statement import Problem
from .batch import by_law
from .given_fields import LARGEST, GivenComponent, GivenFields
from .population_block import PopulationBlock
from .span import Component, Span, law_of_inputs

Array = NDArray[np.float64]
Kind = Literal["hessian", "gradient"]
KINDS = ("hessian", "gradient")
CHUNK = 2**22  # numbers of second derivatives held at a time
WORST = 1e-2  # accuracy beyond which a result that does not tell its own is refused
Result = TypeVar("Result")


@loop()
def _curvatures(curvature, H, K, c, v, u, ll, lv, vv):  # pragma: no cover - compiled
    one, two, three = np.empty((K, K)), np.empty((K, K)), np.empty((K, K))
    for s in range(H.shape[0]):
        curvature(H[s, :K], H[s, K:], c, v, u, one, two, three)
        pair = 0
        for i in range(K):
            for j in range(K):
                lv[s, i, j] = two[i, j]
            for j in range(i, K):
                ll[s, pair] = one[i, j]
                vv[s, pair] = three[i, j]
                pair += 1


@loop()
def _products(kernel, H, K, c, v, u, ll, lv, vv):  # pragma: no cover - compiled
    dlam, dv = np.empty(K), np.empty(K)
    for s in range(H.shape[0]):
        kernel(H[s, :K], H[s, K:], c, v, u, 0.0, dlam, dv)
        pair = 0
        for i in range(K):
            for j in range(K):
                lv[s, i, j] = dlam[i] * dv[j]
            for j in range(i, K):
                ll[s, pair] = dlam[i] * dlam[j]
                vv[s, pair] = dv[i] * dv[j]
                pair += 1


def sample_weights(
    problem: Problem, start: Start, kind: Kind, part: Component | GivenComponent
) -> tuple[Array, Array, Array]:
    """Weights f at the nodes of a component.

    Those of blocks (w_i, w_j) and (v_i, v_j), first and last, for the pairs i ≤ j in the order of `np.triu_indices`,
    (points, pairs); those of (w_i, v_j), (points, K, K).
    """
    K, points = problem.student.units, len(part.fields)
    pairs = K * (K + 1) // 2
    ll, lv, vv = np.empty((points, pairs)), np.empty((points, K, K)), np.empty((points, pairs))
    v, u = start.v.copy(), np.ascontiguousarray(start.u)
    run, function = (_curvatures, problem.curvature) if kind == "hessian" else (_products, problem.gradient)
    run(function, part.fields, K, part.label, v, u, ll, lv, vv)
    return ll, lv, vv


def _square(pairs: Array, K: int) -> Array:
    """Values for the pairs i ≤ j on the first axis, as symmetric in the two first axes, (K, K, ...)."""
    upper = np.triu_indices(K)
    full = np.empty((K, K, *pairs.shape[1:]))
    full[upper] = full[upper[::-1]] = pairs
    return full


@dataclass(frozen=True, eq=False)
class PopulationMatrix:
    """The population Hessian or G-matrix at given weights or overlaps, block by block; made by `population`.

    Attributes
    ----------
    kind: "hessian" or "gradient".
    cores: E[f u uᵀ] of block (w_i, w_j), (K, K, r, r); where noise is not isotropic u is x itself, and r = N.
    weights: p_c E_c[f] of block (w_i, w_j), (components, K, K).
    crossed: E[f u] of block (w_i, v_j), (K, r, K), or None without a second layer.
    readout: block (v, v), (K, K), or None without a second layer.
    span: the basis, with the coordinates of students and means.
    accuracy: largest change of an entry when the rule of integration is made coarser, in units of the largest entry.
    """

    kind: Kind
    cores: Array
    weights: Array
    crossed: Array | None
    readout: Array | None
    span: Span | GivenFields
    accuracy: float

    def block(self, i: int | Literal["v"], j: int | Literal["v"] | None = None) -> PopulationBlock:
        """Block (w_i, w_j), by default (w_i, w_i); "v": block (v, v), whose basis is the identity.

        Its bulk is one eigenvalue where noise is isotropic, and has edges otherwise.
        """
        j = i if j is None else j
        if isinstance(i, str) or isinstance(j, str):
            check_readout(i, j)
            readout = self._second_layer(self.readout)
            return PopulationBlock(readout, 0.0, np.eye(len(readout)), len(readout))
        i, j = self._student(i), self._student(j)
        bulk, noise = self.span.bulk(self.weights[:, i, j])
        return PopulationBlock(self.cores[i, j], bulk, self.span.basis, self.span.size, noise)

    def cross(self, i: int) -> Array:
        """Block (w_i, v), (N, K)."""
        crossed = self._second_layer(self.crossed)[self._student(i)]
        if self.span.basis is None:
            raise InputError(
                "start: a block of N rows needs weights, this start has overlaps only; use from_weights, or crossed"
            )
        return self.span.basis @ crossed

    def leading(self, i: int, j: int | None = None) -> PopulationBlock:
        """Σ_c p_c E_c[f] μ_c μ_cᵀ, what block (w_i, w_j) becomes as the noise vanishes."""
        i, j = self._student(i), self._student(i if j is None else j)
        means = self.span.means
        if not len(means):
            raise InputError("leading: these inputs have no means; it is for mixtures, use block")
        core = (means.T * self.weights[:, i, j]) @ means
        return PopulationBlock(core, 0.0, self.span.basis, self.span.size)

    def alignment_of_student(self, i: int, count: int) -> float:
        """ρ(w_i, span of the `count` eigenvectors of block (w_i, w_i) farthest from the bulk)."""
        return self.block(i).alignment(self.span.students[self._student(i)], count)

    def alignment_of_mean(self, mean: int, i: int, count: int) -> float:
        """ρ(μ, span of the `count` eigenvectors of block (w_i, w_i) farthest from the bulk)."""
        mean = whole("mean", mean, least=0, most=len(self.span.means) - 1)
        return self.block(i).alignment(self.span.means[mean], count)

    def _student(self, i: int) -> int:
        return whole("block", i, least=0, most=len(self.cores) - 1)

    def _second_layer(self, part: Array | None) -> Array:
        if part is None:
            raise InputError("block: softmax regression has no second layer; use the blocks (w_i, w_j)")
        return part

    def __repr__(self) -> str:
        K = len(self.cores)
        size = "infinite size" if self.span.size is None else f"N = {self.span.size}"
        units = f"{K} unit{'s' * (K != 1)}"
        inside = f"span of {self.span.rank}" if isinstance(self.span, Span) else "any covariances"
        return f"PopulationMatrix({self.kind}, {units}, {size}, {inside}; accuracy {self.accuracy:.1g})"


@checked
def population(problem: Problem, start: Start, kind: Kind = "hessian") -> PopulationMatrix:
    """The population Hessian, or G-matrix (``"gradient"``), at weights or overlaps.

    Parameters
    ----------
    problem: with Gaussian inputs or mixtures, of any loss; of rows of classes, the Gaussians that theory takes in their
        place.
    start: students and readouts; for isotropic inputs overlaps do, without weights there is everything but vectors in
        N dimensions. Other inputs need weights, and matrices of N x N for each pair of units.
    """
    check_kind(problem, kind)
    problem, start = by_law(problem, start)
    inside = law_of_inputs(problem, start)
    K, two_layers = problem.student.units, not isinstance(problem.student, Softmax)
    pairs = K * (K + 1) // 2
    if pairs * float(inside.rank) ** 2 > LARGEST:
        raise InputError(
            f"data: {pairs} blocks of {inside.rank} x {inside.rank} take {pairs * inside.rank**2 * 8e-9:.0f} GB; use "
            "predicted_outliers, which makes one block, or the matrices of a batch, ov.spectra.hessian"
        )

    def average(quadrature: LossQuadrature) -> list[Array]:
        cores, crossed = np.zeros((pairs, inside.rank, inside.rank)), np.zeros((K * K, inside.rank))
        weights, readout = [], np.zeros(pairs)
        for part in inside.components(quadrature):
            weights.append(np.zeros(pairs))
            for piece in pieces(part, K):
                ll, lv, vv = sample_weights(problem, start, kind, piece)
                weights[-1] += piece.weight * (piece.node_weights @ ll)
                cores += piece.weight * piece.second_moments(ll)
                if two_layers:
                    crossed += piece.weight * piece.first_moments(lv.reshape(-1, K * K))
                    readout += piece.weight * (piece.node_weights @ vv)
        return [cores, np.array(weights), crossed, readout]

    (cores, weights, crossed, readout), accuracy = refined(
        average, LossQuadrature(problem, start.u, all_fields=True), _difference
    )
    cores, weights = _square(cores, K), _square(weights.T, K).transpose(2, 0, 1)
    if not two_layers:
        return PopulationMatrix(kind, cores, weights, None, None, inside, accuracy)
    crossed = crossed.reshape(K, K, inside.rank).swapaxes(1, 2)
    return PopulationMatrix(kind, cores, weights, crossed, _square(readout, K), inside, accuracy)


@checked
def readout_block(problem: Problem, start: Start, kind: Kind = "hessian") -> Array:
    """Block (v, v) alone, (K, K), to the accuracy of `population`; refused where that is worse than 1e-2."""
    check_kind(problem, kind)
    if isinstance(problem.student, Softmax):
        raise InputError("student: softmax regression has no second layer; use population(...).block(i)")
    problem, start = by_law(problem, start)
    inside = law_of_inputs(problem, start)
    K = problem.student.units

    def average(quadrature: LossQuadrature) -> list[Array]:
        total = np.zeros(K * (K + 1) // 2)
        for part in inside.components(quadrature):
            for piece in pieces(part, K):
                total += piece.weight * (piece.node_weights @ sample_weights(problem, start, kind, piece)[2])
        return [total]

    (readout,), accuracy = refined(average, LossQuadrature(problem, start.u, all_fields=True), _difference)
    check_accuracy("block (v, v)", accuracy)
    return _square(readout, K)


def check_kind(problem: Problem, kind: str) -> None:
    """Refuse a kind that does not exist, or one that this problem has no law for."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise unknown("kind", kind, KINDS)
    if kind == "gradient" and problem.label_noise:
        raise InputError("label_noise: the G-matrix is that of labels without noise; use label_noise=0, or the Hessian")


def pieces(part: Component | GivenComponent, K: int) -> list[Component | GivenComponent]:
    """The component in pieces whose second derivatives fit into memory."""
    step = max(1, CHUNK // (3 * K * K))
    cuts = [slice(first, first + step) for first in range(0, len(part.fields), step)]
    return [
        part._replace(nodes=part.nodes[cut], node_weights=part.node_weights[cut], fields=part.fields[cut])
        for cut in cuts
    ]


def check_readout(i: int | str, j: int | str) -> None:
    """Refuse a block with "v" that is not (v, v)."""
    if (i, j) == ("v", "v"):
        return
    unit = next((one for one in (i, j) if not isinstance(one, str)), "i")
    if "v" in (i, j) and unit != "i":
        raise InputError(f"block: ({i!r}, {j!r}) is a strip of K columns, no symmetric matrix; use cross({unit})")
    raise InputError(f"block: expected numbers of students, or 'v' for the readout, got {shown((i, j))}")


def check_accuracy(name: str, accuracy: float) -> None:
    """Refuse what refinement has not brought to 1e-2 within the budget of points."""
    if accuracy > WORST:
        raise NumericalError(
            f"{name}: averages over the fields still change by {accuracy:.1g} of their size at the finest rule; fields "
            "this large need more points: use smaller weights, or the matrices of a batch, ov.spectra.hessian",
            quantity=name,
            time=0.0,
        )


def refined(
    average: Callable[[LossQuadrature], Result],
    rule: LossQuadrature,
    difference: Callable[[Result, Result], float],
    target: float | None = None,
) -> tuple[Result, float]:
    """A result to the accuracy `target`, or the best within the budget of points, and the accuracy reached.

    Parameters
    ----------
    average: the result by a rule.
    rule: to begin with.
    difference: the relative difference of two results.
    target: what the rule is meant for by default.
    """
    target = rule.default_accuracy if target is None else target
    earlier = [average(rule.coarser())]
    if rule.gain <= 1:  # the error of random points is random: one difference may be small by chance
        earlier.insert(0, average(rule.coarser().coarser()))
    while True:
        found = average(rule)
        accuracy = max(1e-15, max(difference(found, other) for other in earlier))
        finer = rule.finer()
        if accuracy <= target or finer is None:
            return found, accuracy
        earlier, rule = [*earlier[1:], found], finer


def _difference(found: list[Array], other: list[Array]) -> float:
    """Largest difference of an entry, in units of the largest entry."""
    scale = max(float(np.abs(part).max(initial=0.0)) for part in found) or 1.0
    return max(float(np.abs(a - b).max(initial=0.0)) for a, b in zip(found, other, strict=True)) / scale
