"""The Gaussian averages that drive every scale, behind one function.

Given the covariance C of the fields h = (λ, ν), the equation of motion needs

    D = E[∂δ/∂h]      S = E[δ δᵀ]      E[∂loss/∂v]      error = E[loss]        with δ = ∂loss/∂λ.

In a mixture the fields of component c have covariance s_c C and a mean, and the averages over components are

    D = Σ_c p_c s_c E_c[∂δ/∂h]      S = Σ_c p_c s_c E_c[δ δᵀ]      E = (p_c E_c[δ])_c

For the square loss of a student and a teacher with erf, linear or ReLU units these are closed forms, with means or
without; for anything else they are quadratures. `gaussian_averages` picks, and says what it picked and how accurate it
is.

A way to evaluate them is a `Method`, made by `method_for`:

    how(C, v, means)        the averages at field covariance C, readout v and means of the fields
    how.errors(C, v, means) the generalisation error alone, for a batch
    how.check()             the same averages by a rule that is independent of this one and as accurate: a lattice that
                            is shifted and has other spacings, other panels, other random points. Two rules that are
                            refinements of each other may share an error; these do not, so twice their difference is
                            the error to state
    how.finer()             more accurate, or None at the end of the budget
    how.drawn(i)            of random points: the same averages by the i-th of many independent sets
    how.coarser()           less accurate and cheaper
    how.name                what it is, in words
    how.default_accuracy    the relative accuracy to ask for where the user names none
    how.gain                what a refinement gains at least on an integrand whose kinks are known; 1 for random points,
                            whose errors are random: they are judged by how independent sets of them differ
    how.jumps               whether averages jump a little when fields move, so that high-order steps do not pay
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..interface.checks import array, checked, positive
from ..interface.errors import InputError, NumericalError, shown
from ..network.architectures import Committee
from ..problem.statement import Problem
from .closed import FAMILIES, ClosedForm
from .fit_residual import Corrected
from .quadrature import LossQuadrature
from .random_sets import MANY, RandomPoints, half_width, set_of
from .relu_outputs import ReluOutputs
from .result import Averages
from .square_quadrature import SquareQuadrature
from .sum_form import SumForm

Method = ClosedForm | SumForm | SquareQuadrature | LossQuadrature


def method_for(
    problem: Problem, teacher_readout: NDArray[np.float64], force: str = "auto", accuracy: float = 0.0
) -> Method:
    """The way to evaluate the averages of `problem`: ``"auto"``, or force ``"closed"`` or ``"quadrature"``.

    accuracy: what is enough, as far as that decides; the best there is if it is left out.
    """
    if force not in ("auto", "closed", "quadrature"):
        raise InputError(f"method: expected 'auto', 'closed' or 'quadrature', got {shown(force)}")
    way = None if force == "quadrature" else _closed_form(problem, teacher_readout)
    if force == "closed" and not (isinstance(way, ClosedForm) or (isinstance(way, SumForm) and way.exact)):
        raise InputError(
            f"method: no closed form for the {problem.loss!r} loss with {problem.describe_networks()} (there is one "
            f"for the square loss of a student and a teacher with one activation: {', '.join(FAMILIES)}); use "
            "method='quadrature'"
        )
    if way is not None:
        return way
    square = isinstance(problem.student, Committee) and problem.teacher is not None and problem.loss == "square"
    if square and not problem.data.has_means and problem.data.components.weights.size == 1:
        return SquareQuadrature(problem, teacher_readout)
    kind = ReluOutputs if ReluOutputs.serves(problem, accuracy) else LossQuadrature
    return kind(problem, teacher_readout)


def _closed_form(problem: Problem, teacher_readout: NDArray[np.float64]) -> ClosedForm | SumForm | None:
    """The averages of the square loss in closed form, of the activations or of sums of error functions for them."""
    student, teacher, data = problem.student, problem.teacher, problem.data
    if not isinstance(student, Committee) or teacher is None or problem.loss != "square":
        return None
    if student.g == teacher.g and student.activation in FAMILIES:
        return ClosedForm(student.g.name, teacher_readout, problem.label_noise, components=data.components)
    if not data.has_means and SumForm.serves(student.g, teacher.g):
        return SumForm(student.g, teacher.g, teacher_readout, problem.label_noise, data.components)
    return None


def judge_of_fit(problem: Problem, how: SumForm) -> SquareQuadrature | LossQuadrature | Corrected:
    """What tells how far averages of a fit are from those of the activation: it knows the activation itself."""
    judge = method_for(problem, how.teacher_readout, "quadrature")
    assert not isinstance(judge, (ClosedForm, SumForm))
    return Corrected(problem, how) if is_random(judge) else judge


def independent(how: Method) -> Method:
    """The rule by which averages are judged: independent, and finer by a step where there is a finer one.

    Two coarse lattices that do not resolve an integrand may be off by about the same; one that is finer differs by what
    the coarser one is off.
    """
    finer = None if isinstance(how, SumForm) else how.finer()
    return (how if finer is None else finer).check()


def is_random(how: Method) -> TypeGuard[RandomPoints]:
    """Whether these averages are of random points, and so one of many independent sets."""
    return how.gain <= 1


@dataclass(frozen=True)
class GaussianAverages(Averages):
    """Averages with their pedigree: how they were computed and their measured error."""

    method: str = ""
    accuracy: dict[str, float] = field(default_factory=dict)


@checked
def gaussian_averages(
    problem: Problem,
    covariance: ArrayLike,
    student_readout: Sequence[float] | NDArray[np.float64] | None = None,
    teacher_readout: Sequence[float] | NDArray[np.float64] | None = None,
    method: str = "auto",
    *,
    means: ArrayLike | None = None,
) -> GaussianAverages:
    """Averages of `problem` for fields (λ, ν) ~ N(0, covariance), or N(means_c, s_c covariance) in component c.

    Parameters
    ----------
    covariance: (K+M, K+M), students first.
    student_readout, teacher_readout: (K,) and (M,); those of the problem by default.
    method: ``"auto"`` (closed form where there is one), ``"closed"`` or ``"quadrature"``.
    means: of the fields in each component of a mixture, (K+M, P).

    Returns
    -------
    D (K, K+M), S (K, K), dv (K,), error, E (K, P), with `method` and, per quantity, the measured `accuracy`:
    twice the largest difference to an independent rule, of fits to averages of the activation itself; random points are
    averaged over `random_sets`, and have theirs.
    """
    if problem.learns_rows:
        raise InputError(
            "data: labels of rows have no Gaussian average; use those of problem.linear_equivalent, or of a classifier "
            "problem.class_equivalent, which theory takes"
        )
    if not problem.data.one_covariance:
        raise InputError(
            "variance: one per component and level gives every component a covariance of its own; give one number per "
            "component, or use solve"
        )
    k, m = problem.student.units, problem.teacher_units
    c = positive("covariance", covariance, k + m)
    v = problem.student.readouts if student_readout is None else array("student_readout", student_readout, (k,))
    u = problem.teacher_readouts if teacher_readout is None else array("teacher_readout", teacher_readout, (m,))
    how = method_for(problem, u, method)
    components = problem.data.components.weights.size if problem.data.has_means else 0
    if means is None and components:
        raise InputError(
            f"means: the inputs have {components} means; give those of the fields, ({k + m}, {components})"
        )
    at = np.zeros((k + m, 0)) if means is None else array("means", means, (k + m, components))
    with np.errstate(over="ignore", invalid="ignore"):  # overflow is refused below
        if is_random(how):
            found, random = [set_of(how, i)(c, v, at) for i in range(MANY)], True
        elif isinstance(how, SumForm) and not how.exact:
            found, random = [how(c, v, at), _without_fit(problem, how, c, v)], False
        else:
            found, random = [how(c, v, at), independent(how)(c, v, at)], False
        other = _with_other_values(problem, c, v, u, method)
    # rounding of a nearly singular covariance moves its factor, and with it the fields, by as much as this
    closed = isinstance(how, (ClosedForm, SumForm))
    least = 1e-15 if closed else 2e-14 if not _is_singular(c) else 1e-8  # 2e-14: of sums over many points
    accuracy: dict[str, float] = {}
    values: dict[str, NDArray[np.float64]] = {}
    for name in ("D", "S", "dv", "error", "E"):
        x = np.array([np.asarray(getattr(one, name)) for one in found])
        if not np.isfinite(x).all():
            raise NumericalError(f"{name}: larger than any floating-point number", quantity=name, time=0.0)
        values[name] = x.mean(0) if random else x[0]
        off = half_width(x) if random else 2 * np.abs(x[0] - x[1])
        if other is not None:
            off = off + 2 * np.abs(values[name] - np.asarray(getattr(other, name)))
        accuracy[name] = max(least * max(1.0, float(np.abs(x).max(initial=0.0))), float(off.max(initial=0.0)))
    D, S, dv, error, E = values.values()
    return GaussianAverages(D, S, dv, float(error), E, how.name, accuracy)


def _with_other_values(
    problem: Problem, C: NDArray[np.float64], v: NDArray[np.float64], u: NDArray[np.float64], method: str
) -> Averages | None:
    """The averages with another number of values of the variance, where inputs have heavy tails; otherwise None."""
    if not problem.data.tails:
        return None
    return method_for(replace(problem, data=problem.data.other_values), u, method)(C, v, np.zeros((len(C), 0)))


def _without_fit(problem: Problem, how: SumForm, C: NDArray[np.float64], v: NDArray[np.float64]) -> Averages:
    """The averages of the activations that were fitted, by the coarsest rule that is more accurate than the fit."""
    no_means = np.zeros((len(C), 0))
    judge, fit = judge_of_fit(problem, how), how(C, v)
    found = judge(C, v, no_means)
    if isinstance(judge, Corrected):
        return found
    while _apart(judge.check()(C, v, no_means), found) > _apart(fit, found) / 4:
        judge = judge.finer()
        if judge is None:
            break
        found = judge(C, v, no_means)
    return found


def _apart(one: Averages, other: Averages) -> float:
    """Largest relative difference of two averages."""
    pairs = [(np.asarray(getattr(one, n)), np.asarray(getattr(other, n))) for n in ("D", "S", "dv", "error")]
    return max(float(np.abs(a - b).max() / max(np.abs(a).max(), 1e-3)) for a, b in pairs)


def _is_singular(C: NDArray[np.float64]) -> bool:
    """Whether some combination of the fields does not vary, but for rounding."""
    sd = np.sqrt(np.maximum(np.diag(C), 0.0))
    R = C / np.outer(np.where(sd > 0, sd, 1.0), np.where(sd > 0, sd, 1.0))
    return bool(np.linalg.eigvalsh(R).min(initial=1.0) < 1e-13)


__all__ = [
    "Averages",
    "ClosedForm",
    "GaussianAverages",
    "Method",
    "SumForm",
    "gaussian_averages",
    "independent",
    "is_random",
    "judge_of_fit",
    "method_for",
]
