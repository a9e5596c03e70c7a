"""The command line: what it writes, and that every mistake is one line and exit code 2."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import overlaps as ov
from command import command
from overlaps.cli.cost import macro_seconds
from overlaps.cli.experiment import NOTICED, Experiment, Plan
from specs import two_units

POWER_LAW = """[data.spectrum]
kind = "PowerLaw"
levels = 3
exponent = 0.5"""
SMALL = two_units(POWER_LAW, size=60, last=2.0, count=6, meso_runs=20, micro_runs=8)


def refused(monkeypatch, capsys, *arguments: str) -> str:
    """The one line with which a command is refused."""
    code, _, err = command(monkeypatch, capsys, *arguments)
    lines = err.strip().splitlines()
    assert code == 2, err
    assert len(lines) == 1 and lines[0].startswith("overlaps: "), err
    assert "Traceback" not in err
    return lines[0]


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.toml"
    path.write_text(SMALL)
    return path


def test_run_writes_everything_and_the_spec_reproduces_it(spec, tmp_path, monkeypatch, capsys):
    code, out, err = command(monkeypatch, capsys, "run", str(spec), "--out", str(tmp_path / "a"))
    assert code == 0, err
    made = tmp_path / "a"
    names = {"runs", "spec.toml", "macro.nc", "meso.nc", "micro.nc", "figure.png", "verdict.txt", "verdict.json"}
    names |= {f"points {pair}.nc" for pair in ("macro against meso", "macro against micro", "meso against micro")}
    assert {p.name for p in made.iterdir()} == names
    assert str(made / "figure.png") in out and str(made / "verdict.txt") in out
    verdicts = json.loads((made / "verdict.json").read_text())
    assert set(verdicts) == {"macro against meso", "macro against micro", "meso against micro"}
    assert all(v["verdict"] in ("agrees", "finite-size", "disagrees", "underpowered") for v in verdicts.values())
    assert command(monkeypatch, capsys, "run", str(made / "spec.toml"), "--out", str(tmp_path / "b"))[0] == 0
    for scale in ("macro", "meso", "micro"):
        first, again = ov.load(made / f"{scale}.nc"), ov.load(tmp_path / "b" / f"{scale}.nc")
        assert (first.data["Q"].values == again.data["Q"].values).all()


def test_check_says_what_would_run(spec, monkeypatch, capsys):
    code, out, _ = command(monkeypatch, capsys, "check", str(spec))
    assert code == 0 and "closed form (erf)" in out and "spec: ok" in out


FULL_BATCH = """
loss = "logistic"
[data]
kind = "GaussianMixture"
gram = [[1.0, -0.5], [-0.5, 1.0]]
[student]
units = 1
activation = "softplus"
[algorithm]
kind = "FullBatch"
steps = 3
rate = 0.2
ratio = 2.0
[run]
size = 80
meso_runs = 40
"""


def test_full_batch_runs_all_its_steps(tmp_path, monkeypatch, capsys):
    path = tmp_path / "spec.toml"
    path.write_text(FULL_BATCH)
    code, out, err = command(monkeypatch, capsys, "check", str(path))
    assert code == 0 and "3 steps on 40 samples" in out, err
    code, out, err = command(monkeypatch, capsys, "run", str(path), "--out", str(tmp_path / "out"))
    assert code == 0 and "macro against meso" in out, err
    macro = ov.load(tmp_path / "out" / "macro.nc")
    assert macro.time.tolist() == [0, 1, 2, 3] and macro.unit == "steps"
    path.write_text(FULL_BATCH + "last = 5.0\n")
    assert "last: times of FullBatch are its steps" in refused(monkeypatch, capsys, "check", str(path))


def test_help_is_quick():
    """Best of three below 0.3 s (a loaded machine may be slow once)."""
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        done = subprocess.run([sys.executable, "-m", "overlaps", "--help"], capture_output=True, text=True, check=True)
        best = min(best, time.perf_counter() - began)
    assert "demo" in done.stdout
    assert best < 0.3


BAD = {
    "unknown field": ("rate = 0.5", "ratee = 0.5", "did you mean 'rate'"),
    "unknown table": ("[student]", "[studnet]", "did you mean 'student'"),
    "unknown activation": ("units = 2\n[student]", 'units = 2\nactivation = "ref"\n[student]', "did you mean"),
    "unknown kind": ('"PowerLaw"', '"PowerLow"', "did you mean 'PowerLaw'"),
    "unknown run field": ("size = 60", "sise = 60", "did you mean 'size'"),
    "negative rate": ("rate = 0.5", "rate = -0.5", "rate: expected a number above 0"),
    "rate is text": ("rate = 0.5", 'rate = "fast"', "rate: expected a number"),
    "rate is nan": ("rate = 0.5", "rate = nan", "rate: expected a finite number"),
    "missing table": ("[algorithm]\nrate = 0.5\n", "", "needs algorithm"),
    "no units": ("[teacher]\nunits = 2", "[teacher]", "needs units"),
    "size below levels": ("size = 60", "size = 2", "cannot hold 3 levels"),
    "readout of wrong length": ("[student]\nunits = 2", "[student]\nunits = 2\nreadout = [1.0]", "one per unit"),
    "negative eigenvalue": (
        'kind = "PowerLaw"\nlevels = 3\nexponent = 0.5',
        'kind = "Spectrum"\neigenvalues = [1.0, -0.5]',
        "none below zero",
    ),
    "fractions not one": (
        'kind = "PowerLaw"\nlevels = 3\nexponent = 0.5',
        'kind = "Spectrum"\neigenvalues = [1.0, 0.5]\nfractions = [0.5, 0.4]',
        "sum of one",
    ),
    "seed too large": ("size = 60", "size = 60\nseed = 1000000000000000000000000", "seed: expected at most"),
    "too many runs": ("meso_runs = 20", "meso_runs = 1000000000000", "meso_runs: expected at most"),
    "too many levels": ("levels = 3", "levels = 10000000000", "levels: expected at most"),
    "too many units": ("units = 2", "units = 1000000", "units: expected at most 10000"),
    "too many steps": ("last = 2.0", "last = 1e15", "steps"),
    "not toml": ("[run]", "[run", "not valid TOML"),
    "trained teacher": ("units = 2\n[student]", "units = 2\ntrain_readout = true\n[student]", "does not learn"),
}


FULL = {"last = 2.0\ncount = 6\n": "", "_runs = 20": "_runs = 0", "_runs = 8": "_runs = 0"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"levels = 3": "levels = 1000000", "size = 60": "size = 1500000"},
            "meso_runs: 20 meso runs of 3,000,000 steps",
        ),
        ({"size = 60": "size = 10000000", "meso_runs = 20": "meso_runs = 0"}, "micro_runs: 8 micro runs of 20,000,000"),
        ({"units = 2": "units = 1000"}, "units: the theory of 1000 students .* solve ends after 600 s"),
        (
            {
                "[student]\nunits = 2": "[student]\nunits = 300",
                "count = 6": "count = 40",
                "_runs = 20": "_runs = 0",
                "_runs = 8": "_runs = 0",
            },
            "units: the theory of 300 students",
        ),
        (
            {"rate = 0.5": "rate = 0.5\nbatch = 1000000000000"},
            "micro_runs: 8 micro runs of 120 steps of 1,000,000,000,000",
        ),
        (
            {"rate = 0.5": "rate = 0.5\nbatch = 1000000000000", "micro_runs = 8": "micro_runs = 0"},
            "meso_runs: 20 meso runs of 120 steps of 1,000,000,000,000 samples.*smaller size, batch or last time",
        ),
        (
            {
                "levels = 3": "levels = 1000000",
                "size = 60": "size = 1500000",
                "_runs = 20": "_runs = 0",
                "_runs = 8": "_runs = 0",
                "count = 6": "count = 40",
            },
            "levels: 1,000,000 of them at 40 times are 6.4 GB",
        ),
        (FULL | {"rate = 0.5": 'kind = "FullBatch"\nsteps = 10000\nrate = 0.5'}, "steps: 20004 columns need 62.9 GB"),
        (
            FULL
            | {
                "rate = 0.5": 'kind = "FullBatch"\nsteps = 10000\nrate = 0.5',
                "units = 2": 'units = 2\nactivation = "linear"',
            },
            "steps: 20004 columns need 12.8 GB",
        ),
    ],
)
def test_what_a_run_could_not_afford_is_refused_at_once(changes: dict[str, str], words: str) -> None:
    text = SMALL
    for old, new in changes.items():
        text = text.replace(old, new)
    began = time.process_time()
    with pytest.raises(ov.InputError, match=words):
        Experiment.from_toml(text)
    assert time.process_time() - began < 1.0  # seconds, where a millisecond is usual: it hung before


def test_ten_classes_cost_what_their_whole_coordinates_do() -> None:
    """Covariances of little variance in most coordinates, which are not followed whole, are affordable."""
    N, rng = 400, np.random.default_rng(0)
    turns = [np.linalg.qr(rng.standard_normal((N, N)))[0][:, :20] * 4 for _ in range(10)]
    data = ov.GaussianClasses(rng.standard_normal((10, N)) / 20, [t @ t.T + 0.01 * np.eye(N) for t in turns])
    problem = ov.Problem(data=data, student=ov.Softmax(10), loss="cross-entropy", algorithm=ov.OnlineSGD(0.2))
    plan = Plan(size=N, meso_runs=0, micro_runs=0)
    text = Experiment(problem, plan).describe()
    assert 0.01 < macro_seconds(problem, plan) < 600
    assert ("macro: about" in text) == (macro_seconds(problem, plan) > NOTICED)


def test_classes_of_rows_cost_as_much_as_gaussians() -> None:
    """(K r)³, as for Gaussian classes of these moments; a regression takes little."""
    rows = np.random.default_rng(0).standard_normal((600, 200))
    data = ov.Samples(rows, np.arange(600) % 2, groups=1)
    plan = Plan(size=200, meso_runs=0, micro_runs=0)
    seconds = []
    for units in (2, 4):
        network = ov.Problem(data=data, student=ov.Committee(units), algorithm=ov.OnlineSGD(0.2))
        seconds.append(macro_seconds(network, plan))
        assert seconds[-1] == pytest.approx(2e3 * (units * 200) ** 3 / 3e10)
    wide = ov.Problem(data=data, student=ov.Committee(40), algorithm=ov.OnlineSGD(0.2))
    with pytest.raises(ov.InputError, match=r"units: the theory of 40 students .* s of CPU time"):
        Experiment(wide, plan)
    linear = ov.Problem(
        data=replace(data, groups=None, digest=""), student=ov.Committee(1, "linear"), algorithm=ov.OnlineSGD(0.2)
    )
    assert macro_seconds(linear, plan) == 0


def test_checking_a_spec_does_not_load_statistics() -> None:
    code = "import sys; from overlaps.cli.experiment import Experiment; sys.exit('scipy.stats' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("case", BAD)
def test_bad_specs_are_one_line_and_leave_nothing(case, tmp_path, monkeypatch, capsys):
    old, new, expected = BAD[case]
    assert old in SMALL
    path = tmp_path / "spec.toml"
    path.write_text(SMALL.replace(old, new, 1))
    assert expected in refused(monkeypatch, capsys, "run", str(path), "--out", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_missing_and_unreadable_specs(tmp_path, monkeypatch, capsys):
    assert "no file" in refused(monkeypatch, capsys, "check", str(tmp_path / "none.toml"))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    assert "cannot be read as text" in refused(monkeypatch, capsys, "check", str(tmp_path / "binary.toml"))
    assert "cannot be read" in refused(monkeypatch, capsys, "check", str(tmp_path))


def test_an_output_folder_that_exists_is_refused_before_anything_runs(spec, tmp_path, monkeypatch, capsys):
    kept = tmp_path / "out"
    kept.mkdir()
    (kept / "mine.txt").write_text("mine")
    assert "exists already" in refused(monkeypatch, capsys, "run", str(spec), "--out", str(kept))
    assert [p.name for p in kept.iterdir()] == ["mine.txt"]


def test_what_the_machine_refuses_is_one_line_too(spec, tmp_path, monkeypatch, capsys):
    """A folder that cannot be made, and more work than anybody would wait for."""
    (tmp_path / "file").write_text("")
    assert "cannot make the folder" in refused(
        monkeypatch, capsys, "run", str(spec), "--out", str(tmp_path / "file" / "x")
    )
    assert "cannot make" in refused(monkeypatch, capsys, "run", str(spec), "--out", str(tmp_path / ("x" * 300)))
    huge = tmp_path / "huge.toml"
    huge.write_text(SMALL.replace("size = 60", "size = 1000000000000").replace("last = 2.0", "last = 0.5"))
    assert "days of a core" in refused(monkeypatch, capsys, "run", str(huge), "--out", str(tmp_path / "y"))


def test_a_problem_in_which_nothing_moves_still_has_a_verdict(tmp_path, monkeypatch, capsys):
    path = tmp_path / "spec.toml"
    path.write_text(SMALL.replace("[student]\nunits = 2", "[student]\nunits = 2\nreadout = 0.0"))
    code, out, err = command(monkeypatch, capsys, "run", str(path), "--out", str(tmp_path / "out"))
    assert code == 0, err
    assert "nothing fluctuates" in out


def test_a_spec_with_a_byte_order_mark_is_read(tmp_path, monkeypatch, capsys):
    path = tmp_path / "spec.toml"
    path.write_text(SMALL, encoding="utf-8-sig")
    assert command(monkeypatch, capsys, "check", str(path))[0] == 0


def test_divergence_names_time_and_quantity_and_keeps_what_came_before(tmp_path, monkeypatch, capsys):
    path = tmp_path / "spec.toml"
    linear = SMALL.replace("units = 2", 'units = 2\nactivation = "linear"')
    path.write_text(linear.replace("rate = 0.5", "rate = 9.0").replace("last = 2.0", "last = 40.0"))
    line = refused(monkeypatch, capsys, "run", str(path), "--out", str(tmp_path / "out"))
    assert "Q[" in line and "at time" in line and "reduce rate" in line
    partial = ov.load(tmp_path / "out" / "macro.partial.nc")
    assert 0 < partial.time.size < 7 and bool((abs(partial.data["Q"]) < 1e8).all())


def test_a_diverging_run_keeps_its_past():
    problem = ov.Problem(
        data=ov.GaussianInputs(),
        teacher=ov.Committee(1, "linear"),
        student=ov.Committee(1, "linear"),
        algorithm=ov.OnlineSGD(9.0),
    )
    start = ov.draw(problem, 50, seed=0)
    for scale in (ov.sample, ov.train):
        with pytest.raises(ov.NumericalError) as caught:
            scale(problem, start, [0.1, 0.2, 40.0], runs=3)
        error = caught.value
        assert error.quantity == "Q[0, 0]" and 0.2 < error.time < 5 and "reduce rate" in str(error)
        assert error.partial is not None and error.partial.time.tolist() == [0.1, 0.2]


def test_user_errors_of_typer_have_code_two(monkeypatch, capsys):
    assert command(monkeypatch, capsys, "runn")[0] == 2
    assert command(monkeypatch, capsys, "run")[0] == 2


def test_papers_and_verify(tmp_path, monkeypatch, capsys):
    code, out, _ = command(monkeypatch, capsys, "papers")
    assert code == 0 and "1 figures, 2 claims: 2 holds" in out and "claim plateau" not in out
    code, out, _ = command(monkeypatch, capsys, "papers", "--long")
    assert code == 0 and "claim plateau (holds)" in out and "control: a height" in out
    assert "did you mean 'committee'" in refused(monkeypatch, capsys, "verify", "comittee")
    assert "did you mean 'overlaps'" in refused(
        monkeypatch, capsys, "papers", "run", "committee", "overlap", "--out", str(tmp_path / "x")
    )
    (tmp_path / "there").mkdir()
    assert "exists already" in refused(
        monkeypatch, capsys, "papers", "run", "committee", "overlaps", "--out", str(tmp_path / "there")
    )


numbers = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-5, 10**6),
    st.sampled_from([0.5, 1.0, 2, "x", True, [1.0], []]),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(st.sampled_from(["units", "activation", "readout", "train_readout", "unit"]), numbers, max_size=4),
    st.dictionaries(st.sampled_from(["rate", "readout_rate", "decay", "momentum"]), numbers, max_size=3),
    st.dictionaries(st.sampled_from(["kind", "levels", "exponent", "eigenvalues", "fractions"]), numbers, max_size=4),
    st.dictionaries(
        st.sampled_from(["size", "seed", "scale", "first", "last", "count", "micro_runs"]), numbers, max_size=4
    ),
)
def test_fuzzed_specs_are_valid_or_refused_by_name(student, algorithm, spectrum, run):
    """Whatever the values: an experiment that round-trips, or an InputError of one line that names its place."""
    from overlaps.interface.spec import write

    table = {
        "data": {"spectrum": spectrum},
        "teacher": {"units": 2},
        "student": student,
        "algorithm": algorithm,
        "run": run,
    }
    text = write(table)
    try:
        experiment = Experiment.from_toml(text)
    except ov.InputError as error:
        assert "\n" not in str(error) and str(error).startswith(("spec", "unknown"))
    else:
        assert Experiment.from_toml(experiment.to_toml()) == experiment


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    activation=st.sampled_from(["erf", "relu", "linear"]),
    units=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    readout=st.floats(-3, 3),
    trained=st.booleans(),
    rate=st.floats(1e-3, 30),
    decay=st.floats(0, 2),
    noise=st.floats(0, 1),
    eigenvalues=st.lists(st.floats(0, 5), min_size=1, max_size=4),
    size=st.integers(1, 60),
    scale=st.floats(0, 2),
)
def test_fuzzed_problems_give_finite_trajectories_or_typed_refusals(
    activation, units, readout, trained, rate, decay, noise, eigenvalues, size, scale
):
    """Never a NaN, never a hang, never an error of another type.

    A theory that takes longer than its budget is a typed refusal as well; the budget is smaller here than by default.
    """
    import numpy as np

    try:
        problem = ov.Problem(
            data=ov.GaussianInputs(ov.Spectrum(eigenvalues)),
            teacher=ov.Committee(units[0], activation),
            student=ov.Committee(units[1], activation, readout, trained),
            algorithm=ov.OnlineSGD(rate, decay=decay),
            label_noise=noise,
        )
        start = ov.draw(problem, size, seed=1, scale=scale)
        times = [0.0, 0.5, 2.0]
        results = []
        for scale_of in (ov.solve, ov.sample, ov.train):
            try:
                options = {"max_seconds": 10} if scale_of is ov.solve else {"runs": 2}
                results.append(scale_of(problem, start, times, **options))
            except ov.NumericalError as error:
                assert error.quantity and np.isfinite(error.time)
                if error.partial is not None:
                    results.append(error.partial)
    except ov.InputError as error:
        assert str(error)
        return
    for result in results:
        for name in ("Q", "R", "v", "error"):
            assert np.isfinite(result.data[name].values).all()


def test_plan_refuses_nonsense():
    for wrong in ({"size": 0}, {"last": 0.05}, {"count": 1}, {"meso_runs": -1}, {"scale": -1.0}, {"seed": 0.5}):
        with pytest.raises(ov.InputError):
            Plan(**wrong)


def test_cache_says_where_and_is_cleared(monkeypatch, capsys, tmp_path: Path) -> None:
    monkeypatch.setenv("OVERLAPS_CACHE_DIR", str(tmp_path))
    kept = tmp_path / ("0" * 24)
    kept.mkdir()
    (kept / "code").write_bytes(bytes(2_000_000))
    (tmp_path / "work.txt").touch()
    code, out, _ = command(monkeypatch, capsys, "cache")
    assert code == 0 and f"1 files, 2.0 MB in {tmp_path}" in out and "set OVERLAPS_CACHE_DIR" in out
    code, out, _ = command(monkeypatch, capsys, "cache", "--clear")
    assert code == 0 and "0 files" in out
    assert [path.name for path in tmp_path.iterdir()] == ["work.txt"]
