"""Where does SGD learn fastest, and where does it diverge? Theory over rates and spectra, as a picture.

Run it as `python sweep.py [PICTURE.png] [STORE]`. With a store, a second call computes nothing.
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np

import overlaps as ov


def main() -> None:
    net = ov.Committee(units=1, activation="linear")
    problem = ov.Problem(
        data=ov.GaussianInputs(ov.PowerLaw(levels=8, exponent=0.5)),
        teacher=net,
        student=net,
        algorithm=ov.OnlineSGD(rate=0.5),
        label_noise=0.3,
    )
    found = ov.sweep(
        problem,
        over={"algorithm.rate": np.geomspace(0.05, 5.0, 12), "data.spectrum.exponent": [0.0, 0.5, 1.0, 1.5]},
        times=[0.0, 1.0, 10.0],
        scales="macro",
        size=200,
        store=sys.argv[2] if len(sys.argv) > 2 else None,
        workers=1,
    )
    print(found)
    error = found.data["error"].isel(time=-1).mean(["seed", "run"]).sel(scale="macro")
    for exponent in found.data["exponent"].values:
        best = error.sel(exponent=exponent).idxmin("rate").item()
        print(f"exponent {exponent:g}: the best of these rates is {best:.3g}")
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    found.plot("rate", "error", color="exponent", ax=left)
    found.plot("rate", "exponent", ax=right)
    if len(sys.argv) > 1:
        figure.savefig(sys.argv[1])


if __name__ == "__main__":  # workers start this file again
    main()
