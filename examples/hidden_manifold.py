"""Does standardising a mixture make learning Gaussian? It depends on where the component is drawn.

Run it with `python examples/hidden_manifold.py hidden_manifold.png`; the argument is where the picture goes.
"""

import sys

import matplotlib

matplotlib.use("Agg")  # a file, not a window
import matplotlib.pyplot as plt

import overlaps as ov


def problem(latent: ov.LatentMixture | None = None) -> ov.Problem:
    """Two ReLU units learn two on sign features of the latent, which the teacher reads."""
    return ov.Problem(
        data=ov.HiddenManifold(latent_ratio=0.5, nonlinearity="sign", latent=latent),
        teacher=ov.Committee(units=2, activation="relu"),
        student=ov.Committee(units=2, activation="relu", train_readout=True),
        algorithm=ov.OnlineSGD(rate=0.2),
    )


def main(path: str = "hidden_manifold.png") -> None:
    size, times = 300, ov.logtimes(0.05, 20, 25)
    plain = problem()
    gaussian = ov.solve(plain, ov.draw(plain, size, seed=0), times)
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharey=True)
    for ax, label in zip(axes, ("coordinate", "sample"), strict=True):
        mixed = problem(ov.LatentMixture(components=2, bound=9.0, label=label, standardise="population"))
        start = ov.draw(mixed, size, seed=0)  # the same weights and features for all latents
        runs = ov.train(mixed, start, times, runs=4, seed=0, progress=False)
        own = ov.solve(mixed, start, times)
        for trajectory, colour, text in ((runs, "C1", "training"), (gaussian, "C0", "Gaussian theory")):
            trajectory.plot("R", ax=ax, color=colour, lw=1, label=text)
        own.plot("R", ax=ax, color="black", lw=1, ls="--", label="theory of the mixture")
        ax.set_title(f"one label per {label}")
        for name, theory in (("Gaussian theory", gaussian), ("theory of the mixture", own)):
            print(f"one label per {label}, tLog-RMSE of R from the {name}: {ov.tlog_rmse(theory, runs).rmse['R']:.3f}")
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=150)
    print(f"picture: {path}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
