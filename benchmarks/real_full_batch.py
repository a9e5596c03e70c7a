"""Full batches of real classes and of Gaussian ones: `python -m benchmarks.real_full_batch` writes its page in docs.

Universality says that training on rows is training on Gaussians of the same means and covariances as size and samples
grow. `FullBatch` takes Gaussian classes whose covariances commute: here all have the mean covariance of the classes.
Rows of a class have another, unless they are mapped by Σ̄^{1/2} Σ_c^{−1/2} about their mean; both kinds are trained on.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import overlaps as ov

PAGE = Path(__file__).parents[1] / "docs" / "real_full_batch.md"
SETS = 24  # training sets, each of other rows
STEPS, RATIO = 20, 0.1  # RATIO: dimensions per row trained on


ENDING = (
    "With ten Gaussians of one covariance the training error on digits is that of the rows within its scatter, and",
    "the test error is five per cent below theirs; part of that is that moments are those of all rows, tested ones",
    "included. With two Gaussians both are off by a tenth, since even digits are five clusters. The classes of breast",
    "cancer have covariances that one cannot stand for. Isotropic Gaussians of the same means are off by more than a",
    "fifth on the digits (`tests/test_full_batch_rows.py`).",
)


class Rows(NamedTuple):
    """Rows (n, N) in principal axes, of mean variance one, the class of each, and the group of it with a Gaussian."""

    X: NDArray[np.float64]
    y: NDArray[Any]
    groups: NDArray[Any]

    @property
    def covariances(self) -> NDArray[np.float64]:
        return np.array([np.cov(self.X[self.groups == c].T, bias=True) for c in np.unique(self.groups)])

    @property
    def shares(self) -> NDArray[np.float64]:
        return np.unique(self.groups, return_counts=True)[1] / len(self.groups)

    def of_one_covariance(self) -> Rows:
        """Every group mapped about its mean, so that all have the mean covariance."""
        values, vectors = np.linalg.eigh(np.tensordot(self.shares, self.covariances, 1))
        root, X = (vectors * np.sqrt(values)) @ vectors.T, self.X.copy()
        for c, covariance in zip(np.unique(self.groups), self.covariances, strict=True):
            values, vectors = np.linalg.eigh(covariance)
            own = self.groups == c
            mean = X[own].mean(0)
            X[own] = mean + (X[own] - mean) @ (vectors / np.sqrt(values)) @ vectors.T @ root
        return Rows(X, self.y, self.groups)


def sets() -> dict[str, Rows]:
    """Digits with a Gaussian for each class, and for each digit, and breast cancer, in their first principal axes."""
    from sklearn.datasets import load_breast_cancer

    cancer: Any = load_breast_cancer()
    digits, numbers = ov.Samples(ov.digits(), ov.digit_labels() % 2).rows[:, :40], ov.digit_labels()
    others = ov.Samples(cancer.data, cancer.target, standardise=True).rows[:, :20]
    return {
        "digits, even or odd, 2 Gaussians": Rows(digits / digits.std(), numbers % 2, numbers % 2),
        "digits, even or odd, 10 Gaussians": Rows(digits / digits.std(), numbers % 2, numbers),
        "breast cancer, 2 Gaussians": Rows(others / others.std(), cancer.target, cancer.target),
    }


def gaussian(data: ov.Samples, targets: NDArray[Any], isotropic: bool = False) -> ov.GaussianClasses:
    """Classes of the means of the rows, in their axes, and of one covariance: their mean, or a multiple of one."""
    found = data.moments
    covariance = np.tensordot(found.weights, found.covariances, 1)
    if isotropic:
        covariance = np.eye(data.size) * np.trace(covariance) / data.size
    return ov.GaussianClasses(
        found.means, [covariance] * len(found.weights), found.weights, targets[found.labels].tolist()
    )


def errors(rows: Rows, network: str, training_sets: int = SETS, isotropic: bool = False) -> NDArray[np.float64]:
    """Training and test errors after the last step, on rows and on Gaussians, (sets, 2 sides, 2 errors)."""
    student, loss = {
        "logistic": (ov.Committee(1, "linear"), "logistic"),
        "2 x erf": (ov.Committee(2, "erf", readout=[1.0, -0.8]), "square"),
    }[network]
    found = np.empty((training_sets, 2, 2))
    for i in range(training_sets):
        order = np.random.default_rng(i).permutation(len(rows.X))
        data = ov.Samples(rows.X[order], rows.y[order], groups=rows.groups[order])
        algorithm = ov.FullBatch(steps=STEPS, rate=0.5, ratio=RATIO)
        problem = ov.Problem(data=data, student=student, loss=loss, algorithm=algorithm)
        same = replace(problem, data=gaussian(data, problem.class_targets, isotropic))
        start = ov.draw(problem, data.size, seed=i, scale=0.5)
        for side, task in enumerate((problem, same)):
            begin = ov.Start.from_weights(task, start.student)
            result = ov.train(task, begin, [STEPS], 1, seed=i, progress=False).data
            found[i, side] = result["training_error"].item(), result["error"].item()
    return found


def page(training_sets: int = SETS) -> str:
    """All sets, rows as they are and of one covariance, as a page of the documentation."""
    text = [
        "# Full batches of real classes",
        "",
        "Written by `python -m benchmarks.real_full_batch`. `FullBatch` on rows of two classes (`ov.train` of",
        "`Samples(X, labels)`), and on Gaussians of the same means and of one covariance, the mean of theirs, from the",
        f"same weights: errors after {STEPS} steps at rate 0.5, means over {training_sets} training sets of "
        f"{1 / RATIO:g} rows a",
        "dimension, and by what share those of the rows are above, ± its standard error. Rows are taken as they are,",
        "and mapped so that each group that stands for a Gaussian has the same covariance: then only what is not",
        "Gaussian is left to differ.",
        "",
        "| set | rows | network | training error, rows / Gaussians | off by | test error, rows / Gaussians | off by |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, rows in sets().items():
        for kind, taken in (("as they are", rows), ("of one covariance", rows.of_one_covariance())):
            for network in ("logistic", "2 x erf"):
                found = errors(taken, network, training_sets)
                cells = []
                for part in (0, 1):
                    one, other = found[:, 0, part], found[:, 1, part]
                    spread = (one - other).std(ddof=1) / np.sqrt(training_sets) / other.mean()
                    apart = one.mean() / other.mean() - 1
                    cells.append(f"{one.mean():.4f} / {other.mean():.4f} | {apart:+.1%} ± {spread:.1%}")
                text.append(f"| {name} | {kind} | {network} | {' | '.join(cells)} |")
                print(text[-1], file=sys.stderr, flush=True)
    text += ["", *ENDING]
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows that are told apart well
        PAGE.write_text(page(), encoding="utf-8")
    print(f"written: docs/{PAGE.name}")
