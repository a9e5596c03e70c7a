"""The moment hierarchy: equal to the equation of levels where it is well conditioned, refused where it is not."""

from __future__ import annotations

import numpy as np
import pytest

import overlaps as ov
from overlaps.averages import method_for
from overlaps.online.moments import MomentHierarchy


def committee(levels: int, beta: float = 1.0, K: int = 2, M: int = 2, **change: float) -> ov.Problem:
    return ov.Problem(
        data=ov.GaussianInputs(ov.PowerLaw(levels, beta)),
        teacher=ov.Committee(M, readout=M**-0.5),
        student=ov.Committee(K, readout=M**0.5 / K),
        algorithm=ov.OnlineSGD(1.0, **change),
    )


def apart(problem: ov.Problem, times: list[float], seed: int = 1, doubtful: bool = False) -> dict[str, float]:
    """Differences of the two solutions; `doubtful`: also where the moments say that they miss the usual accuracy."""
    start = ov.draw(problem, 100 * problem.data.eigenvalues.size, seed=seed, scale=0.3)
    levels = ov.solve(problem, start, times)
    try:
        moments = ov.solve(problem, start, times, system="moments")
    except ov.NumericalError as error:
        if not doubtful or error.partial is None:
            raise
        assert "relative accuracy" in str(error)
        moments = error.partial
        assert moments.time.size == len(times)
    return {name: float(np.abs(levels.data[name] - moments.data[name]).max()) for name in ("Q", "R", "error")}


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("levels", [1, 2, 3, 4])
def test_equal_to_the_levels(levels: int, K: int) -> None:
    assert max(apart(committee(levels, K=K), [1, 20]).values()) < 1e-9


def test_with_decay_and_gradient_flow() -> None:
    assert max(apart(committee(3, decay=0.2), [1, 20]).values()) < 1e-9
    p = committee(3)
    flow = ov.Problem(data=p.data, teacher=p.teacher, student=p.student, algorithm=ov.GradientFlow(1.0))
    assert max(apart(flow, [1, 20]).values()) < 1e-9
    # and the two algorithms are not the same thing
    start = ov.draw(p, 300, seed=1, scale=0.3)
    error = [float(ov.solve(q, start, [4]).data["error"][0, 0]) for q in (p, flow)]
    assert error[1] < 0.9 * error[0]


@pytest.mark.parametrize(("levels", "beta"), [(11, 0.25), (9, 1.0), (8, 2.0)])
def test_six_digits_up_to_the_limit(levels: int, beta: float) -> None:
    """The largest numbers of levels that are not refused, from five starts.

    Relative to an error that has become small that may be less than macro accepts, which it then says.
    """
    found = [max(apart(committee(levels, beta), [5, 20], seed, doubtful=True).values()) for seed in range(1, 6)]
    assert max(found) < 1e-6
    with pytest.raises(ov.InputError, match="system='levels'"):
        apart(committee(levels + 1, beta), [5, 20])


def test_what_is_refused_would_have_been_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve levels, no guard: the stated accuracy is not reached, and the error is far above it."""
    monkeypatch.setattr("overlaps.online.moments.WORST", np.inf)
    p = committee(12)
    start = ov.draw(p, 1200, seed=1, scale=0.3)
    with pytest.raises(ov.NumericalError) as refused:
        ov.solve(p, start, [5, 20], system="moments")
    wrong = np.abs(refused.value.partial.data["Q"] - ov.solve(p, start, [5, 20]).data["Q"]).max()
    assert float(wrong) > 1e-5


def test_moments_of_the_state_are_the_papers() -> None:
    """Q^(l) = Σ_b ω_b^l Q_b in units of the largest eigenvalue, and the closure is Cayley and Hamilton's."""
    p = committee(4)
    start = ov.draw(p, 400, seed=3)
    motion = MomentHierarchy(p, start, method_for(p, start.u))
    z = p.data.eigenvalues / p.data.eigenvalues.max()
    Q, R, _ = motion.unpack(motion.pack(start.Q, start.R, start.v))
    for moment in range(4):
        np.testing.assert_allclose(Q[..., moment], np.einsum("b,bij->ij", z**moment, start.Q), rtol=1e-13)
    fourth = np.einsum("b,bij->ij", z**4, start.R)
    np.testing.assert_allclose(R @ motion.closure, fourth, rtol=1e-10)


def test_refusals() -> None:
    p = committee(2)
    start = ov.draw(p, 100)
    with pytest.raises(ov.InputError, match="system"):
        ov.solve(p, start, [1], system="moment")
    many = committee(1000)
    with pytest.raises(ov.InputError, match="1000 levels are beyond double precision"):
        ov.solve(many, ov.draw(many, 1000), [1], system="moments")
    with pytest.raises(ov.InputError, match="system: expected text, got None"):
        ov.solve(p, start, [1], system=None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ov.InputError, match="moments equations do not follow"):
        ov.solve(p, start, [1], system="moments", levels=True)


@pytest.mark.parametrize("run", [ov.train, ov.sample])
def test_gradient_flow_has_no_runs(run) -> None:
    p = committee(2)
    flow = ov.Problem(data=p.data, teacher=p.teacher, student=p.student, algorithm=ov.GradientFlow(1.0))
    assert ov.Problem.from_toml(flow.to_toml()) == flow
    with pytest.raises(ov.InputError, match="GradientFlow draws no samples"):
        run(flow, ov.draw(flow, 100), [1])


def test_gradient_flow_is_the_limit_of_small_rates() -> None:
    p = committee(3)
    start = ov.draw(p, 300, seed=2, scale=0.5)
    flow = ov.solve(
        ov.Problem(data=p.data, teacher=p.teacher, student=p.student, algorithm=ov.GradientFlow(1.0)), start, [2, 8]
    ).data["error"]
    gaps = []
    for rate in (0.02, 0.01):
        slow = ov.Problem(data=p.data, teacher=p.teacher, student=p.student, algorithm=ov.OnlineSGD(rate))
        error = ov.solve(slow, start, np.array([2, 8]) / rate).data["error"]
        gaps.append(np.abs(error.values - flow.values).max())
    assert gaps[1] == pytest.approx(gaps[0] / 2, rel=0.05)
