"""Mixtures at three scales, against each other and against reference numbers.

Reference: ODE, SGD and chain of `gmm_k3`, `gmm_k10` and `xor_K4`, with the numbers of the corrected equations. Tests of
means against them have 4.5 standard errors as bound; with some 2000 numbers in all, the chance of a false alarm is 1 %
at most if they were independent, and seeds are fixed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import overlaps as ov
from mixtures import classes, xor, xor_overlaps

DATA = Path(__file__).parent / "data"


def perpendicular(data) -> np.ndarray:
    """Q without what lies in the span of the means, (run, time, K, K)."""
    m, gram = data["m"].values, data["gram"].values
    return data["Q"].values - m @ np.linalg.pinv(gram) @ np.swapaxes(m, -1, -2)


def test_macro_is_the_reference_equation_for_three_classes():
    with np.load(DATA / "gmm_k3.npz") as stored:
        ref = dict(stored)
    problem = classes(3)
    start = ov.Start.from_overlaps(problem, Q=np.eye(3))
    times = np.array([1.0, 5.0, 10.0, 20.0, 50.0])
    data = ov.solve(problem, start, times).data
    at = np.searchsorted(ref["t_ode"], times)
    np.testing.assert_allclose(data["m"].values[0], ref["m_ode"][at], atol=1e-6)
    np.testing.assert_allclose(perpendicular(data)[0], ref["Rperp_ode"][at], atol=1e-6)
    # printed in the reference, four digits
    m, R = data["m"].values[0], perpendicular(data)[0]
    np.testing.assert_allclose(
        [m[2, 0, 0], m[2, 0, 1], R[2, 0, 0], R[2, 0, 1]], [1.1788, -0.5894, 0.6648, 0.0770], atol=6e-5
    )
    np.testing.assert_allclose(
        [m[4, 0, 0], m[4, 0, 1], R[4, 0, 0], R[4, 0, 1]], [2.0371, -1.0185, 0.2327, 0.0676], atol=6e-5
    )


def test_meso_is_the_reference_chain_for_three_classes():
    with np.load(DATA / "gmm_k3.npz") as stored:
        ref = dict(stored)
    problem, runs = classes(3), 40
    start = ov.Start.from_overlaps(problem, Q=0.997 * np.eye(3), size=1000)
    data = ov.sample(problem, start, [10.0, 50.0], runs=runs, seed=3).data
    at = [10, 50]
    for ours, name in ((data["m"].values, "m"), (perpendicular(data), "R")):
        # their runs (20) start from random weights, which adds little at these times
        error = np.sqrt(ours.std(0, ddof=1) ** 2 / runs + ref[f"{name}_chain_std"][at] ** 2 / 20)
        assert np.abs((ours.mean(0) - ref[f"{name}_chain_mean"][at]) / error).max() < 4.5


def test_ten_classes_by_sobol_points():
    with np.load(DATA / "gmm_k10.npz") as ref:
        problem = classes(10)
        start = ov.Start.from_overlaps(problem, Q=np.eye(10))
        result = ov.solve(problem, start, ref["times"])
        apart = np.abs(result.data["m"].values[0] - ref["m_ode"])
        assert apart.max() < 3 * result.accuracy("m") and apart.max() < 5e-3
        assert np.abs(perpendicular(result.data)[0] - ref["Rperp_ode"]).max() < 5e-3
        assert abs(result.data["m"].values[0, -1, 0, 0] - 2.1071) < 2e-3
        # finite size: R_aa at t = 50 is .2796 with the dimensions that are left, .2824 without; the chain says .2797(7)
        inside = problem.data.dimensions(1000)[0]
        chain = ov.sample(
            problem, ov.Start.from_overlaps(problem, Q=0.99 * np.eye(10), size=int(inside)), [50.0], runs=6
        )
        R = np.diagonal(perpendicular(chain.data)[:, 0], axis1=1, axis2=2).mean(1)
        assert abs(R.mean() - 0.2797) < 4.5 * np.hypot(R.std(ddof=1) / np.sqrt(6), 0.0007)


def test_xor_is_the_reference():
    with np.load(DATA / "xor_K4.npz") as stored:
        ref = dict(stored)
    problem = xor(4, readout=ref["v0"])
    mu, nu = ref["mu0"], ref["nu0"]
    Q = ref["R_ode"][0] + np.outer(mu, mu) + np.outer(nu, nu)
    start = ov.Start.from_overlaps(problem, Q=Q, m=xor_overlaps(mu, nu), size=1000)
    times = np.array([5, 20, 60])
    theory = ov.solve(problem, start, times, accuracy=5e-3)
    np.testing.assert_allclose(theory.data["v"].values[0], ref["v_ode"][times], atol=3e-3)
    np.testing.assert_allclose(theory.data["m"].values[0, :, :, 0], ref["mu_ode"][times], atol=3e-3)
    np.testing.assert_allclose(theory.data["m"].values[0, :, :, 2], ref["nu_ode"][times], atol=3e-3)
    np.testing.assert_allclose(perpendicular(theory.data)[0], ref["R_ode"][times], atol=3e-3)
    assert abs(theory.data["v"].values[0, 1, 0] - 1.2816) < 2e-3
    assert abs(theory.data["m"].values[0, 2, 0, 0] - 1.583) < 3e-3
    runs = 60
    chain = ov.sample(problem, start, times, runs=runs, seed=5)
    for ours, name in (
        (chain.data["v"].values, "v"),
        (chain.data["m"].values[..., 0], "mu"),
        (chain.data["m"].values[..., 2], "nu"),
        (perpendicular(chain.data), "R"),
    ):
        error = np.sqrt(ours.std(0, ddof=1) ** 2 / runs + ref[f"{name}_chain_std"][times] ** 2 / 200)
        assert np.abs((ours.mean(0) - ref[f"{name}_chain_mean"][times]) / error).max() < 4.5
    assert ov.compare(theory, chain).verdict == "agrees"


def test_general_classes_agree_at_all_scales():
    """Means that are not orthogonal, unequal weights and variances, two classes of one label."""
    problem = classes(
        3,
        gram=[[1.0, 0.3, 0.0, 0.2], [0.3, 1.0, -0.2, 0.0], [0.0, -0.2, 0.8, 0.0], [0.2, 0.0, 0.0, 1.1]],
        weights=[0.4, 0.3, 0.2, 0.1],
        variance=[0.1, 0.2, 0.3, 0.05],
        labels=[0, 1, 2, 0],
        decay=0.05,
        rate=2.0,
    )
    start = ov.draw(problem, 400, seed=2)
    times = [2.0, 10.0, 20.0]
    macro = ov.solve(problem, start, times)
    meso = ov.sample(problem, start, times, runs=60, seed=1)
    micro = ov.train(problem, start, times, runs=20, seed=1)
    assert ov.compare(macro, meso).verdict in ("agrees", "finite-size")
    assert ov.compare(macro, micro, resolve=0.2).verdict in ("agrees", "finite-size")
    assert ov.compare(meso, micro, resolve=0.2, level=1e-4).verdict != "disagrees"


@pytest.mark.parametrize("activation", ["erf", "tanh"])
def test_smooth_networks_on_labels_agree_at_all_scales(activation):
    for loss in ("logistic", "square"):
        problem = ov.Problem(
            data=ov.GaussianMixture(means=2, labels=[0, 1], variance=0.3),
            student=ov.Committee(2, activation, [1.0, -0.5], train_readout=True),
            algorithm=ov.OnlineSGD(1.0, decay=0.01),
            loss=loss,
        )
        start = ov.draw(problem, 300, seed=2)
        macro = ov.solve(problem, start, [2.0, 8.0])
        meso = ov.sample(problem, start, [2.0, 8.0], runs=80, seed=1)
        assert ov.compare(macro, meso).verdict in ("agrees", "finite-size")


@pytest.mark.parametrize(("k", "value"), [(3, 2.221653), (10, 2.819037)])
def test_no_noise_is_variance_zero(k, value):
    """The limit of no noise needs no other equation: long times give its fixed point, R_perp falls as e^(-2βt)."""
    problem = classes(k, variance=0.0)
    start = ov.Start.from_overlaps(problem, Q=np.eye(k))
    data = ov.solve(problem, start, [50.0, 1500.0]).data
    m = data["m"].values[0, -1]
    np.testing.assert_allclose(np.diag(m), value, atol=2e-6)
    np.testing.assert_allclose(m[0, 1:], -value / (k - 1), atol=2e-6)
    np.testing.assert_allclose(perpendicular(data)[0, 0], np.exp(-1.0) * np.eye(k), atol=1e-6)


@pytest.mark.parametrize(
    ("k", "variance", "time", "m", "R"),
    # the second is the reference's "long-time" number, which is that of time 400: R is still falling there
    [(3, 0.1, 1200.0, 2.2213, 0.0543), (3, 0.01, 400.0, 2.2367, 0.0016), (10, 0.1, 1200.0, 2.603, 0.083)],
)
def test_long_times_with_noise(k, variance, time, m, R):
    problem = classes(k, variance=variance)
    start = ov.Start.from_overlaps(problem, Q=np.eye(k))
    data = ov.solve(problem, start, [time], accuracy=1e-2 if k > 5 else None).data
    digit = 2e-3 if k > 5 else 1e-4
    np.testing.assert_allclose(data["m"].values[0, 0, 0, 0], m, atol=10 * digit if k > 5 else digit)
    np.testing.assert_allclose(perpendicular(data)[0, 0, 0, 0], R, atol=digit)


def test_little_noise_tends_to_the_flow_without_it():
    """ReLU units slide along their kinks without noise, which macro refuses; with little it is near the law of that."""
    v, mu, nu = np.array([1.0, -0.9, 0.8]), np.array([0.3, 0.1, -0.2]), np.array([0.1, 0.3, 0.1])
    still = xor(3, variance=0.0, decay=0.05, readout=v)
    Q = np.outer(mu, mu) + np.outer(nu, nu)
    start = ov.Start.from_overlaps(still, Q=Q, m=xor_overlaps(mu, nu))
    with pytest.raises(ov.InputError, match="slides along its kinks"):
        ov.solve(still, start, [1.0])
    flow = ov.laws.xor_flow(v, mu, nu, 0.05, [5.0, 20.0])
    apart = []
    for variance in (1e-2, 2.5e-3):
        noisy = xor(3, variance=variance, decay=0.05, readout=v)
        start = ov.Start.from_overlaps(noisy, Q=Q, m=xor_overlaps(mu, nu))
        data = ov.solve(noisy, start, [5.0, 20.0], accuracy=1e-3).data  # what is compared is .03 and more
        ours = (data["v"].values[0], data["m"].values[0, :, :, 0], data["m"].values[0, :, :, 2])
        apart.append(max(np.abs(a - b).max() for a, b in zip(ours, flow, strict=True)))
    # the error is of the order of the square root of the variance
    assert apart[1] < 0.1 and 0.35 < apart[1] / apart[0] < 0.65


def test_the_moment_hierarchy_refuses_means():
    with pytest.raises(ov.InputError, match="inputs of mean zero"):
        ov.solve(classes(3), ov.draw(classes(3), 20), [1.0], system="moments")


def test_a_training_run_looks_where_it_is_told():
    """Observers see the weights of the run itself, and the inputs it was trained on."""

    class Eye:
        times = (1.0, 2.0)

        def variables(self, problem, start):
            return {"weights": ("student", "coordinate"), "first": ("coordinate",)}

        def begin(self, problem, start, redraw, seed):
            X, labels = redraw(7)
            assert X.shape == (7, 30) and set(labels) <= {0, 1, 2}

            class Watch:
                def observe(self, W, v):
                    return {"weights": W.copy(), "first": X[0]}

            return Watch()

    problem = classes(3)
    start = ov.draw(problem, 30)
    run = ov.train(problem, start, [0.0, 1.0, 2.0], runs=3, observe=Eye())
    W = run.data["weights"].values
    assert W.shape == (3, 2, 3, 30)
    np.testing.assert_allclose(W @ np.swapaxes(W, -1, -2) / 30, run.data["Q"].values[:, 1:], atol=1e-12)
    with pytest.raises(ov.InputError, match="time 1 is not among times"):
        ov.train(problem, start, [0.0, 2.0], observe=Eye())


@pytest.mark.parametrize("units", [3, 12])
def test_redrawn_inputs_are_those_of_the_run(units):
    """One step from zero weights moves along the first input: it is the one that is drawn again."""

    class First:
        times = None

        def variables(self, problem, start):
            return {"move": ("coordinate",), "input": ("coordinate",)}

        def begin(self, problem, start, redraw, seed):
            x = redraw(1)[0][0]

            class Watch:
                def observe(self, W, v):
                    return {"move": W[0].copy(), "input": x}

            return Watch()

    problem = xor(units, activation="tanh")
    start = ov.Start.from_weights(problem, np.zeros((units, 40)))
    data = ov.train(problem, start, [1 / 40], runs=2, observe=First()).data
    move, x = data["move"].values[:, 0], data["input"].values[:, 0]
    cosine = np.sum(move * x, 1) / np.linalg.norm(move, axis=1) / np.linalg.norm(x, axis=1)
    np.testing.assert_allclose(np.abs(cosine), 1.0, atol=1e-12)


class Weights:
    """An observer that keeps the weights."""

    times = None

    def variables(self, problem, start):
        return {"weights": ("student", "coordinate")}

    def begin(self, problem, start, redraw, seed):
        class Watch:
            def observe(self, W, v):
                return {"weights": W.copy()}

        return Watch()


def test_looks_have_the_time_of_their_step():
    """Times inside one step are one look; a time between two steps is seen at the first, and says so."""
    problem = classes(3)
    start = ov.draw(problem, 10)
    data = ov.train(problem, start, [0.0, 0.05, 0.1, 0.15, 0.5], runs=2, observe=Weights()).data
    assert data["observed"].values.tolist() == [0.0, 0.1, 0.5]
    W = data["weights"].values
    Q = W @ np.swapaxes(W, -1, -2) / 10
    np.testing.assert_allclose(Q, data["Q"].sel(time=[0.0, 0.1, 0.5]).values, atol=1e-13)
    with pytest.raises(ov.InputError, match="observe: expected an observer"):
        ov.train(problem, start, [1.0], observe="hessian")


def test_what_was_seen_before_a_divergence_is_kept_and_no_more():
    problem = ov.Problem(
        data=ov.GaussianMixture(means=2, labels=[-1, 1]),
        student=ov.Committee(2, "linear", train_readout=True),
        algorithm=ov.OnlineSGD(30.0),
    )
    start = ov.draw(problem, 20, seed=0)
    with pytest.raises(ov.NumericalError) as caught:
        ov.train(problem, start, [0.0, 0.1, 5.0, 10.0], runs=2, observe=Weights())
    partial = caught.value.partial.data
    assert partial["observed"].values.max() <= partial["time"].values.max()
    assert np.isfinite(partial["weights"]).all()
