"""A sweep on a real Dask cluster of several processes: the same bits, also when its workers are killed."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

import overlaps as ov
from command import command
from overlaps.interface import files
from overlaps.problem.address import version
from sweeps import same, small
from test_run_again import SPEC, SWEEP

distributed = pytest.importorskip("distributed")
OVER = {"algorithm.rate": np.linspace(0.1, 1.0, 30)}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(silence_logs=60, **options) as cluster:
        yield cluster.scheduler_address


pytestmark = pytest.mark.filterwarnings("ignore")  # of what a cluster says while its workers are killed


def test_workers_of_a_cluster_give_the_same_bits_also_when_they_are_killed(address: str, tmp_path: Path) -> None:
    choice = random.Random(0)
    found = small(tmp_path, over=OVER, size=1000, workers=None, cluster=address, wait=False)
    for goal in (10, 40):
        deadline = time.monotonic() + 60
        while found.counts.get("done", 0) < goal:
            assert time.monotonic() < deadline and found.running
            time.sleep(0.01)
        with distributed.Client(address, set_as_default=False) as client:
            processes = [int(each) for each in client.run(lambda: __import__("os").getpid()).values()]
        psutil.Process(choice.choice(processes)).kill()
    assert found.wait().counts == {"done": 120}
    assert same(found.data, small(over=OVER, size=1000).data)


def test_the_cluster_of_a_command(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cells come back and are written here: its workers, which are in other folders, leave nothing anywhere."""
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC + SWEEP)
    outcomes = []
    for name, by in (("cluster", ("--cluster", address)), ("here", ("--workers", "1"))):
        asked = ("sweep", str(spec), "--out", str(tmp_path / name), *by)
        code, told, err = command(monkeypatch, capsys, *asked)
        assert code == 0 and "done: 24" in told, err
        outcomes.append(files.read_dataset("test", tmp_path / name / "sweep.nc")[0])
    assert same(*outcomes)


def test_a_client_is_taken_as_it_is(address: str) -> None:
    with distributed.Client(address, set_as_default=False) as client:
        found = small(over={"algorithm.rate": [0.5]}, workers=None, cluster=client)
        assert found.counts == {"done": 4} and client.status == "running"


def _with_version(words: str | None) -> str:
    """In a worker: take another version for its own, or the right one again."""
    from overlaps.problem.address import version
    from overlaps.sweep import workers

    workers.version = version if words is None else lambda: words  # type: ignore[assignment]
    return workers.version()


def test_workers_of_another_version_are_refused_by_name(address: str) -> None:
    with distributed.Client(address, set_as_default=False) as client:
        client.run(_with_version, "0.1.9 abcdef")
        with pytest.raises(ov.InputError, match=rf"^cluster: .* has overlaps 0\.1\.9 abcdef, .* {version()}; install"):
            small(over={"algorithm.rate": [0.5]}, workers=None, cluster=client)
        assert set(client.run(_with_version, None).values()) == {version()}
        assert small(over={"algorithm.rate": [0.5]}, workers=None, cluster=client).counts == {"done": 4}


def test_a_dry_run_asks_the_cluster(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC + SWEEP)
    dry = ("sweep", str(spec), "--out", str(tmp_path / "none"), "--dry-run")
    code, told, err = command(monkeypatch, capsys, *dry, "--cluster", address)
    assert code == 0 and "on 2 threads of the cluster" in told and "here, not on the cluster" in told, err
    monkeypatch.setattr(sys.modules["overlaps.sweep.workers"], "LOST", 0.5)
    code, _, err = command(monkeypatch, capsys, *dry, "--cluster", "tcp://127.0.0.1:1")
    assert code == 2 and "cluster: no scheduler answers" in err
    code, _, err = command(monkeypatch, capsys, *dry, "--workers", "0")
    assert code == 2 and "workers: expected at least 1, got 0" in err
    assert not (tmp_path / "none").exists()


def test_no_cluster_at_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["overlaps.sweep.workers"], "LOST", 0.5)
    with pytest.raises(ov.InputError, match=r"cluster: no scheduler answers at tcp://127.0.0.1:1 .*dask scheduler"):
        small(workers=None, cluster="tcp://127.0.0.1:1")


def test_the_extra_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ov.MissingExtraError, match=r"cluster: .*; pip install 'overlaps\[cluster\]'"):
        small(workers=None, cluster="tcp://127.0.0.1:1")
