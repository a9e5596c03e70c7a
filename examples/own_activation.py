"""An activation of one's own: theory for GELU, g(x) = x Φ(x), which the library does not have.

The two functions are compiled; the averages of the theory are done by quadrature, which reports its accuracy.

Run it with `python examples/own_activation.py`.
"""

import math

import overlaps as ov


def gelu(x):
    return 0.5 * x * (1.0 + math.erf(x / math.sqrt(2.0)))


def gelu_slope(x):
    density = math.exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)
    return 0.5 * (1.0 + math.erf(x / math.sqrt(2.0))) + x * density


def main() -> None:
    activation = ov.Activation("gelu", gelu, gelu_slope)
    problem = ov.Problem(
        data=ov.GaussianInputs(spectrum=ov.Spectrum(eigenvalues=[1.5, 0.5])),
        teacher=ov.Committee(units=1, activation=activation),
        student=ov.Committee(units=2, activation=activation, readout=0.5),
        algorithm=ov.OnlineSGD(rate=0.3),
    )
    start = ov.draw(problem, size=400, seed=0, scale=0.5)
    times = ov.logtimes(0.1, 30, 13)
    theory = ov.solve(problem, start, times)
    print(theory)
    training = ov.train(problem, start, times, runs=8, seed=0, progress=False)
    print(training)

    print("\n  time   error (infinite size)   error (N = 400)")
    for t in times[::3]:
        infinite = float(theory.data["error"].sel(time=t).mean())
        finite = float(training.data["error"].sel(time=t).mean())
        print(f"{t:6.3g}   {infinite:21.6f} {finite:17.6f}")


if __name__ == "__main__":
    main()
