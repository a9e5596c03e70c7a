"""Three classes and the Hessian of their softmax regression: weights turn into the space of its outliers.

Run it with `python examples/outliers.py outliers.png`; the argument is where the picture goes.
"""

import sys

import matplotlib

matplotlib.use("Agg")  # a file, not a window
import matplotlib.pyplot as plt

import overlaps as ov


def main(path: str = "outliers.png") -> None:
    problem = ov.Problem(
        data=ov.GaussianMixture(means=3, variance=0.1),
        student=ov.Softmax(classes=3),
        algorithm=ov.OnlineSGD(rate=1.0, decay=0.01),
        loss="cross-entropy",
    )
    start = ov.draw(problem, size=300, seed=0)
    times = [0.0, 1.0, 2.0, 4.0, 7.0, 10.0, 15.0, 20.0, 30.0]
    watch = ov.spectra.Observer(count=3, samples=3000)

    micro = ov.train(problem, start, times, runs=2, seed=0, observe=watch, progress=False)
    macro = ov.solve(problem, start, times)
    edge = ov.spectra.bulk_edge(problem, start, samples=3000)

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    micro.plot("m", ax=axes[0], color="C1")
    macro.plot("m", ax=axes[0], color="black", lw=1)
    micro.plot("hessian_values", ax=axes[1], color="C0")
    axes[1].axhline(edge, color="grey", lw=1)
    axes[1].set_title("grey: predicted edge of the bulk at the start", fontsize=9)
    micro.plot("hessian_alignment", ax=axes[2], color="C0")
    figure.savefig(path, dpi=150)
    print(micro)
    first, last = micro.data["hessian_alignment"].mean(("run", "block")).values[[0, -1]]
    print(f"alignment of the weights with the outlier space: {first:.2f} at the start, {last:.2f} at the end")
    print(f"picture: {path}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
