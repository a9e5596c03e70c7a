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

from dataclasses import dataclass
from typing import Any

from . import spec
from .algorithms import GradientFlow, OnlineSGD
from .checks import number
from .data import SPECTRA, GaussianInputs, Samples
from .errors import InputError, unknown
from .losses import Loss, check_gradient, square_kernel, square_value, user_kernel, user_loss
from .network import Committee

ROLES: spec.Roles = {
    "data": (GaussianInputs, Samples),
    "spectrum": SPECTRA,
    "teacher": (Committee,),
    "student": (Committee,),
    "algorithm": (OnlineSGD, GradientFlow),
}


@dataclass(frozen=True)
class Problem:
    """What is learned, by what, and how; checked when built.

    Parameters
    ----------
    data: what inputs look like.
    teacher: the network that labels them; it reads the same inputs.
    student: the network that learns.
    algorithm: how it learns.
    loss: ``"square"``, or a `Loss` written as functions of the fields.
    label_noise: standard deviation of the Gaussian noise added to the teacher's output (square loss);
        the generalisation `error` does not count it.
    """

    data: GaussianInputs | Samples
    teacher: Committee
    student: Committee
    algorithm: OnlineSGD | GradientFlow
    loss: str | Loss = "square"
    label_noise: float = 0.0

    def __post_init__(self) -> None:
        for name in ("data", "teacher", "student", "algorithm"):
            value = getattr(self, name)
            if not isinstance(value, ROLES[name]):
                wanted = " or ".join(kind.__name__ for kind in ROLES[name])
                raise InputError(f"{name}: expected {wanted}, got {value!r}")
        if self.teacher.train_readout:
            raise InputError("teacher: a teacher does not learn; set train_readout on the student")
        if self.algorithm.readout_rate is not None and not self.student.train_readout:
            raise InputError(
                "readout_rate: has no effect on a fixed readout; set train_readout=True on the student or drop it"
            )
        object.__setattr__(self, "label_noise", number("label_noise", self.label_noise, least=0))
        if isinstance(self.loss, Loss):
            if self.label_noise:
                raise InputError(
                    "label_noise: a user-written loss sees fields, not labels, so noise cannot be added for it; "
                    "use loss='square', or label_noise=0"
                )
            check_gradient(self.loss, self.student.units, self.teacher.units, self.student.train_readout)
        elif self.loss != "square":
            if not isinstance(self.loss, str):
                raise InputError(f"loss: expected 'square' or an overlaps.Loss, got {type(self.loss).__name__}")
            raise unknown("loss", self.loss, ["square"])

    @property
    def readout_rate(self) -> float:
        """η_v in force: zero where the readout is fixed, `rate` where none was given."""
        if not self.student.train_readout:
            return 0.0
        given = self.algorithm.readout_rate
        return self.algorithm.rate if given is None else given

    @property
    def kernel(self) -> Any:
        """The compiled gradient of the loss, see `overlaps.losses`."""
        if isinstance(self.loss, Loss):
            return user_kernel(self.loss)
        return square_kernel(self.student.g, self.teacher.g)

    @property
    def value(self) -> Any:
        """The compiled loss of one sample, ``value(λ, ν, c, v, u)``, without label noise."""
        if isinstance(self.loss, Loss):
            return user_loss(self.loss)
        return square_value(self.student.g, self.teacher.g)

    def to_toml(self) -> str:
        """The problem as TOML; `from_toml` reads back an equal one."""
        return spec.write(spec.to_mapping(self))

    @classmethod
    def from_toml(cls, text: str) -> Problem:
        """Read a problem; every mistake is an `InputError` that names the field."""
        return spec.from_mapping(cls, spec.parse(text), ROLES)

    def __str__(self) -> str:
        try:
            return self.to_toml()
        except InputError:
            return repr(self)
