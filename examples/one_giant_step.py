"""Which unseen classes will one large gradient step align, and how far will it move them?

Run it with `python examples/one_giant_step.py one_giant_step.png`; the argument is where the picture goes.
"""

import sys

import matplotlib

matplotlib.use("Agg")  # a file, not a window
import matplotlib.pyplot as plt
import numpy as np

import overlaps as ov
from overlaps import giant_step


def main(path: str = "one_giant_step.png") -> None:
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    # the truncated Gaussian has means 1.525 √d from the origin: its classes are as similar at a hundredth of the scale
    for i, (kind, largest) in enumerate((("sphere", 0.9), ("truncated", 0.03))):
        setting = giant_step.GiantStepSetting(
            giant_step.TwoClasses(kind), ov.GiantStep(rate=1.0, exponent=0.25), size=400
        )
        unseen = giant_step.scaled(setting.direction, np.linspace(0.1, 1, 7) * largest)
        measured = giant_step.train(setting, unseen, runs=8, points=256, seed=0, progress=False)
        theory = giant_step.solve(setting, unseen)
        for ax, name in zip(axes, ("alignment", "elasticity"), strict=False):
            theory.plot(name, x="similarity", ax=ax, color=f"C{i}", label=f"{kind}, theory")
            measured.plot(name, x="similarity", ax=ax, color=f"C{i}", label=f"{kind}, trained")
        measured.plot("recall", x="similarity", ax=axes[2], color=f"C{i}", label=f"{kind}, after")
        measured.plot("recall_before", x="similarity", ax=axes[2], color=f"C{i}", mfc="none", label=f"{kind}, before")
        apart, rank = measured.against(theory), float(measured.data["gradient_error"].mean())
        print(
            f"{kind}: gradient off rank one by {rank:.0%}, theory off 8 runs by at most "
            f"{float(abs(apart['alignment']).max()):.1%} in alignment and "
            f"{float(abs(apart['elasticity']).max()):.1%} in elasticity"
        )
    axes[2].set_ylabel("Recall@1")
    axes[0].legend(fontsize=7)
    axes[2].legend(fontsize=7)
    figure.savefig(path, dpi=150)
    print(f"written: {path}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
