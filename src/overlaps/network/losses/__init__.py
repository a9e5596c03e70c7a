"""Losses: of one's own (`Loss`), or by name.

Every file of this folder beside `own` and `output` is a loss with a name, its `LOSS`; a new file is a new loss, known
to problems, specs and the tests of all losses without another line. Every loss has ``compiled(part, …)``:

    "gradient"     gradient(λ, ν, c, v, u, noise, dλ, dv)     writes ∂loss/∂λ into dλ and ∂loss/∂v into dv
    "value"        value(λ, ν, c, v, u, noise=0)              the loss of one sample
    "curvature"    curvature(λ, ν, c, v, u, λλ, λv, vv)       writes second derivatives, each (K, K)
    "decision"     decision(λ, ν, targets, v, u)              place of the target, of those given, whose loss is least:
                                                              the class that the network takes the input for
    "kinks"        kinks(λ, ν, c, v, u)                       changes its sign where derivatives of the loss jump; of
                                                              losses of an output that have `kinks`

with the fields λ of the student and ν of the teacher, the label c and the readouts v and u. All scales and spectra call
these and nothing else.
"""

from __future__ import annotations

from ...interface.folder import chosen, things
from .cross_entropy import CrossEntropy
from .output import OutputLoss
from .own import Loss, check_gradient, known_kinks

BUILT_IN: dict[str, OutputLoss | CrossEntropy] = things(__name__, "LOSS", besides=("output", "own"))


def loss(which: str | Loss) -> OutputLoss | CrossEntropy | Loss:
    """The loss of that name, or the one given."""
    return chosen("loss", which, Loss, BUILT_IN)


__all__ = ["BUILT_IN", "CrossEntropy", "Loss", "OutputLoss", "check_gradient", "known_kinks", "loss"]
