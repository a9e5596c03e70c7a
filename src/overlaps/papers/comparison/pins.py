"""Formulas as printed, and laws that correct them, at general numbers, M = 3 or more: a slip in one of them shows."""

from __future__ import annotations

import numpy as np

from . import printed
from .mean_field import Limit
from .paper import PAPER

SQUARE = np.array([[1.0, 0.3, 0.1], [0.3, 0.8, 0.2], [0.1, 0.2, 0.7]])
LIMIT = Limit(
    activation="softplus",
    loss="square",
    gamma=0.7,
    history=np.triu(0.2 + 0.1 * SQUARE, 1),
    first=np.array([1.0, 0.9, 0.8]),
    gram=np.array([[1.0, -0.5, 0.0], [-0.5, 1.0, 0.0], [0.0, 0.0, 0.01]]),
    V_theta=0.5 * SQUARE,
    V_omega=np.array([0.2 * SQUARE, 0.1 * SQUARE @ SQUARE]),
    B_theta=np.array([np.triu(0.3 * SQUARE), np.triu(0.1 * SQUARE)]),
    B_omega=np.triu(-0.2 * SQUARE, 1),
    beta=np.array([[0.0, 0.1, 0.2], [0.0, -0.1, -0.3]]),
)  # of no problem; kernels of three steps that tell every term apart
ALPHA, C_OMEGA = np.array([[0.1, 0.2, 0.3], [-0.2, 0.1, 0.4]]), np.array([0.1 * SQUARE, -0.2 * SQUARE])


def total(corrected: bool) -> float:
    """All increments of (33) for two draws of its vectors, with weights that tell them apart."""
    at = printed.Vectors.draw(LIMIT, 2, np.random.default_rng(33), corrected=corrected)
    entries = printed.eq_33(LIMIT, ALPHA, C_OMEGA, at, corrected=corrected).entries()
    return float(np.cos(np.arange(entries.size)) @ entries.ravel())


@PAPER.pin("momentum-kernel", number=0.9516)
def momentum() -> float:
    return float(printed.momentum(0.2, 0.7, 4)[0] @ [1.0, 2.0, 3.0, 4.0])


@PAPER.pin("eq-26", number=3.7940937)
def eq26() -> float:
    return float(printed.eq_26(LIMIT, 9) @ [1.0, 2.0, 3.0]) + float(printed.eq_26(LIMIT, 9, corrected=True)[2])


@PAPER.pin("eq-33", "definition-2", number=4.2149449)
def eq33() -> float:
    return total(corrected=False)


@PAPER.pin("eq-33", "definition-2", number=1.6742826)
def eq33_corrected() -> float:
    return total(corrected=True)


@PAPER.pin("theorem-3", number=0.4065854)
def gordon() -> float:
    return printed.gordon(0.3, 1.7)


@PAPER.pin("theorem-3", number=-0.4065854)
def eq38() -> float:
    return printed.eq_38(0.3, 1.7)


@PAPER.pin("proposition-1", number=-0.28857533)
def eq21() -> float:
    return float(np.sum(printed.eq_21(*np.array([[[1.3], [0.4]], [[0.7], [-0.2]], [[0.5], [0.9]]]))))


@PAPER.pin("momentum-kernel", number=-0.005340064)
def momentum_of_all_steps() -> float:
    """t (1 - s^(l-mu)) above the diagonal, in loops over steps."""
    return float(np.sum(np.cos(np.arange(16.0)).reshape(4, 4) * printed.momentum(0.2, 0.7, 4)))
