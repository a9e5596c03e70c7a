"""Starting points: weights, overlaps, sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import overlaps as ov
from overlaps.problem.start import block_overlaps
from problems import problem

# --- dimensions per level --------------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(st.lists(st.floats(1e-4, 1), min_size=1, max_size=12), st.integers(0, 5000))
def test_dimensions_fill_the_size(shares: list[float], extra: int) -> None:
    """Dimensions lost or invented by rounding, an empty level, a level more than one off its share for no reason."""
    fractions = np.array(shares) / np.sum(shares)
    size = len(shares) + extra
    n = ov.GaussianInputs(ov.Spectrum([1.0] * len(shares), fractions)).dimensions(size)
    assert n.sum() == size and n.min() >= 1
    ideal = fractions * size
    if ideal.min() >= 1:  # otherwise levels that are too small take from the others
        assert np.all(np.abs(n - ideal) < 1 + 1e-6)


@pytest.mark.parametrize(
    ("fractions", "size", "expected"),
    [
        ([0.5, 0.3, 0.2], 10, [5, 3, 2]),
        ([0.5, 0.3, 0.2], 11, [6, 3, 2]),  # 5.5, 3.3, 2.2
        ([0.46, 0.34, 0.2], 12, [6, 4, 2]),  # 5.52, 4.08, 2.4
        ([0.98, 0.01, 0.01], 10, [8, 1, 1]),
        ([0.1] * 10, 10, [1] * 10),
        ([0.1] * 10, 30, [3] * 10),
    ],
)
def test_largest_remainders(fractions: list[float], size: int, expected: list[int]) -> None:
    n = ov.GaussianInputs(ov.Spectrum([1.0] * len(fractions), fractions)).dimensions(size)
    assert n.tolist() == expected


@pytest.mark.parametrize("size", [0, 3, -1, 2.5, "ten", None])
def test_sizes_that_cannot_hold_the_levels(size: Any) -> None:
    p = problem(spectrum=ov.PowerLaw(4, 0.5))
    with pytest.raises(ov.InputError, match=r"^size: "):
        ov.draw(p, size)


def test_size_below_levels_says_what_would_do() -> None:
    with pytest.raises(ov.InputError, match="size: 3 dimensions cannot hold 4 levels; use size >= 4"):
        ov.draw(problem(spectrum=ov.PowerLaw(4, 0.5)), 3)


# --- weights ---------------------------------------------------------------------------------------------------------


def test_block_overlaps_equal_a_naive_loop() -> None:
    rng = np.random.default_rng(0)
    W, B = rng.standard_normal((3, 20)), rng.standard_normal((2, 20))
    for dimensions in ([20], [1, 4, 15], [1] * 20):
        Q, R, T = block_overlaps(W, B, np.array(dimensions))
        low = 0
        for b, n in enumerate(dimensions):
            part = slice(low, low + n)
            for i in range(3):
                for j in range(3):
                    assert Q[b, i, j] == pytest.approx(sum(W[i, part] * W[j, part]) / 20, abs=1e-14)
                for m in range(2):
                    assert R[b, i, m] == pytest.approx(sum(W[i, part] * B[m, part]) / 20, abs=1e-14)
            for m in range(2):
                for n_ in range(2):
                    assert T[b, m, n_] == pytest.approx(sum(B[m, part] * B[n_, part]) / 20, abs=1e-14)
            low += n


def test_draw_is_reproducible_and_scaled() -> None:
    """Same seed, same bits; the seed of the student does not depend on its scale."""
    p = problem(students=3, spectrum=ov.PowerLaw(5, 0.5))
    a, b, c = ov.draw(p, 500, seed=1, scale=0.1), ov.draw(p, 500, seed=1, scale=0.1), ov.draw(p, 500, seed=2, scale=0.1)
    assert np.array_equal(a.student, b.student) and np.array_equal(a.teacher, b.teacher)
    assert not np.array_equal(a.student, c.student)
    assert np.array_equal(a.student, 0.1 * ov.draw(p, 500, seed=1).student)
    assert a.student.shape == (3, 500) and a.teacher.shape == (2, 500)
    # 1500 squared normals: relative standard deviation √(2/1500) = 0.037
    assert np.mean(a.student**2) == pytest.approx(0.01, rel=5 * 0.037)
    assert np.mean(a.teacher**2) == pytest.approx(1, rel=5 * 0.045)
    assert a.size == 500 and a.dimensions.tolist() == [100] * 5 and a.fractions.tolist() == [0.2] * 5
    assert np.all(ov.draw(p, 500, scale=0.0).Q == 0)


def test_overlaps_of_drawn_weights() -> None:
    p = problem(students=3, spectrum=ov.PowerLaw(4, 0.5))
    s = ov.draw(p, 50, seed=3)
    assert s.Q.sum(0) == pytest.approx(s.student @ s.student.T / 50)
    assert s.R.sum(0) == pytest.approx(s.student @ s.teacher.T / 50)
    assert s.gram.shape == (4, 5, 5)
    assert np.linalg.eigvalsh(s.gram).min() > -1e-12
    assert s.gram[:, :3, 3:] == pytest.approx(s.R) and s.gram[:, 3:, 3:] == pytest.approx(s.T)


def test_readouts_of_a_start() -> None:
    p = problem(readout=[0.5, -1.0])
    W, B = np.ones((2, 5)), np.zeros((2, 5))
    s = ov.Start.from_weights(p, student=W, teacher=B)
    assert s.v.tolist() == [0.5, -1.0] and s.u.tolist() == [1.0, 1.0]
    s = ov.Start.from_weights(p, student=W, teacher=B, student_readout=[1, 2], teacher_readout=[3, 4])
    assert s.v.tolist() == [1.0, 2.0] and s.u.tolist() == [3.0, 4.0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"student": np.ones((3, 5))}, r"student: expected shape \(2, any\), got \(3, 5\)"),
        ({"student": np.ones(5)}, r"student: expected shape"),
        ({"teacher": np.ones((2, 6))}, r"teacher: expected shape \(2, 5\), got \(2, 6\)"),
        ({"student": np.full((2, 5), np.nan)}, "student: has entries that are not finite"),
        ({"student_readout": [1.0]}, r"student_readout: expected shape \(2\), got \(1,\)"),
        ({"teacher_readout": [[1.0, 1.0]]}, "teacher_readout: expected shape"),
        ({"student": "random"}, "student: expected an array of finite numbers"),
    ],
)
def test_bad_weights(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ov.InputError, match=words):
        ov.Start.from_weights(problem(), **{"student": np.ones((2, 5)), "teacher": np.ones((2, 5)), **change})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"scale": -1}, "scale: expected"),
        ({"seed": -1}, "seed: expected"),
        ({"seed": 0.5}, "seed: expected a whole number"),
    ],
)
def test_bad_draws(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ov.InputError, match=words):
        ov.draw(problem(), 10, **options)


def test_weights_given_are_not_changed_by_training() -> None:
    p = problem(students=1, teachers=1)
    W, B = np.ones((1, 5)), np.ones((1, 5))
    s = ov.Start.from_weights(p, student=W, teacher=B)
    W[0, 0] = 7
    assert s.student[0, 0] == 1
    ov.train(p, s, [1.0], runs=1, progress=False)
    assert np.all(s.student == 1) and np.all(s.teacher == 1)


# --- overlaps --------------------------------------------------------------------------------------------------------


def test_from_overlaps_is_what_was_given() -> None:
    p = problem()
    Q, R, T = np.diag([0.5, 0.4]), np.full((2, 2), 0.1), np.eye(2)
    s = ov.Start.from_overlaps(p, Q=Q, R=R, T=T)
    assert np.array_equal(s.Q[0], Q) and np.array_equal(s.R[0], R) and np.array_equal(s.T[0], T)
    assert s.size is None and s.student is None and "infinite size" in repr(s)
    sized = ov.Start.from_overlaps(p, Q=Q, R=R, T=T, size=100)
    assert sized.size == 100 and "N = 100" in repr(sized)


def test_per_level_overlaps() -> None:
    p = problem(spectrum=ov.PowerLaw(3, 0.5))
    drawn = ov.draw(p, 30, seed=1)
    s = ov.Start.from_overlaps(p, Q=drawn.Q, R=drawn.R, T=drawn.T, size=60)
    assert np.array_equal(s.Q, drawn.Q) and s.dimensions.tolist() == [20, 20, 20]
    with pytest.raises(ov.InputError, match=r"Q: inputs have 3 levels, so one matrix per level is needed"):
        ov.Start.from_overlaps(p, Q=drawn.Q[0], R=drawn.R, T=drawn.T)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"Q": np.eye(3)}, "Q: expected shape"),
        ({"R": np.ones((2, 3))}, "R: expected shape"),
        ({"R": 0.1}, "R: expected shape"),
        ({"T": [[1.0, 0.5], [0.2, 1.0]]}, "T: expected symmetric"),
        ({"Q": [[1.0, 0.5], [0.2, 1.0]]}, "Q: expected symmetric"),
        ({"R": 2 * np.eye(2)}, "Q, R, T: no weights have these overlaps.*level 0 has the negative"),
        ({"Q": -np.eye(2)}, "Q, R, T: no weights have these overlaps"),
        ({"Q": [[np.inf, 0], [0, 1]]}, "Q: has entries that are not finite"),
    ],
)
def test_overlaps_that_no_weights_have(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ov.InputError, match=words):
        ov.Start.from_overlaps(problem(), **{"Q": np.eye(2), "R": np.zeros((2, 2)), "T": np.eye(2), **change})


def test_another_size_keeps_the_overlaps() -> None:
    p = problem(spectrum=ov.Spectrum([1.0, 2.0], [0.3, 0.7]))
    s = ov.draw(p, 100, seed=1)
    t = s.at_size(p, 1000)
    assert t.size == 1000 and t.dimensions.tolist() == [300, 700] and t.student is None
    assert np.array_equal(t.Q, s.Q) and np.array_equal(t.R, s.R)


def test_size_too_small_for_the_overlaps() -> None:
    """Four independent vectors do not fit into three dimensions; collinear ones fit into one."""
    p = problem()
    s = ov.Start.from_overlaps(p, Q=np.eye(2), R=np.zeros((2, 2)), T=np.eye(2))
    with pytest.raises(ov.InputError, match="size: level 0 would have 3 dimensions but its overlaps need 4"):
        s.at_size(p, 3)
    ones = np.ones((2, 2))
    assert ov.Start.from_overlaps(p, Q=ones, R=ones, T=ones, size=1).size == 1


def test_scales_ask_for_what_they_need() -> None:
    p = problem()
    s = ov.Start.from_overlaps(p, Q=np.eye(2), R=np.zeros((2, 2)), T=np.eye(2))
    with pytest.raises(ov.InputError, match="start: meso needs a size"):
        ov.sample(p, s, [1.0])
    with pytest.raises(ov.InputError, match="start: micro needs weights"):
        ov.train(p, s.at_size(p, 10), [1.0])


def test_repr() -> None:
    p = problem(students=3, spectrum=ov.PowerLaw(4, 0.5))
    assert repr(ov.draw(p, 50)) == "Start(weights and overlaps: K = 3, M = 2, 4 levels, N = 50)"


def test_a_start_of_another_problem_is_refused() -> None:
    """Readouts and fractions of the start would silently replace those of the problem."""
    start = ov.draw(problem(), 40)
    for other, words in (
        (problem(teacher_readout=3.0), "another teacher readout"),
        (problem(readout=0.5), "another student readout"),
    ):
        for scale in (ov.solve, ov.sample, ov.train):
            with pytest.raises(ov.InputError, match=words):
                scale(other, start, [1.0])
    given = ov.Start.from_weights(problem(), start.student, start.teacher, teacher_readout=[3.0, 3.0])
    assert ov.solve(problem(), given, [0.0]).data["error"].item() == pytest.approx(
        ov.solve(problem(teacher_readout=3.0), ov.draw(problem(teacher_readout=3.0), 40), [0.0]).data["error"].item()
    )
    halves, tenth = ov.Spectrum([2.0, 1.0]), ov.Spectrum([2.0, 1.0], [0.1, 0.9])
    with pytest.raises(ov.InputError, match="other fractions"):
        ov.solve(problem(spectrum=tenth), ov.draw(problem(spectrum=halves), 40), [1.0])
    with pytest.raises(ov.InputError, match="levels"):
        start.at_size(problem(spectrum=halves), 100)


def test_a_start_that_counts_as_diverged_is_refused() -> None:
    p = problem()
    with pytest.raises(ov.InputError, match="smaller scale"):
        ov.sample(p, ov.draw(p, 50, scale=2e4), [0.0], runs=2)
