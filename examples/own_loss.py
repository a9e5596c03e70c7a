"""A loss of one's own: logistic regression on the probabilities that a teacher gives.

The teacher reads one field ν and says "yes" with probability p = σ(ν); the student reads one field λ and pays the
cross-entropy

    loss(λ, ν) = log(1 + e^λ) − σ(ν) λ,        ∂loss/∂λ = σ(λ) − σ(ν).

Two plain functions give all three scales. The gradient is checked against finite differences when the problem is built.

Run it with `python examples/own_loss.py`.
"""

import numpy as np

import overlaps as ov


def value(lam, nu, c, v):
    return np.logaddexp(0.0, lam[0]) - lam[0] / (1.0 + np.exp(-nu[0]))


def gradient(lam, nu, c, v):
    difference = 1.0 / (1.0 + np.exp(-lam)) - 1.0 / (1.0 + np.exp(-nu))
    return difference, np.zeros_like(v)  # this loss does not use the readout v


def main() -> None:
    problem = ov.Problem(
        data=ov.GaussianInputs(),
        teacher=ov.Committee(units=1),
        student=ov.Committee(units=1),
        loss=ov.Loss(value, gradient, name="cross-entropy"),
        algorithm=ov.OnlineSGD(rate=1.0),
    )
    start = ov.draw(problem, size=200, seed=0, scale=0.1)
    times = ov.logtimes(0.1, 100, 13)
    scales = {
        "macro": ov.solve(problem, start, times),
        "meso": ov.sample(problem, start, times, runs=20, seed=0, progress=False),
        "micro": ov.train(problem, start, times, runs=8, seed=0, progress=False),
    }
    print("cross-entropy, mean over runs")
    print("  time " + "".join(f"{name:>10}" for name in scales))
    for t in times[::3]:
        row = [float(scale.data["error"].sel(time=t).mean()) for scale in scales.values()]
        print(f"{t:6.3g} " + "".join(f"{x:10.5f}" for x in row))


if __name__ == "__main__":
    main()
