"""A learning problem, stated once: data, teacher, student, loss and algorithm.

>>> import overlaps as ov
>>> problem = ov.Problem(
...     data=ov.GaussianInputs(spectrum=ov.PowerLaw(levels=10, exponent=0.25)),
...     teacher=ov.Committee(units=4),
...     student=ov.Committee(units=4),
...     algorithm=ov.OnlineSGD(rate=0.1),
... )
>>> ov.Problem.from_toml(problem.to_toml()) == problem
True
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from ..algorithms import ALGORITHMS, FullBatch, GiantStep, GradientFlow, MultiPass, OnlineSGD, Update
from ..algorithms.schedules import SCHEDULES
from ..algorithms.schedules.definition import as_schedule
from ..compiled.named import named
from ..data import (
    MODELS,
    SPECTRA,
    GaussianClasses,
    GaussianInputs,
    GaussianMixture,
    HiddenManifold,
    LatentMixture,
    Samples,
    StudentInputs,
)
from ..interface import spec
from ..interface.checks import checked, number
from ..interface.errors import InputError, shown
from ..network.activations import Activation, activation
from ..network.architectures import Committee, Softmax
from ..network.losses import CrossEntropy, Loss, OutputLoss, check_gradient, known_kinks, loss
from .origin import largest_pull
from .tails import check_noise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROLES: spec.Roles = {
    "data": tuple(sorted(MODELS, key=lambda kind: kind is not GaussianInputs)),  # the first is the usual one of a spec
    "latent": (LatentMixture,),
    "spectrum": SPECTRA,
    "teacher": (Committee,),
    "student": (Committee, Softmax),
    "algorithm": tuple(sorted(ALGORITHMS, key=lambda kind: kind is not OnlineSGD)),
    "rate": SCHEDULES,
    "readout_rate": SCHEDULES,
}


def _known(part: str, name: str, student: str | None, teacher: str | None) -> Any:
    """A part of the loss of that name for committees of activations of these names, compiled."""
    return loss(name).compiled(part, *(None if g is None else activation(g) for g in (student, teacher)))


class PlainSGD(NamedTuple):
    """Constant rates of both layers, and the decay."""

    rate: float
    readout_rate: float
    decay: float


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is learned, by what, and how; checked when built.

    Parameters
    ----------
    data: what inputs look like.
    teacher: the network that labels them, reading the same inputs (of a `HiddenManifold` the latent); None where the
        labels are those of a mixture.
    student: the network that learns.
    algorithm: how it learns.
    loss: a name, ``"square"``, of the teacher's output or the label; ``"logistic"`` or ``"hinge"``, for labels 0 and 1,
        or −1 and 1;
        ``"cross-entropy"``, for `Softmax`; or a `Loss` written as functions of the fields.
    label_noise: standard deviation of the Gaussian noise added to the target (square loss);
        the generalisation `error` does not count it.
    """

    data: GaussianInputs | Samples | GaussianMixture | GaussianClasses | HiddenManifold | StudentInputs
    teacher: Committee | None = None
    student: Committee | Softmax
    algorithm: OnlineSGD | MultiPass | GradientFlow | FullBatch
    loss: str | Loss = "square"
    label_noise: float = 0.0

    def __post_init__(self) -> None:
        for name in ("data", "teacher", "student", "algorithm"):
            value = getattr(self, name)
            if name == "teacher" and value is None:
                if not self.data.labelled:
                    raise InputError(
                        "teacher: these inputs carry no labels, so a teacher must give them; pass "
                        "teacher=Committee(...), data=GaussianMixture(...), or Samples with labels"
                    )
            elif not isinstance(value, ROLES[name]):
                wanted = " or ".join(kind.__name__ for kind in ROLES[name])
                hint = "; giant steps are for overlaps.giant_step" if isinstance(value, GiantStep) else ""
                raise InputError(f"{name}: expected {wanted}, got {shown(value)}{hint}")
        if self.teacher is not None and self.teacher.train_readout:
            raise InputError("teacher: a teacher does not learn; set train_readout on the student")
        if self.algorithm.readout_rate is not None and not self.student.train_readout:
            raise InputError(
                "readout_rate: has no effect on a fixed readout; set train_readout=True on the student or drop it"
            )
        object.__setattr__(self, "label_noise", number("label_noise", self.label_noise, least=0))
        if self.learns_rows:
            self._check_rows()
        self.algorithm.check_problem(self.data, self.student.train_readout)
        self._check_loss()
        check_noise(self)
        self._warn_of_decay()

    def _check_rows(self) -> None:
        """Labelled rows bring their targets with them: the square loss learns numbers, all losses learn classes."""
        if self.teacher is not None:
            raise InputError("teacher: these rows carry labels; drop the teacher, or build Samples without labels")
        if self.label_noise:
            raise InputError("label_noise: these rows have labels, which are learned as they are; use label_noise=0")
        data: Any = self.data
        if not data.classes and (self.loss != "square" or isinstance(self.student, Softmax)):
            raise InputError(
                f"loss: real labels of rows are learned by the square loss of a Committee, got {shown(self.loss)} with "
                f"{type(self.student).__name__}; use loss='square' and Committee, or pass classes as whole numbers or "
                "text"
            )
        if self.loss == "square":
            _ = data.targets  # which refuses more than two classes

    def _check_loss(self) -> None:
        labels = sorted(set((self.class_targets if self.classifies_rows else self.data.components.labels).tolist()))
        law = self.law
        if isinstance(law, Loss):
            if self.label_noise:
                raise InputError(
                    "label_noise: a user-written loss sees fields, not labels, so noise cannot be added for it; "
                    "use loss='square', or label_noise=0"
                )
            check_gradient(law, self.student.units, self.teacher_units, self.student.train_readout, labels)
            return
        if self.teacher is None and len(labels) == 1 and self.data.components.weights.size > 1:
            raise InputError(
                f"labels: all components have the label {labels[0]:g}, so there is nothing to learn; give them labels "
                "that differ, or a teacher"
            )
        if isinstance(law, CrossEntropy) != isinstance(self.student, Softmax):
            raise InputError(
                f"loss: cross-entropy and Softmax go together, got the {self.loss} loss with {self.student!r}; use "
                "Softmax(classes) with 'cross-entropy', Committee with 'logistic' or 'square', or write a Loss"
            )
        if isinstance(law, OutputLoss) and law.labels is None:
            return
        if self.label_noise:
            raise InputError(f"label_noise: the {self.loss} loss takes labels as they are; use label_noise=0")
        if self.teacher is not None:
            raise InputError(
                f"teacher: the {self.loss} loss fits the labels of a mixture; drop the teacher, or use loss='square'"
            )
        self.check_labels(labels)

    def check_labels(self, labels: Sequence[float]) -> None:
        """Refuse labels that the loss does not take."""
        law = self.law
        if isinstance(law, CrossEntropy):
            wrong = next((label for label in labels if label not in range(self.student.units)), None)
            if wrong is not None:
                more = f", or use Softmax(classes={math.ceil(max(labels)) + 1})" if wrong > 0 else ""
                raise InputError(
                    f"labels: expected labels from 0 to {self.student.units - 1} for the {self.loss} loss, got "
                    f"{wrong:g}; renumber them{more}"
                )
        elif isinstance(law, OutputLoss):
            wrong = law.unknown_label(labels)
            if wrong is not None:
                todo, count = "renumber them", len(set(labels))
                if count > 2:
                    todo = f"more than two classes are learned by loss='cross-entropy' with Softmax({count})"
                raise InputError(
                    f"labels: expected 0 and 1, or -1 and 1, for the {self.loss} loss, got {wrong:g}; {todo}"
                )

    def _warn_of_decay(self) -> None:
        """Warn where decay shrinks all weights to zero, whatever the data say (see `overlaps.problem.origin`)."""
        data, student, decay = self.data, self.student, self.algorithm.decay
        if not (data.labelled and data.is_gaussian and np.array_equal(data.eigenvalues, [1.0])):
            return
        if not (isinstance(student, Committee) and student.train_readout and student.activation == "relu"):
            return
        same = self.algorithm.readout_rate in (None, self.algorithm.rate)
        if decay == 0 or self.loss != "logistic" or not same:
            return
        weights, variances, labels = data.components
        limit = largest_pull(data.mean_gram(np.ones(1))[0], weights, variances, np.maximum(labels, 0))
        if decay >= limit:
            warnings.warn(
                f"decay: {decay:g} is not below {limit:.4g}, where the origin becomes stable: small weights shrink to "
                "zero and the network learns nothing; use a smaller decay",
                stacklevel=4,
            )

    @cached_property
    def law(self) -> Loss | OutputLoss | CrossEntropy:
        """The loss itself."""
        return loss(self.loss)

    @property
    def teacher_units(self) -> int:
        """M, zero without a teacher; a regression on labelled rows has the one of their best linear map."""
        return int(self.regresses_rows) if self.teacher is None else self.teacher.units

    @property
    def teacher_readouts(self) -> NDArray[np.float64]:
        """Second-layer weights of the teacher, (M,)."""
        return np.ones(self.teacher_units) if self.teacher is None else self.teacher.readouts

    @property
    def learns_rows(self) -> bool:
        """Whether targets are labels of the rows of a data set."""
        return self.data.labelled and self.data.table is not None

    @cached_property
    def classifies_rows(self) -> bool:
        """Whether labels of rows are learned as classes, each with a Gaussian of its own in theory.

        A linear student with the square loss is a regression, whose theory needs no Gaussian, unless groups are named.
        """
        data, student = cast("Any", self.data), self.student
        if not self.learns_rows or not data.classes:
            return False
        linear = isinstance(student, Committee) and student.activation == "linear" and not student.train_readout
        return not (linear and self.loss == "square") or data.groups is not None

    @property
    def regresses_rows(self) -> bool:
        """Whether labels of rows are learned as numbers."""
        return self.learns_rows and not self.classifies_rows

    @cached_property
    def class_targets(self) -> NDArray[Any]:
        """What the loss learns of each class of rows, (classes,): its number, or −1 and 1 less their mean if square."""
        data: Any = self.data
        if self.loss != "square":
            return np.arange(len(data.classes))
        targets, numbers = data.targets, data.labels.numbers
        return np.array([targets[np.argmax(numbers == c)] for c in range(len(data.classes))])

    @property
    def row_targets(self) -> NDArray[Any] | None:
        """What is learned of each row of a data set, (rows,); None where rows have no labels, or there are none."""
        if self.classifies_rows:
            data: Any = self.data
            return self.class_targets[data.labels.numbers]
        return self.data.targets

    @property
    def row_teacher(self) -> NDArray[np.float64] | None:
        """The linear teacher that labels of rows stand for in a regression, (1, N); None otherwise."""
        return self.data.own_teacher if self.regresses_rows else None

    @cached_property
    def class_equivalent(self) -> Problem:
        """The problem that theory solves in place of a classifier of rows: a Gaussian for each class or group."""
        data: Any = self.data
        if not self.classifies_rows:
            raise InputError("data: these labels are not learned as classes; use problem.linear_equivalent")
        return Problem(
            data=data.as_gaussian(self.class_targets), student=self.student, algorithm=self.algorithm, loss=self.loss
        )

    @cached_property
    def linear_equivalent(self) -> Problem:
        """The problem that theory solves in place of a linear student of labelled rows: Gaussian inputs, a linear
        teacher, and what that leaves of the labels as noise."""
        data: Any = self.data
        student = self.student
        if self.classifies_rows:
            raise InputError(
                "data: these labels are learned as classes, of which OnlineSGD and GradientFlow have a theory and "
                "which MultiPass trains on; use one of these, or the square loss of a linear student"
            )
        if not isinstance(student, Committee) or student.activation != "linear" or student.train_readout:
            raise InputError(
                "student: theory of labelled rows is for linear students with a fixed readout, got "
                f"{self.describe_networks()}{', trained readout' * student.train_readout}; use "
                "Committee(1, 'linear'), or train"
            )
        return Problem(
            data=GaussianInputs(data.spectrum),
            teacher=Committee(1, "linear"),
            student=student,
            algorithm=getattr(self.algorithm, "one_pass", self.algorithm),
            label_noise=math.sqrt(data.unexplained),
        )

    @cached_property
    def update(self) -> Update:
        """The step of a one-pass algorithm, with the rates of both layers; full batches refuse, they have none."""
        return self.algorithm.update(self.student.train_readout)

    def plain_sgd(self, who: str) -> PlainSGD:
        """The rates, for what is written for one-pass SGD at constant rates, one sample a step, without momentum.

        who: name of the caller, for the message that refuses any other algorithm.
        """
        algorithm = self.algorithm
        if not algorithm.plain:
            raise InputError(
                f"algorithm: {who} is for one-pass SGD or gradient flow at constant rates, one sample a step and no "
                f"momentum, got {' '.join(repr(algorithm).split()):.120}; use solve"
            )
        update = algorithm.update(trains_readout=True)
        assert update.readout_rate is not None
        return PlainSGD(float(update.rate(0.0)), float(update.readout_rate(0.0)), algorithm.decay)

    @property
    def committees(self) -> tuple[Committee, Committee]:
        """Student and teacher of a problem that has both, reading the same inputs of mean zero; others are refused.

        The algorithm must be one-pass SGD at constant rates, with one sample a step and no momentum.
        """
        self.plain_sgd("this law")
        data = self.data
        blind = data.has_means or data.reads_latent or data.components.weights.size > 1
        if not isinstance(self.student, Committee) or self.teacher is None or blind:
            raise InputError(
                "problem: this is for a committee that learns from a committee on the same Gaussian inputs of mean "
                f"zero, got {self.describe_networks()} on {self.data!r:.80}; use solve"
            )
        return self.student, self.teacher

    def describe_networks(self) -> str:
        """Student and teacher in a few words."""
        student = self.student
        if isinstance(student, Softmax):
            text = f"softmax of {student.classes} classes"
        else:
            text = f"student {student.units} x {student.g.name}"
        return text if self.teacher is None else f"{text}, teacher {self.teacher.units} x {self.teacher.g.name}"

    def _compiled(self, part: str) -> Any:
        law, networks = self.law, [n if isinstance(n, Committee) else None for n in (self.student, self.teacher)]
        own = any(n and isinstance(n.activation, Activation) for n in networks)
        if isinstance(law, Loss) or own or (part == "curvature" and not law.smooth):  # the latter is refused
            return law.compiled(part, *(n and n.g for n in networks))
        return named(_known, part, law.name, *(n and n.g.name for n in networks))

    @property
    def gradient(self) -> Any:
        """The compiled gradient of the loss, see `overlaps.network.losses`."""
        return self._compiled("gradient")

    @property
    def value(self) -> Any:
        """The compiled loss of one sample, ``value(λ, ν, c, v, u, noise=0)``."""
        return self._compiled("value")

    @property
    def decision(self) -> Any:
        """The compiled decision between targets, ``decision(λ, ν, targets, v, u)``: the place of that of least loss."""
        return self._compiled("decision")

    @property
    def curvature(self) -> Any:
        """The compiled second derivatives of the loss, ``curvature(λ, ν, c, v, u, λλ, λv, vv)``."""
        return self._compiled("curvature")

    @property
    def kinks(self) -> tuple[tuple[tuple[float, ...], ...], Any]:
        """Where the loss is not smooth: places in each of the K+M fields, and a function of all of them or None.

        The latter is compiled, ``kinks(λ, ν, c, v, u, which)``: functions that are zero at kinks that several fields
        share, and how many there are for which = −1.
        """
        law, M = self.law, self.teacher_units
        if isinstance(law, Loss):
            return known_kinks(law, self.student.units, M)
        networks = [self.student] * self.student.units + ([] if self.teacher is None else [self.teacher] * M)
        places = tuple(network.g.kinks if isinstance(network, Committee) else () for network in networks)
        return places, None if law.kinks is None else self._compiled("kinks")

    @checked
    def plot_rates(self, last: float, ax: Axes | None = None, **style: Any) -> Axes:
        """Draw the learning rates of both layers, up to the time `last`.

        Parameters
        ----------
        last: in the times of trajectories: steps per input dimension, or steps of full batches.
        ax: matplotlib axes to draw on; new ones by default. style: of the lines, as matplotlib takes it.
        """
        from ..plot.rates import rates

        algorithm, last = self.algorithm, number("last", last, above=0)
        found = {"rate": as_schedule(algorithm.rate)}
        if self.student.train_readout:
            found["readout_rate"] = as_schedule(
                algorithm.rate if algorithm.readout_rate is None else algorithm.readout_rate
            )
        units = "steps" if algorithm.times_are_steps else "steps per input dimension"
        return rates(found, last, units, ax, **style)

    def to_toml(self) -> str:
        """The problem as TOML; `from_toml` reads back an equal one."""
        return self._toml

    @cached_property
    def _toml(self) -> str:
        """Written once: every result and every address of a sweep asks for it."""
        return spec.write(spec.to_mapping(self))

    @classmethod
    @checked
    def from_toml(cls, text: str) -> Problem:
        """Read a problem; every mistake is an `InputError` that names the field."""
        return spec.from_mapping(cls, spec.parse(text), ROLES)

    def _repr_html_(self) -> str:
        from ..plot.notebook import card

        inputs = self.data.described(as_gaussian=False)
        law = self.loss if isinstance(self.loss, str) else self.loss.name
        return card(
            f"{inputs} inputs; {self.describe_networks()}; {law} loss\n{self}",
            self._draw,
            describe="spectrum of the inputs, and a sketch of the networks that read them",
        )

    def _draw(self, ax: Any) -> None:
        from ..plot import networks

        teacher = (self.teacher.units, "teacher") if self.teacher is not None else (0, "labels")
        student, readout = (self.student.units, "student"), isinstance(self.student, Committee)
        networks.problem(ax, self.data.eigenvalues, self.data.fractions, student, teacher, readout=readout)

    def __str__(self) -> str:
        try:
            return self.to_toml()
        except InputError:
            return repr(self)
