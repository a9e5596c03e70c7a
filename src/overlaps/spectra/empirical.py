"""Empirical Hessian and G-matrix of a network: second moments of the inputs, weighted sample by sample.

The loss of a sample depends on the weights through the fields λ_i = w_i·x and on the readout v. Its derivatives with
respect to w = W/√N (rows of length O(1)) and v give, averaged over n samples (angle brackets),

    H_{w_i w_j} = ⟨a_ij x xᵀ⟩     H_{w_i v_j} = ⟨b_ij x⟩     H_vv = ⟨c⟩

with, for the Hessian of the mean loss, a = ∂²loss/∂λ∂λ, b = ∂²loss/∂λ∂v, c = ∂²loss/∂v∂v; and, for the G-matrix, the
mean outer product of the gradient with itself,

    a_ij = δ_i δ_j     b_ij = δ_i γ_j     c_ij = γ_i γ_j,     δ = ∂loss/∂λ, γ = ∂loss/∂v.

Products with all blocks w_i w_i are two products with X, Xᵀ (a ∘ (X V))/n. Weight decay β adds β to the diagonal of the
Hessian and is not included. Where an activation has a kink, as ReLU at zero, second derivatives are those almost
everywhere: what the kink itself contributes to the Hessian of the mean loss is left out, as in the paper.

Reference: Ben Arous, Gheissari, Huang and Jagannath, High-dimensional SGD aligns with emerging outlier eigenspaces,
arXiv:2310.03010, equation (2.2).

>>> import overlaps as ov
>>> from overlaps.spectra.batch import Batch
>>> problem = ov.Problem(
...     data=ov.GaussianMixture(means=3, variance=0.1), student=ov.Softmax(3), loss="cross-entropy",
...     algorithm=ov.OnlineSGD(1.0, decay=0.01),
... )
>>> start = ov.draw(problem, size=100, scale=0.1)
>>> H = hessian(problem, start, Batch.draw(problem, start, 4000))
>>> H
NetworkMatrix(hessian, 3 units x 100 inputs, 4000 samples)
>>> (9 / 2 * H.block(0).spectrum()[:4]).round(1).tolist()  # three outliers near p + s = 1/3 + 1/10
[0.4, 0.4, 0.4, 0.1]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..compiled.functions import loop
from ..interface.checks import checked, whole
from ..interface.errors import InputError
from ..network.architectures import Softmax
from ..network.losses import Loss
from ..problem.start import Start, check
from ..problem.statement import Problem
from .batch import Batch, check_inputs
from .operators import OperatorFamily, SymmetricOperator
from .population import check_readout

Array = NDArray[np.float64]
Members = NDArray[np.intp]
LARGEST = 4e8  # numbers of second derivatives kept, 3 GB
SMALL = 10**6  # multiplications in a product that BLAS makes without copying: twice as fast with few columns (measured)
LEAST, SLAB = 24, 64  # rows of the inputs in such a product: fewer cost calls, more do not stay in the cache


@loop()
def _curvatures(curvature, lam, nu, labels, v, u, ll, lv, vv):  # pragma: no cover - compiled
    one = np.empty(vv.shape)
    for s in range(labels.size):
        curvature(lam[s], nu[s], labels[s], v, u, ll[s], lv[min(s, len(lv) - 1)], one)
        vv += one


@loop()
def _own_curvatures(curvature, lam, nu, labels, v, u, units, a, vv):  # pragma: no cover - compiled
    ll, lv, one = np.empty((v.size, v.size)), np.empty((v.size, v.size)), np.empty((v.size, v.size))
    for s in range(labels.size):
        curvature(lam[s], nu[s], labels[s], v, u, ll, lv, one)
        for f in range(units.size):
            a[s, f] = ll[units[f], units[f]]
        vv += one


@loop()
def _gradients(kernel, lam, nu, labels, v, u, dlam, dv):  # pragma: no cover - compiled
    for s in range(labels.size):
        kernel(lam[s], nu[s], labels[s], v, u, 0.0, dlam[s], dv[s])


@dataclass(frozen=True, eq=False, repr=False)
class NetworkMatrix:
    """The Hessian or the G-matrix at given weights, from n samples; made by `hessian` and `gradient_matrix`.

    Units are numbered from 0, and "v" stands for the readout.

    Attributes
    ----------
    kind: "hessian" or "gradient".
    inputs: x in rows, (n, N).
    curvatures: a and b of a Hessian, each (n, K, K), or None; there is no b without a second layer.
    gradients: δ and γ of a G-matrix, each (n, K), or None.
    readout: ⟨c⟩, (K, K), or None where there is no second layer.
    trained: whether the readout is among the trained parameters.
    """

    kind: str
    inputs: Array
    curvatures: tuple[Array, Array | None] | None
    gradients: tuple[Array, Array] | None
    readout: Array | None
    trained: bool

    @property
    def units(self) -> int:
        """K."""
        per_sample = self.gradients if self.curvatures is None else self.curvatures
        assert per_sample is not None
        return per_sample[0].shape[1]

    def weights(self, i: int | list[int], j: int | list[int]) -> Array:
        """a_ij of every sample, (n,), or (n, pairs) for lists of units."""
        if self.curvatures is not None:
            return self.curvatures[0][:, i, j]
        assert self.gradients is not None
        return self.gradients[0][:, i] * self.gradients[0][:, j]

    def block(self, i: int | Literal["v"], j: int | Literal["v"] | None = None) -> SymmetricOperator:
        """Block w_i w_j (N, N), with j = i if it is not given, or for i = "v" that of the readout (K, K)."""
        j = i if j is None else j
        if isinstance(i, str) or isinstance(j, str):
            check_readout(i, j)
            return SymmetricOperator.from_matrix(self._second_layer(), f"{self.kind} vv")
        i, j = self._unit(i), self._unit(j)
        name, n, X = f"{self.kind} w{i}w{j}", len(self.inputs), self.inputs
        if self.gradients is not None and i == j and n < X.shape[1]:
            return SymmetricOperator.from_factor(self.gradients[0][:, i, None] / np.sqrt(n) * X, name)
        family = weighted_moments(X, self.weights([i], [j]), name)
        alone = np.zeros(1, np.intp)
        return SymmetricOperator(
            X.shape[1], lambda V: family.products(V[None], alone)[0], name, dense=lambda: self._dense(i, j)
        )

    @property
    def blocks(self) -> OperatorFamily:
        """The K blocks w_i w_i, whose products share those with the inputs."""
        return self.family(range(self.units))

    def family(self, units: Sequence[int]) -> OperatorFamily:
        """The blocks w_i w_i of these units."""
        chosen = [self._unit(i) for i in units]
        return weighted_moments(self.inputs, self.weights(chosen, chosen), f"{self.kind} blocks")

    def cross(self, i: int) -> Array:
        """Block w_i v, (N, K)."""
        return self._cross[self._unit(i)]

    @cached_property
    def whole(self) -> SymmetricOperator:
        """The matrix of all trained parameters in the order w_0, w_1, …, v; v only where it is trained."""
        n, N = self.inputs.shape
        K = self.units
        size = K * N + K * self.trained
        if self.gradients is not None and n < size and n * size <= LARGEST:
            delta, gamma = self.gradients
            rows = (delta[:, :, None] * self.inputs[:, None, :]).reshape(n, K * N)
            rows = np.concatenate([rows, gamma], axis=1) if self.trained else rows
            return SymmetricOperator.from_factor(rows / np.sqrt(n), f"whole {self.kind}")
        return SymmetricOperator(size, self._whole_product, f"whole {self.kind}", dense=self._whole_dense)

    def _whole_product(self, V: Array) -> Array:
        (n, N), K, width = self.inputs.shape, self.units, V.shape[1]
        first = V[: K * N].reshape(K, N, width)
        seen = self.inputs @ first.transpose(1, 0, 2).reshape(N, K * width)
        pulled = self._mixed(seen.reshape(n, K, width)).reshape(n, K * width)
        image = (self.inputs.T @ pulled / n).reshape(N, K, width).transpose(1, 0, 2)
        if not self.trained:
            return image.reshape(K * N, width)
        v, C = V[K * N :], self._cross
        second = np.einsum("inj,inb->jb", C, first, optimize=True) + self._second_layer() @ v
        return np.concatenate([(image + C @ v).reshape(K * N, width), second])

    def _mixed(self, fields: Array) -> Array:
        """Σ_j a_ij times fields (n, j, any) of every sample."""
        if self.curvatures is not None:
            return self.curvatures[0] @ fields
        assert self.gradients is not None
        delta = self.gradients[0][:, :, None]
        return delta * (delta * fields).sum(axis=1, keepdims=True)

    def _whole_dense(self) -> Array:
        N, K = self.inputs.shape[1], self.units
        A = np.empty((K * N + K * self.trained,) * 2)
        for i in range(K):
            at = slice(i * N, (i + 1) * N)
            for j in range(i + 1):
                A[at, j * N : (j + 1) * N] = A[j * N : (j + 1) * N, at] = self._dense(i, j)
            if self.trained:
                A[at, K * N :] = self._cross[i]
                A[K * N :, at] = self._cross[i].T
        if self.trained:
            A[K * N :, K * N :] = self._second_layer()
        return A

    def _dense(self, i: int, j: int) -> Array:
        weights, X = self.weights(i, j) / len(self.inputs), self.inputs
        if weights.min() >= 0:  # FᵀF costs half of Xᵀ F
            F = np.sqrt(weights)[:, None] * X
            return F.T @ F
        return X.T @ (weights[:, None] * X)

    @cached_property
    def _cross(self) -> Array:
        self._second_layer()
        if self.gradients is not None:
            b = self.gradients[0][:, :, None] * self.gradients[1][:, None, :]
        else:
            assert self.curvatures is not None and self.curvatures[1] is not None
            b = self.curvatures[1]
        n, K, _ = b.shape
        flat = self.inputs.T @ b.reshape(n, K * K) / n
        return np.ascontiguousarray(flat.reshape(-1, K, K).transpose(1, 0, 2))

    def _second_layer(self) -> Array:
        if self.readout is None:
            raise InputError("block: softmax regression has no second layer; ask for the blocks of its classes")
        return self.readout

    def _unit(self, i: Any) -> int:
        return whole("block", i, least=0, most=self.units - 1)

    def __repr__(self) -> str:
        n, N = self.inputs.shape
        units = f"{self.units} unit{'s' * (self.units != 1)}"
        return f"NetworkMatrix({self.kind}, {units} x {N} inputs, {n} sample{'s' * (n != 1)})"


def weighted_moments(X: NDArray[Any], weights: Array, name: str) -> OperatorFamily:
    """⟨a_f x xᵀ⟩ over the rows x of X (n, N), for the columns a_f of `weights` (n, members), in the precision of X."""
    n, N = X.shape
    scaled = np.ascontiguousarray(weights / n, dtype=X.dtype)

    def product(V: NDArray[Any], members: Members) -> NDArray[Any]:
        count, _, width = V.shape
        columns = V.transpose(1, 0, 2).astype(X.dtype, order="C", copy=False).reshape(N, count * width)
        own, image = scaled[:, members, None], np.zeros((count * width, N), X.dtype)
        for rows in _slabs(n, columns):
            seen = (X[rows] @ columns).reshape(-1, count, width)
            seen *= own[rows]
            # rows times X: faster than Xᵀ times columns, where these are few
            image += seen.reshape(-1, count * width).T @ X[rows]
        return image.reshape(count, width, N).swapaxes(1, 2)

    return OperatorFamily(N, weights.shape[1], product, name, dtype=X.dtype)


def _slabs(n: int, columns: NDArray[Any]) -> list[slice]:
    """Which of n rows to multiply with these columns at once."""
    rows = SMALL // max(columns.size, 1)
    rows = min(rows, SLAB) if rows >= LEAST else n
    return [slice(first, first + rows) for first in range(0, n, rows)]


@checked
def hessian(problem: Problem, start: Start, batch: Batch) -> NetworkMatrix:
    """The Hessian of the mean loss over `batch` at the weights of `start`, without weight decay."""
    return _at(problem, start, batch, "hessian")


@checked
def gradient_matrix(problem: Problem, start: Start, batch: Batch) -> NetworkMatrix:
    """The mean over `batch` of the gradient times its transpose (the G-matrix), without weight decay."""
    return _at(problem, start, batch, "gradient")


def _at(problem: Problem, start: Start, batch: Batch, kind: str) -> NetworkMatrix:
    check(problem, start)
    if start.student is None or start.teacher is None:
        raise InputError(
            "start: an empirical matrix needs weights; use draw or Start.from_weights (a population matrix needs none)"
        )
    check_batch(problem, batch, start.student.shape[1])
    fields = fields_of(batch.inputs, start.student), fields_of(batch.inputs, start.teacher)
    return _network_matrix(kind, problem, batch, fields, start.v, start.u)


def check_batch(problem: Problem, batch: Batch, size: int) -> None:
    """Refuse samples that the problem cannot read, or a problem that has no loss of a sample."""
    check_inputs(problem)
    if problem.label_noise > 0:
        raise InputError(
            f"label_noise: {problem.label_noise:g} of it changes every gradient, and spectra are those of the loss "
            "without noise; use the problem with label_noise=0"
        )
    n, N = batch.inputs.shape
    if size != N:
        raise InputError(f"inputs: expected samples of {size} entries, as the weights have, got {N}")
    K = problem.student.units
    if 2.0 * n * K * K > LARGEST:
        raise InputError(
            f"inputs: {n} samples of {K} units have {n * K * K * 16e-9:.0f} GB of second derivatives; use fewer samples"
        )
    read = problem.teacher is None or (isinstance(problem.loss, Loss) and problem.data.labelled)
    if read and batch.labels is None:
        raise InputError(
            "labels: expected one for every sample, as the loss of this problem reads them, got none; use "
            "Batch(inputs, labels=...), or Batch.draw"
        )
    if batch.labels is not None:
        problem.check_labels(np.unique(batch.labels).tolist())


def fields_of(X: NDArray[Any], W: Array) -> Array:
    """λ = W·x/√N of the rows x of X, made in their precision, for weights W (units, N): (n, units)."""
    columns = np.ascontiguousarray((W / np.sqrt(W.shape[1])).T, dtype=X.dtype)
    return np.concatenate([X[rows] @ columns for rows in _slabs(len(X), columns)]).astype(float, copy=False)


def own_weights(
    kind: str, problem: Problem, batch: Batch, fields: tuple[Array, Array], v: Array, u: Array, units: Sequence[int]
) -> tuple[Array, Array | None]:
    """a_ii of every sample for these units, (n, units), and ⟨c⟩ (K, K) or None; nothing is checked.

    The blocks w_i w_i and vv need no more than these, so the n K² numbers of a `NetworkMatrix` are not computed.
    """
    n, K = fields[0].shape
    layers = not isinstance(problem.student, Softmax)
    if kind == "gradient":
        delta, gamma = _sample_gradients(problem, batch, fields, v, u)
        return delta[:, units] ** 2, gamma.T @ gamma / n if layers else None
    a, c = np.empty((n, len(units))), np.zeros((K, K))
    # v is copied because a user's loss is differentiated by moving it
    _own_curvatures(problem.curvature, *fields, batch.own_labels, v.copy(), u, np.array(units), a, c)
    return a, c / n if layers else None


def _sample_gradients(
    problem: Problem, batch: Batch, fields: tuple[Array, Array], v: Array, u: Array
) -> tuple[Array, Array]:
    delta, gamma = np.empty(fields[0].shape), np.empty(fields[0].shape)
    _gradients(problem.gradient, *fields, batch.own_labels, v, u, delta, gamma)
    return delta, gamma


def _network_matrix(
    kind: str, problem: Problem, batch: Batch, fields: tuple[Array, Array], v: Array, u: Array
) -> NetworkMatrix:
    (n, K), trained = fields[0].shape, problem.student.train_readout
    layers = not isinstance(problem.student, Softmax)
    if kind == "gradient":
        delta, gamma = _sample_gradients(problem, batch, fields, v, u)
        readout = gamma.T @ gamma / n if layers else None
        return NetworkMatrix(kind, batch.inputs, None, (delta, gamma), readout, trained)
    a, b, c = np.empty((n, K, K)), np.empty((n if layers else 1, K, K)), np.zeros((K, K))
    _curvatures(problem.curvature, *fields, batch.own_labels, v.copy(), u, a, b, c)
    if not layers:
        return NetworkMatrix(kind, batch.inputs, (a, None), None, None, trained)
    return NetworkMatrix(kind, batch.inputs, (a, b), None, c / n, trained)
