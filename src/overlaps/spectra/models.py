"""Spectra of any model that is given as functions of its parameters.

For a loss L(θ) = mean over samples of l_s(θ), θ a vector of p parameters,

    Hessian ∇²L(θ)        gradient matrix G(θ) = mean_s ∇l_s(θ) ∇l_s(θ)ᵀ

are operators on R^p, their blocks operators on the parameters of, say, one layer. `Model.check` compares the functions
with each other by central differences, since a wrong derivative gives a spectrum that looks like any other.

Functions that return float32 are held to what single precision can do: Hessians symmetric to 1e-5, eigenpairs to 1e-4,
derivatives to 1e-3. θ is given to all functions in double precision.

A network with two tanh units and a linear output, four samples, squared loss:

>>> import numpy as np
>>> X, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]]), np.array([1.0, -1.0, 0.5, 2.0])
>>> def parts(theta):
...     W, v = theta[:4].reshape(2, 2), theta[4:]
...     h = np.tanh(X @ W.T)
...     J = np.hstack([(((1 - h**2) * v)[:, :, None] * X[:, None, :]).reshape(4, 4), h])
...     return v, h, h @ v - y, J
>>> def gradients(theta):
...     v, h, error, J = parts(theta)
...     return error[:, None] * J
>>> def hessian_product(theta, u):
...     v, h, error, J = parts(theta)
...     a, b = X @ u[:4].reshape(2, 2).T, error[:, None] * (1 - h**2)
...     first = (b * (u[4:] - 2 * v * h * a)).T @ X
...     return (J.T @ (J @ u) + np.r_[first.ravel(), (b * a).sum(axis=0)]) / 4
>>> model = Model(
...     loss=lambda theta: np.mean(parts(theta)[2] ** 2) / 2,
...     gradient=lambda theta: gradients(theta).mean(axis=0),
...     hessian_product=hessian_product,
...     gradients=gradients,
... )
>>> theta = np.array([0.5, -0.3, 0.2, 0.8, 1.0, -1.0])
>>> model.check(theta)
>>> model.hessian(theta)
SymmetricOperator(hessian, 6 x 6)
>>> first_layer = model.hessian(theta, block=slice(0, 4))
>>> first_layer.spectrum().round(4).tolist()
[1.1004, 0.979, 0.336, -0.2415]
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..interface.checks import array
from ..interface.errors import InputError, shown
from .operators import SymmetricOperator, check_symmetric, returned

Array = NDArray[np.float64]
Block = slice | ArrayLike | None
Precision = type[np.float32] | type[np.float64]
DIRECTIONS = 4  # random directions in which derivatives are compared
AGREEMENT = {np.float64: 1e-4, np.float32: 1e-3}  # relative difference beyond which a derivative is wrong
MEAN = {np.float64: 1e-9, np.float32: 1e-4}  # relative difference of the gradient from the mean of those of samples


@dataclass(frozen=True, eq=False)
class Model:
    """A loss and its derivatives at parameters θ (p,).

    Attributes
    ----------
    loss: θ -> float.
    gradient: θ -> ∇L, (p,).
    hessian_product: (θ, u (p,)) -> ∇²L u, (p,).
    gradients: θ -> ∇l_s for every sample, (samples, p); needed for the gradient matrix only.
    """

    loss: Callable[[Array], float]
    gradient: Callable[[Array], ArrayLike]
    hessian_product: Callable[[Array, Array], ArrayLike]
    gradients: Callable[[Array], ArrayLike] | None = None

    def __post_init__(self) -> None:
        for name, arguments in (("loss", 1), ("gradient", 1), ("hessian_product", 2), ("gradients", 1)):
            function = getattr(self, name)
            if name != "gradients" or function is not None:
                _check_function(name, function, ("theta", "u")[:arguments])

    def hessian(self, theta: ArrayLike, block: Block = None) -> SymmetricOperator:
        """∇²L(θ), or its block on some parameters: a slice, or their positions, in the order given."""
        at = _parameters(theta)
        where = _positions(block, at.size)

        def product(V: Array) -> Array:
            wide = np.zeros((V.shape[1], at.size))
            wide[:, where] = V.T
            columns = [self._product(at, u) for u in wide]
            return np.array(columns).reshape(-1, at.size)[:, where].T

        dtype = _precision(self.hessian_product(at.copy(), np.zeros(at.size)))
        return SymmetricOperator(where.size, product, "hessian", dtype=dtype)

    def gradient_matrix(self, theta: ArrayLike, block: Block = None) -> SymmetricOperator:
        """G(θ), or its block; `eigenpairs` go by the Gram matrix of the samples where these are few."""
        at = _parameters(theta)
        each = self._each(at)[:, _positions(block, at.size)]
        return SymmetricOperator.from_factor(each / np.sqrt(len(each)), "gradient matrix")

    def check(self, theta: ArrayLike, *, seed: int = 0) -> None:
        """Refuse functions that contradict each other at θ; better a random θ than zero, where much vanishes.

        The gradient against differences of the loss, Hessian products against differences of the gradient, both in four
        random directions and to 1e-4; the Hessian's symmetry, and the mean of `gradients` against `gradient`, to 1e-9.
        Where one of the functions returns float32 it is 1e-3, 1e-5 and 1e-4, beyond what rounding does to differences.
        """
        at = _parameters(theta)
        rng = np.random.default_rng(seed)
        u = np.zeros(at.size)
        functions = self.loss(at.copy()), self.gradient(at.copy()), self.hessian_product(at.copy(), u)
        dtype = min((_precision(result) for result in functions), key=lambda one: np.finfo(one).bits)
        for _ in range(DIRECTIONS):
            u = rng.standard_normal(at.size)
            _compare("gradient", "loss", self._loss, self._gradient(at) @ u, at, u, dtype)
            _compare("hessian_product", "gradient", self._gradient, self._product(at, u), at, u, dtype)
        check_symmetric(self.hessian(at), seed=seed)
        if self.gradients is not None:
            each, mean = self._each(at), self._gradient(at)
            off, size = np.linalg.norm(each.mean(axis=0) - mean), np.sqrt(np.mean(np.sum(each**2, axis=1)))
            if off > MEAN[dtype] * max(size, np.linalg.norm(mean)):
                raise InputError(
                    f"gradients: expected their mean to be the gradient, got a difference of {off:.2g} where samples "
                    f"have gradients of {size:.2g}; the loss is the mean over samples, penalties are in all or in none"
                )

    def _loss(self, theta: Array) -> Array:
        return returned(self.loss(theta.copy()), (), "loss")

    def _gradient(self, theta: Array) -> Array:
        return returned(self.gradient(theta.copy()), theta.shape, "gradient")

    def _product(self, theta: Array, u: Array) -> Array:
        return returned(self.hessian_product(theta.copy(), u.copy()), theta.shape, "hessian_product")

    def _each(self, theta: Array) -> Array:
        if self.gradients is None:
            raise InputError(
                "gradients: the gradient matrix needs gradients of every sample, got None; give Model(gradients=)"
            )
        each = np.asarray(self.gradients(theta.copy()))
        if each.ndim != 2 or not len(each):
            raise InputError(f"gradients: expected shape (samples, {theta.size}), got {each.shape}")
        return returned(each, (len(each), theta.size), "gradients")


def _compare(
    name: str, of: str, function: Callable[[Array], Array], claimed: Array, at: Array, u: Array, dtype: Precision
) -> None:
    """Refuse a derivative `claimed` along u that central differences contradict by more than their own error."""
    eps = float(np.finfo(dtype).eps)
    # truncation and rounding are alike for eps^(1/3); u has length √p: halfway between one parameter moved and all
    step = eps ** (1 / 3) / at.size**0.25 * max(1.0, float(np.abs(at).max(initial=0.0)))

    def slope(h: float) -> Array:
        return (function(at + h * u) - function(at - h * u)) / (2 * h)

    found, coarse = slope(step), slope(2 * step)
    rounding = 100 * eps * np.linalg.norm(function(at)) / step
    off, size = float(np.linalg.norm(found - claimed)), float(np.linalg.norm(found))
    if off > AGREEMENT[dtype] * size + 4 * float(np.linalg.norm(found - coarse)) + rounding:
        raise InputError(
            f"{name}: expected the derivative of {of}, {size:.6g} along a random direction by central differences, got "
            f"{np.linalg.norm(claimed):.6g}, {off:.2g} away; correct {name} or {of}"
        )


def _parameters(theta: ArrayLike) -> Array:
    at = array("theta", theta, (None,))
    if not at.size:
        raise InputError("theta: expected at least one parameter, got none")
    return at


def _precision(result: ArrayLike) -> Precision:
    """float32 for what was returned in single precision or less, or else float64."""
    dtype = np.asarray(result).dtype
    return np.float32 if dtype in (np.float16, np.float32) else np.float64


def _check_function(name: str, function: object, arguments: tuple[str, ...]) -> None:
    expected = f"expected a function of ({', '.join(arguments)})"
    if not callable(function):
        raise InputError(f"{name}: {expected}, got {shown(function)}")
    try:
        signature = inspect.signature(function)
    except ValueError:  # the signature of some compiled functions is not known
        return
    try:
        signature.bind(*arguments)
    except TypeError:
        raise InputError(f"{name}: {expected}, got one of {signature}; wrap it in such a function") from None


def _positions(block: Block, parameters: int) -> NDArray[np.intp]:
    """Positions of a block among the parameters, each once."""
    every = np.arange(parameters)
    if block is None:
        return every
    try:
        where = every[block if isinstance(block, slice) else np.asarray(block)]
    except IndexError:
        raise InputError(f"block: expected a slice or positions below {parameters}, got {shown(block)}") from None
    if where.ndim != 1 or not where.size or np.unique(where).size < where.size:
        raise InputError(f"block: expected at least one of {parameters} parameters, each once, got {shown(block)}")
    return where
