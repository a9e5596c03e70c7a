"""A first prediction: what learning curve to expect, before any training, and whether training follows it.

Run it with `python examples/first_prediction.py`.
"""

import overlaps as ov


def main() -> None:
    # A teacher of two erf units labels isotropic Gaussian inputs; a student of the same shape learns from them.
    problem = ov.Problem(
        data=ov.GaussianInputs(),
        teacher=ov.Committee(units=2),
        student=ov.Committee(units=2),
        algorithm=ov.OnlineSGD(rate=0.5),
    )
    # Random weights of 300 inputs; theory and training begin at the same point.
    start = ov.draw(problem, size=300, seed=1, scale=0.5)
    times = ov.logtimes(0.1, 100, 25)

    theory = ov.solve(problem, start, times)
    print(theory)
    training = ov.train(problem, start, times, runs=8, seed=0, progress=False)
    print(training)

    print("\n  time   predicted   trained")
    for t in times[::5]:
        predicted = float(theory.data["error"].sel(time=t).mean())
        trained = float(training.data["error"].sel(time=t).mean())
        print(f"{t:6.3g}   {predicted:9.5f} {trained:9.5f}")

    print()
    print(ov.compare(theory, training))


if __name__ == "__main__":
    main()
