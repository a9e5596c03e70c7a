"""Formulas as printed, and laws that correct them, at general numbers, M = 3 or more: a slip in one of them shows."""

from __future__ import annotations

import numpy as np

import overlaps as ov

from . import printed
from .paper import PAPER

WEIGHTS = np.array([0.5, 0.3, 0.2])
X = np.array([[0.9, -0.2, 0.1, 0.3], [-0.4, 0.7, 0.2, -0.1], [0.1, -0.5, 0.8, 0.2]])
MEANS = np.eye(3, 4)
SHAPE = np.cos(np.arange(16.0)).reshape(4, 4)


def nodes() -> printed.Nodes:
    """A rule for three classes at λ = 2."""
    return printed.nodes(X @ MEANS.T, X @ X.T, WEIGHTS, 2.0, points=6)


@PAPER.pin("lemmas-3.1-3.3", number=0.026841884)
def lemma31() -> float:
    return float(np.sum(SHAPE * printed.printed31(nodes(), X, MEANS, 2.0, 0, 2)))


@PAPER.pin("lemmas-3.1-3.3", number=0.0083693222)
def lemma33() -> float:
    return float(np.sum(SHAPE * printed.printed33(nodes(), X, MEANS, 2.0, 0, 2)))


@PAPER.pin("eq-5.6", number=1.33572)
def eq56() -> float:
    return float(np.sum(SHAPE[:3, :3] * printed.eq56(WEIGHTS, 0.05, 4.0, [1.0, 3.0])[1][-1]).round(5))


@PAPER.pin("eq-5.18", number=1.6464349)
def eq518() -> float:
    return float(np.sum(printed.eq518(np.eye(3), 0.3, 2.0)))


@PAPER.pin("energy", number=1.5227343)
def energy() -> float:
    return printed.energy(X[:, :3], MEANS[:, :3] + 0.1, WEIGHTS, 0.3)


@PAPER.pin("fixed-point", number=28.813237)
def fixed_point() -> float:
    return printed.fixed_point(0.02).real + 10 * printed.fixed_point(0.02).imag


@PAPER.pin("eq-7.11", "noisy-transition", number=1.3408555)
def xor() -> float:
    return (
        float(np.sum(SHAPE[:3, :2] * ov.laws.xor_outliers(WEIGHTS, X[:, 0], X[:, 1], 2 * X @ X.T, 0.5)))
        + ov.laws.xor_transition(0.3)
        + 10 * ov.laws.xor_transition()
    )


@PAPER.pin("eq-7.11", "initial-readout-outlier", number=0.10155901)
def xor_gradient() -> float:
    return float(
        np.sum(SHAPE[:3, :2] * ov.laws.xor_outliers(WEIGHTS, X[:, 0], X[:, 1], 2 * X @ X.T, 0.5, kind="gradient"))
    ) + ov.laws.xor_initial_outlier(5, 0.3)


@PAPER.pin("fixed-point", "hidden-classes", number=4.2805161)
def xor_rest() -> float:
    return ov.laws.xor_norm(0.03) + float(ov.laws.hidden_classes(6) @ np.arange(len(ov.laws.hidden_classes(6))))


@PAPER.pin("energy", "theorem-2.5", number=3.0108264)
def softmax() -> float:
    return ov.laws.softmax_energy(X[:, :3], X @ X.T + np.eye(3), WEIGHTS, 0.3) + float(
        np.sum(SHAPE[:3, :3] * ov.laws.softmax_fixed_point(np.eye(3), WEIGHTS, 0.05))
    )


@PAPER.pin("proposition-5.18", number=-1.1857771)
def proposition518() -> float:
    return float(
        np.sum([x @ [1.0, 2.0, 3.0] for x in printed.proposition518(X[:, 0], X[:, 1], X[:, 2], 0.3, -1.0).values()])
    )


@PAPER.pin("eq-7.11", number=0.077378009)
def eq711() -> float:
    return float(np.sum(SHAPE[:3, :2] * printed.eq711(WEIGHTS, X[:, 0], X[:, 1], X @ X.T, 0.5)))


@PAPER.pin("eq-5.10", number=1.2244488)
def eq510() -> float:
    return printed.eq510(X @ MEANS.T, X @ X.T, WEIGHTS, 0.3)


@PAPER.pin("eq-5.14", number=-0.15674614)
def eq514() -> float:
    return float(np.sum(SHAPE[:3, :3] * printed.eq514(X @ MEANS.T, X @ X.T, WEIGHTS, 2.0)))


