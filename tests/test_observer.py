"""The observer along training: what it records is what the dense matrices at the recorded weights say."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import mixtures
import overlaps as ov
from mixtures import classes
from overlaps.interface.errors import InputError, NumericalError
from overlaps.spectra import observer as module
from overlaps.spectra.alignment import subspace_alignment
from overlaps.spectra.batch import Batch
from overlaps.spectra.eigenpairs import eigenpairs
from overlaps.spectra.empirical import gradient_matrix, hessian
from overlaps.spectra.observer import Observer

KINDS = {"hessian": hessian, "gradient": gradient_matrix}


def xor() -> ov.Problem:
    return mixtures.xor(5, 0.05, readout=[1.0, -0.8, 0.9, -1.1, 0.6])


def no_training_samples(count: int) -> Any:
    raise AssertionError("test samples do not come from the run")


def check_look(
    problem: ov.Problem, start: ov.Start, batch: Batch, seen: dict[str, Any], W: Any, v: Any, k: int
) -> None:
    """Compare one look with dense eigenvectors of matrices built anew."""
    point = ov.Start.from_weights(problem, W, teacher=start.teacher, student_readout=v)
    for kind, build in KINDS.items():
        matrix = build(problem, point, batch)
        for i, row in enumerate(W):
            values, vectors = np.linalg.eigh(matrix.block(i).dense())
            order = np.argsort(-abs(values))[:k]
            assert np.allclose(seen[f"{kind}_values"][i], values[order], rtol=0, atol=1e-7 * abs(values).max())
            assert np.isclose(
                seen[f"{kind}_alignment"][i], subspace_alignment(row, vectors[:, order]), rtol=0, atol=1e-6
            )
            if start.means is not None and len(start.means):
                top = abs(start.means @ vectors[:, order[0]]) / np.linalg.norm(start.means, axis=1)
                assert np.allclose(seen[f"{kind}_top_mean"][i], top, rtol=0, atol=1e-6)
        assert np.all(seen[f"{kind}_residual"] <= 1e-8)
        if problem.student.train_readout:
            values, vectors = np.linalg.eigh(matrix.block("v").dense())
            assert np.allclose(seen[f"{kind}_readout_values"], values[::-1], rtol=0, atol=1e-12)
            rho = subspace_alignment(v, vectors[:, ::-1][:, :k])
            assert np.isclose(seen[f"{kind}_readout_alignment"], rho, rtol=0, atol=1e-10)


@pytest.mark.parametrize("problem", [classes(), xor()], ids=["softmax", "xor"])
def test_looks_are_those_of_dense_matrices(problem: ov.Problem) -> None:
    """Along a made-up path of weights, with followed eigenpairs, at a tight tolerance."""
    start = ov.draw(problem, size=60, seed=1)
    watch = Observer(tolerance=1e-9, samples=300, count=3)
    observer = watch.begin(problem, start, no_training_samples, seed=5)
    batch = Batch.draw(problem, start, 300, seed=5)
    rng = np.random.default_rng(0)
    assert start.student is not None
    W, v = start.student.copy(), start.v.copy()
    for _ in range(4):
        seen = observer.observe(W, v)
        assert {name for name in seen} == set(watch.variables(problem, start))
        check_look(problem, start, batch, seen, W, v, 3)
        W, v = W + 0.2 * rng.standard_normal(W.shape), v + 0.1 * rng.standard_normal(v.shape)


def test_single_precision_follows_as_well() -> None:
    """Above the dense sizes products are single: values and alignments within what the tolerance leaves."""
    problem = classes(4)
    start = ov.draw(problem, size=700, seed=1)
    assert start.student is not None and start.means is not None
    observers = [
        Observer(tolerance=t, blocks=[0, 2], samples=1000).begin(problem, start, no_training_samples, seed=2)
        for t in (1e-3, 1e-9)
    ]
    assert [observer.inputs.dtype for observer in observers] == [np.float32, np.float64]
    for share in (0.0, 0.1, 0.2):
        W = (1 - share) * start.student + 20 * share * start.means
        rough, exact = (observer.observe(W, start.v) for observer in observers)
        for kind in KINDS:
            largest = exact[f"{kind}_values"].max()
            assert np.allclose(rough[f"{kind}_values"], exact[f"{kind}_values"], rtol=0, atol=1e-4 * largest)
            assert np.allclose(rough[f"{kind}_alignment"], exact[f"{kind}_alignment"], rtol=0, atol=2e-3)
            assert rough[f"{kind}_residual"].max() <= 1e-3


def test_promises_of_the_default_tolerance() -> None:
    """Along a run that aligns: alignments within 0.005, values within 0.001 of the largest, residuals within 0.005."""
    problem = classes(6)
    start = ov.draw(problem, size=600, seed=1)
    weights = Observer(kinds="hessian", blocks=[1], count=1, samples=10, keep_weights=True)
    run = ov.train(problem, start, np.linspace(0, 6, 7), runs=1, observe=weights, progress=False)
    rough, tight = (
        watch.begin(problem, start, no_training_samples, seed=3)
        for watch in (Observer(blocks=[1]), Observer(blocks=[1], tolerance=1e-7))
    )
    for W in run.data["weights"].values[0]:
        seen, exact = rough.observe(W, start.v), tight.observe(W, start.v)
        for kind in KINDS:
            largest = exact[f"{kind}_values"].max()
            assert np.allclose(seen[f"{kind}_values"], exact[f"{kind}_values"], rtol=0, atol=1e-3 * largest)
            assert np.allclose(seen[f"{kind}_alignment"], exact[f"{kind}_alignment"], rtol=0, atol=5e-3)
            assert seen[f"{kind}_residual"].max() <= 5e-3


def test_in_a_training_run() -> None:
    """The hook: shapes, names, times, the run itself unchanged, and weights that are those of the run."""
    problem, times = xor(), [0.0, 1.0, 4.0]
    start = ov.draw(problem, size=40, seed=2)
    watch = Observer(blocks=[1, 4], samples=200, times=[0.0, 4.0], keep_weights=True)
    run = ov.train(problem, start, times, runs=2, seed=3, observe=watch, progress=False)
    plain = ov.train(problem, start, times, runs=2, seed=3, progress=False)
    assert np.array_equal(run.data["Q"], plain.data["Q"])
    assert run.data["observed"].values.tolist() == [0.0, 4.0]
    sizes = {"block": 2, "rank": 2, "mean": 4, "readout_rank": 5, "student": 5, "coordinate": 40}
    for name, dims in watch.variables(problem, start).items():
        assert run.data[name].dims == ("run", "observed", *dims)
        assert run.data[name].shape == (2, 2, *(sizes[d] for d in dims))
    W = run.data["weights"].values[1, 1]
    assert np.allclose(W @ W.T / 40, run.data["Q"].values[1, 2], rtol=0, atol=1e-12)
    assert start.student is not None and np.array_equal(run.data["weights"].values[0, 0], start.student)


@pytest.mark.parametrize("size", [40, 100, 200])
def test_small_networks_are_followed_to_the_end(size: int) -> None:
    """Where pairs that are followed do not converge they are found anew from the dense matrix, in double precision."""
    problem = ov.Problem(
        data=ov.GaussianMixture(means=3, variance=0.1), student=ov.Softmax(3), loss="cross-entropy",
        algorithm=ov.OnlineSGD(1.0, decay=0.01),
    )  # fmt: skip
    for seed in range(3):
        run = ov.train(
            problem, ov.draw(problem, size, seed=seed), [0.0, 0.1, 5.0, 20.0], runs=1, seed=seed, observe=Observer()
        )
        for kind in ("hessian", "gradient"):
            assert run.data[f"{kind}_residual"].values.max() <= 5e-3


def test_training_samples_are_those_of_the_run() -> None:
    """What `redraw` gives is what is averaged over."""
    problem = classes()
    start = ov.draw(problem, size=30, seed=1)
    own = Batch.draw(problem, start, 90, seed=7)
    watch = Observer(source="train", samples=90, tolerance=1e-9)
    observer = watch.begin(problem, start, lambda count: (own.inputs[:count], own.own_labels[:count]), seed=0)
    assert start.student is not None
    check_look(problem, start, own, observer.observe(start.student, start.v), start.student, start.v, 3)


def test_teacher_and_zero_weights() -> None:
    """Without means the rank is that of the teacher; weights of length zero have alignment zero."""
    net = ov.Committee(2, "tanh")
    problem = ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.OnlineSGD(0.1))
    start = ov.draw(problem, size=20, seed=0, scale=0.0)
    watch = Observer()
    assert start.student is not None
    seen = watch.begin(problem, start, no_training_samples, seed=0).observe(start.student, start.v)
    assert seen["hessian_values"].shape == (2, 2) and not seen["hessian_alignment"].any()
    assert all(np.isfinite(value).all() for value in seen.values())
    assert not any("mean" in name or "readout" in name for name in watch.variables(problem, start))


def test_what_does_not_converge_is_recorded_and_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = classes()
    start = ov.draw(problem, size=30, seed=1)
    assert start.student is not None
    observer = Observer(kinds="hessian").begin(problem, start, no_training_samples, seed=0)

    def unconverged(A: Any, count: int, **rest: Any) -> Any:
        raise NumericalError("no luck", quantity="q", time=0.0, partial=eigenpairs(A, count))

    monkeypatch.setattr(module, "eigenpairs", unconverged)
    with pytest.warns(UserWarning, match="no luck"):
        seen = observer.observe(start.student, start.v)
    assert seen["hessian_values"].min() > 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        observer.observe(start.student, start.v)


def test_divergence_loses_nothing() -> None:
    """Weights beyond bounds are recorded as nothing; the run says that it diverged and keeps what came before."""
    problem = classes()
    start = ov.draw(problem, size=30, seed=1)
    assert start.student is not None
    watch = Observer(samples=50)
    observer = watch.begin(problem, start, no_training_samples, seed=0)
    for bad in (np.nan, np.inf, 1e300):
        seen = observer.observe(np.full_like(start.student, bad), start.v)
        assert set(seen) == set(watch.variables(problem, start))
        assert np.isinf(seen["hessian_residual"]).all() and not seen["hessian_values"].any()
    net = ov.Committee(1, "linear")
    wild = ov.Problem(data=ov.GaussianInputs(), teacher=net, student=net, algorithm=ov.OnlineSGD(50.0))
    with pytest.raises(NumericalError) as caught:
        ov.train(wild, ov.draw(wild, size=20), [0, 0.1, 50], runs=1, observe=watch, progress=False)
    assert "hessian_values" in caught.value.partial.data


def refused(match: str, function: Any, *args: Any, **options: Any) -> None:
    with pytest.raises(InputError, match=match):
        function(*args, **options)


def test_refusals() -> None:
    problem = classes()
    start = ov.draw(problem, size=30)
    refused("did you mean 'hessian'", Observer, kinds=("hesian",))
    for kinds in ((), 3, (3,), ("hessian", "hessian"), [["hessian"]]):
        refused("expected 'hessian', 'gradient' or both", Observer, kinds=kinds)
    for blocks in (3, (), None):
        refused("blocks: expected 'all' or different numbers", Observer, blocks=blocks)
    refused("unknown blocks 'some'", Observer, blocks="some")
    refused("different numbers", Observer, blocks=[1, 1])
    refused("unknown source", Observer, source="fresh")
    refused("count: expected at least 1", Observer, count=0)
    refused("tolerance", Observer, tolerance=0)
    refused("increasing", Observer, times=[1, 0])
    refused("keep_weights", Observer, keep_weights=1)
    refused("units 0 to 2, got 3", Observer(blocks=[3]).variables, problem, start)
    refused("no 31 eigenpairs", Observer(count=31).variables, problem, start)
    refused("use fewer", Observer(samples=10**9).variables, problem, start)
    refused("has none", Observer().variables, problem, ov.Start.from_overlaps(problem, np.eye(3)))
