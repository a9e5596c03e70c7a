"""Classifiers on labelled images: loss and 0-1 error of training, predicted from means and covariances, then trained.

The images are the handwritten digits that come with the library, even against odd, with one Gaussian for each digit.
For others, MNIST say, name a file: a .npz with arrays of images and of labels from 0 to 9, or a .csv whose first column
is the label.

Run it with `python examples/classify_my_data.py classes.png [mnist.npz]`; the first argument is where the picture goes.
"""

import sys
import warnings
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # a file, not a window

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

import overlaps as ov

RUNS = 8


def read(path: str) -> tuple[np.ndarray, np.ndarray]:
    """Images as rows, and their labels."""
    if Path(path).suffix == ".csv":
        table = np.loadtxt(path, delimiter=",", skiprows=1)
        return table[:, 1:], table[:, 0].astype(int)
    with np.load(path) as archive:
        labels, images = sorted((archive[name] for name in archive.files), key=np.ndim)[:2]
    return images.reshape(len(images), -1), labels.astype(int)


def main(picture: str = "classes.png", file: str | None = None) -> None:
    images, digits = (ov.digits(), ov.digit_labels()) if file is None else read(file)
    warnings.filterwarnings("ignore", message=".*its covariance is singular")  # of rare digits on many pixels
    data = ov.Samples(images, digits % 2, groups=digits)
    logistic = {"student": ov.Committee(1, "linear"), "loss": "logistic"}
    network = {"student": ov.Committee(3, "erf", readout=[1.0, -0.8, 0.6])}
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for rate, color in ((1.0, "C1"), (0.2, "C0")):
        follow("logistic regression", data, logistic, rate, [0.5, 2.0, 8.0, 20.0], 0.0, axes[0], color)
    for rate, color in ((1.0, "C1"), (0.3, "C0")):
        times = [0.5, 2.0, 6.0, 12.0]
        problem, start = follow("3 erf units", data, network, rate, times, 0.5, axes[1], color)
    found = ov.beyond_gaussian(problem, start, times, runs=RUNS, progress=False)
    print(found)
    figure.savefig(picture, dpi=150)


def follow(
    name: str, data: ov.Samples, parts: dict, rate: float, times: list[float], scale: float, ax: Axes, color: str
) -> tuple[ov.Problem, ov.Start]:
    """Theory and training of one problem, from weights of this scale: both are printed and drawn."""
    problem = ov.Problem(data=data, algorithm=ov.OnlineSGD(rate), **parts)
    start = ov.draw(problem, data.size, scale=scale)
    theory = ov.solve(problem, start, times)
    trained = ov.train(problem, start, times, runs=RUNS, progress=False)
    print(
        f"{name}, N = {data.size}, rate {rate:g}, t = {', '.join(f'{t:g}' for t in times)}: {theory.data.attrs['cost']}"
    )
    for what in ("error", "misclassified"):
        mean = trained.data[what].mean("run").values
        bars = trained.data[what].std("run", ddof=1).values / np.sqrt(RUNS)
        cells = zip(theory.data[what].values[0], mean, bars, strict=True)
        print(f"  {what:<14}" + "  ".join(f"{a:.4f} / {b:.4f} ± {c:.4f}" for a, b, c in cells))
    theory.plot("error", ax, color=color)
    trained.plot("error", ax, color=color)
    ax.set(title=name, xscale="log")
    return problem, start


if __name__ == "__main__":
    main(*sys.argv[1:])
