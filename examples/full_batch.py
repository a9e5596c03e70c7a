"""How far is full-batch training on a few hundred samples from its infinite-size theory, and in which way?

Run it with `python examples/full_batch.py full_batch.png`; the argument is where the picture goes.
"""

import sys

import matplotlib

matplotlib.use("Agg")  # a file, not a window
import matplotlib.pyplot as plt
import numpy as np

import overlaps as ov


def problem(momentum: float, steps: int = 20) -> ov.Problem:
    """A perceptron learns two classes from as many samples as dimensions."""
    return ov.Problem(
        data=ov.GaussianMixture(gram=[[1, -0.5], [-0.5, 1]], labels=[0, 1]),
        student=ov.Committee(units=1, activation="softplus"),
        loss="logistic",
        algorithm=ov.FullBatch(steps, 0.2, "ema-momentum", ratio=1.0, momentum=momentum),
    )


def main(path: str = "full_batch.png") -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    for i, momentum in enumerate((0.0, 0.9)):
        chosen = problem(momentum)
        start = ov.draw(chosen, size=300, seed=0, scale=0.1)
        theory = ov.solve(chosen, start)
        runs = ov.sample(chosen, start, runs=40, seed=0, progress=False)
        text = f"momentum {momentum:g}"
        theory.plot("training_error", ax=left, color=f"C{i}", label=f"{text}: on its samples")
        theory.plot("error", ax=left, color=f"C{i}", ls="--", label=f"{text}: on new ones")
        runs.plot("training_error", ax=left, color=f"C{i}", lw=0, label=None)
        print(f"{text}: theory {ov.compare(theory, runs, resolve=0.3, finite_size=False).verdict} with runs at m = 300")
    short = problem(0.0, steps=3)
    start = ov.draw(short, size=300, seed=0, scale=0.1)
    scatter = ov.full_batch.fluctuations(short, start, progress=False)
    predicted = scatter["variance_training_error"]
    many = ov.sample(short, start, runs=1000, seed=1, progress=False)
    right.plot(predicted["time"], predicted, "k-", label="theory")
    variance = 300 * many.data["training_error"].var("run", ddof=1)
    right.errorbar(many.time, variance, variance * np.sqrt(2 / many.runs), fmt="o", label=f"{many.runs} runs, m = 300")
    right.set(xlabel="step", ylabel="m Var(training error)")
    left.set(ylabel="error", title="bands: 40 runs at m = 300")
    for ax in (left, right):
        ax.legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=150)
    width, bias = float(np.sqrt(predicted[-1] / 300)), float(scatter["bias_training_error"][-1] / 300)
    print(f"a run on 300 samples is off by {width:.1g} at step 3, the mean of many by {bias:.1g}")
    print(f"picture: {path}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