@PAPER.pin("lemmas-3.1-3.3", number=-0.026841884)
def lemma31_corrected() -> float:
    return float(np.sum(SHAPE * printed.lemma31(nodes(), X, MEANS, 2.0, 0, 2)))


@PAPER.pin("lemmas-3.1-3.3", number=0.0063037321)
def lemma32() -> float:
    return float(np.sum(SHAPE * printed.lemma32(nodes(), X, MEANS, 2.0, 2)))


@PAPER.pin("lemmas-3.1-3.3", number=0.016061162)
def lemma33_corrected() -> float:
    return float(np.sum(SHAPE * printed.lemma33(nodes(), X, MEANS, 2.0, 0, 2)))


@PAPER.pin("energy", number=1.591035)
def softmax_minimum() -> float:
    """Of the energy for unequal means and weights, which a minimiser that knows of the energy alone finds too."""
    gram = [[1.0, 0.1, 0.2], [0.1, 1.2, 0.0], [0.2, 0.0, 0.9]]
    return float(np.sum(SHAPE[:3, :3] * ov.laws.softmax_fixed_point(gram, WEIGHTS, 0.05)).round(6))


# Numbers of an independent route: matrices averaged over all four coordinates of the inputs, by 24 nodes for each.


def fine_nodes() -> printed.Nodes:
    """A rule for three classes at λ = 1.7, converged to seven digits."""
    return printed.nodes(X @ MEANS.T, X @ X.T, WEIGHTS, 1.7, points=20)


@PAPER.pin("lemmas-3.1-3.3", number=0.021436468)
def hessian_off_the_diagonal() -> float:
    return float(np.sum(SHAPE * printed.printed31(fine_nodes(), X, MEANS, 1.7, 0, 2)))


@PAPER.pin("lemmas-3.1-3.3", number=-0.0030023795)
def hessian_on_the_diagonal() -> float:
    return float(np.sum(SHAPE * printed.lemma32(fine_nodes(), X, MEANS, 1.7, 2)))


@PAPER.pin("lemmas-3.1-3.3", number=0.023152053)
def gradient_matrix() -> float:
    return float(np.sum(SHAPE * printed.lemma33(fine_nodes(), X, MEANS, 1.7, 0, 2)))


@PAPER.pin("proposition-5.18", number=-2.8493097)
def units_of_all_signs() -> float:
    """Velocities of three units of which some see a mean from behind, in loops over units, for both signs."""
    v, mu, nu = np.array([[0.5, 0.3, -0.2], [0.9, -0.4, 0.1], [-0.6, 0.5, 0.8]])
    found = (printed.proposition518(v, mu, nu, 0.3, sign).values() for sign in (-1.0, 1.0))
    return float(sum(x @ [1.0, 2.0, 3.0] for each in found for x in each))


# Numbers of an independent route: the flow in plain variables, stopped where an overlap comes to zero, and gone on with
# that overlap at rest; three do by time 12.
UNITS = [1.0, 0.8, -0.9], [0.4, -0.3, 0.2], [0.2, 0.3, -0.5]


@PAPER.pin("fixed-point", "beta-transition", number=-2.752151692)
def flow_of_units() -> float:
    """Before any overlap is zero."""
    return float(np.concatenate([x[-1] for x in ov.laws.xor_flow(*UNITS, 0.05, [1.0])]) @ np.arange(1.0, 10.0))


@PAPER.pin("fixed-point", "beta-transition", number=-9.297311444)
def flow_of_landed_units() -> float:
    """After three are."""
    return float(np.concatenate([x[-1] for x in ov.laws.xor_flow(*UNITS, 0.05, [12.0])]) @ np.arange(1.0, 10.0))


@PAPER.pin("fixed-point", number=0.0)
def norm_beyond_the_transition() -> float:
    return ov.laws.xor_norm(0.2)


@PAPER.pin("hidden-classes", number=2.0)
def classes_of_one_or_two_units() -> float:
    """One unit finds one class, and two units find two, or one, one time in four: 1 + (3/4 · 2 − 1/4 · 2)."""
    one, two = (ov.laws.hidden_classes(units) for units in (1, 2))
    return float(one @ [1.0, 2.0, 3.0, 4.0] + two @ [-2.0, 2.0, 3.0, 4.0])
