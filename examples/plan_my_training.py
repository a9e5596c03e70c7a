"""Plan a training on labelled images: learning curves, the best schedule and many passes, predicted and then trained.

The images are the handwritten digits that come with the library, even against odd. For others, MNIST say, name a file:
a .npz with arrays of images and of labels from 0 to 9, or a .csv whose first column is the label.

Run it with `python examples/plan_my_training.py plan.png [mnist.npz]`; the first argument is where the picture goes.
"""

import sys
from dataclasses import replace
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # a file, not a window

import numpy as np

import overlaps as ov


def read(path: str) -> tuple[np.ndarray, np.ndarray]:
    """Images as rows, and their labels."""
    if Path(path).suffix == ".csv":
        table = np.loadtxt(path, delimiter=",", skiprows=1)
        return table[:, 1:], table[:, 0]
    with np.load(path) as archive:
        labels, images = sorted((archive[name] for name in archive.files), key=np.ndim)[:2]
    return images.reshape(len(images), -1), labels


def against_runs(problem: ov.Problem, times: np.ndarray, runs: int, names: tuple[str, ...]) -> dict[str, list[str]]:
    """What is named at times: theory / mean over runs ± standard error."""
    start = ov.draw(problem, problem.data.size, scale=0.0)
    theory = ov.solve(problem, start, times).data
    trained = ov.train(problem, start, times, runs=runs, seed=0, progress=False).data
    cells = {}
    for name in names:
        mean, error = trained[name].values.mean(0), trained[name].values.std(0, ddof=1) / np.sqrt(runs)
        rows = zip(theory[name].values[0], mean, error, strict=True)
        cells[name] = [f"{a:.4f} / {b:.4f} ± {c:.4f}" for a, b, c in rows]
    return cells


def main(picture: str = "plan.png", file: str | None = None) -> None:
    images, labels = (ov.digits(), ov.digit_labels()) if file is None else read(file)
    data = ov.Samples(images, labels % 2 == 0)
    N, n = data.size, len(images)
    problem = ov.Problem(data=data, student=ov.Committee(1, "linear"), algorithm=ov.OnlineSGD(0.1))
    runs = 100 if n < 5000 else 20

    print(f"one pass, N = {N}, {n} rows: error by theory / SGD, mean and standard error of {runs} runs")
    steps = np.array([N, 1000, 6000]) if file is None else np.array([719, 3000, 10_000])
    for rate in (0.1, 0.4, 0.8 if file is None else 1.0):
        cells = against_runs(replace(problem, algorithm=ov.OnlineSGD(rate)), steps / N, runs, ("error",))["error"]
        print(f"  rate {rate}: " + "   ".join(f"{s} steps {cell}" for s, cell in zip(steps, cells, strict=True)))

    print("\nthe best schedule for as many samples as there are rows")
    plan = ov.optimise(problem, ov.draw(problem, N, scale=0.0), n / N)
    print(plan)
    print(plan.check(runs=runs, progress=False))
    plan.plot().savefig(picture, dpi=150)

    few = 500 if file is None else 1000
    print(f"\nmany passes over {few} rows, tested on the {n - few} others: by theory / SGD")
    epochs = np.array([0.67, 2.67, 13.4, 40.1])
    for rate in (0.1, 0.4):
        many = replace(problem, algorithm=ov.MultiPass(rate, samples=few))
        found = against_runs(many, epochs * few / N, runs // 2, ("training_error", "error"))
        for name, cells in found.items():
            text = "   ".join(f"{e:g} epochs {cell}" for e, cell in zip(epochs, cells, strict=True))
            print(f"  rate {rate}, {'test error' if name == 'error' else 'training error'}: {text}")

    print()
    print(ov.forecast(data, progress=False))
    print(f"picture: {picture}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
