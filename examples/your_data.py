"""Your own data: what to expect of learning on them, and where training parts from Gaussian theory.

The data here are the handwritten digits that come with the library; put any table of samples × columns in their place,
an array or the path of a .npy, .npz or .csv file.

Run it with `python examples/your_data.py your_data.png`; the argument is where the picture goes.
"""

import sys

import matplotlib

matplotlib.use("Agg")  # a file, not a window

import overlaps as ov


def main(path: str = "your_data.png") -> None:
    data = ov.Samples(ov.digits())
    forecast = ov.forecast(data.spectrum, rate=0.1, units=4)
    print(forecast)
    forecast.plot().savefig(path, dpi=150)
    print(f"picture: {path}")

    # Two erf units learn from two: on the images themselves, and on Gaussian inputs of the same covariance and size.
    problem = ov.Problem(
        data=data,
        teacher=ov.Committee(units=2),
        student=ov.Committee(units=2),
        algorithm=ov.OnlineSGD(rate=0.1),
    )
    start = ov.draw(problem, size=data.eigenvalues.size, seed=0, scale=0.5)
    times = ov.logtimes(0.1, 100, 7)
    training = ov.train(problem, start, times, runs=50, seed=0, progress=False)
    gaussian = ov.sample(problem, start, times, runs=50, seed=0, progress=False)
    print("\n  time   images   Gaussian   ratio")
    for t in times:
        real, theory = (float(result.data["error"].sel(time=t).mean()) for result in (training, gaussian))
        print(f"{t:6.3g} {real:8.4f} {theory:10.4f} {real / theory:7.3f}")
    print()
    print(ov.compare(gaussian, training))


if __name__ == "__main__":
    main(*sys.argv[1:2])
