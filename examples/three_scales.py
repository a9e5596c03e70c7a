"""One problem at three scales: inputs with a power-law spectrum, both layers trained.

Run it with `python examples/three_scales.py three_scales.png`; the argument is where the picture goes.
"""

import sys

import matplotlib

matplotlib.use("Agg")  # a file, not a window
import matplotlib.pyplot as plt

import overlaps as ov


def main(path: str = "three_scales.png") -> None:
    problem = ov.Problem(
        data=ov.GaussianInputs(spectrum=ov.PowerLaw(levels=10, exponent=0.25)),
        teacher=ov.Committee(units=2),
        student=ov.Committee(units=3, readout=[0.5, 0.6, 0.7], train_readout=True),
        algorithm=ov.OnlineSGD(rate=0.5, readout_rate=0.1),
    )
    start = ov.draw(problem, size=400, seed=0, scale=0.3)
    times = ov.logtimes(0.05, 50, 40)

    macro = ov.solve(problem, start, times)
    meso = ov.sample(problem, start, times, runs=10, seed=0, progress=False)
    micro = ov.train(problem, start, times, runs=2, seed=0, progress=False)

    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for ax, name in zip(axes, ("error", "R", "v"), strict=True):
        for trajectory, colour in ((meso, "C0"), (micro, "C1"), (macro, "black")):
            trajectory.plot(name, ax=ax, color=colour, lw=1)
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=150)
    for trajectory in (macro, meso, micro):
        print(trajectory)
    print(f"picture: {path}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
