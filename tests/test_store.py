"""The store of a sweep: nothing is computed twice, nothing damaged is believed, and several may use it at once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import overlaps as ov
from overlaps.interface import files
from overlaps.interface.packed import pack, unpack
from overlaps.problem.address import address
from overlaps.sweep import workers
from overlaps.sweep.cell import Cell
from overlaps.sweep.store import Store
from overlaps.sweep.workers import DEATHS, Died, Processes, in_turn
from sweeps import PROBLEM, same, small


def cells(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("cells/??/*.npz")}


def test_growing_a_grid_computes_what_is_new(tmp_path: Path) -> None:
    small(tmp_path, over={"algorithm.rate": [0.25, 0.5]})
    before = cells(tmp_path)
    times = {name: (tmp_path / "cells" / name[:2] / name).stat().st_mtime_ns for name in before}
    grown = small(tmp_path, over={"algorithm.rate": [0.25, 0.5, 1.0]}, seeds=3, scales=("macro", "meso", "micro"))
    after = cells(tmp_path)
    assert len(before) == 8 and len(after) == 27 and before.items() <= after.items()
    assert times == {name: (tmp_path / "cells" / name[:2] / name).stat().st_mtime_ns for name in before}
    again = small(over={"algorithm.rate": [0.25, 0.5, 1.0]}, seeds=3, scales=("macro", "meso", "micro"))
    assert same(grown.data, again.data)


def test_every_cell_is_a_file_that_load_reads(tmp_path: Path) -> None:
    found = small(tmp_path, over={"algorithm.rate": [0.5]}, seeds=1, scales="meso")
    (path,) = (tmp_path / "cells").glob("??/*.npz")
    loaded, by_hand = ov.load(path), ov.sample(PROBLEM, ov.draw(PROBLEM, 40), [0.0, 0.5, 1.0], 1, 0)
    np.testing.assert_array_equal(loaded.data["Q"].values, by_hand.data["Q"].values)
    assert loaded.problem == PROBLEM and loaded.size == 40
    assert found.trajectory().data["error"].identical(by_hand.data["error"])
    assert np.load(path)["v0"].size  # and NumPy
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\x00\x01\x02")
    with pytest.raises(ov.DamagedFileError, match="is damaged"):
        ov.load(path)


@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
def test_a_damaged_file_is_told_set_aside_and_computed_again(tmp_path: Path, damage: str) -> None:
    whole = small(tmp_path).data
    path = sorted((tmp_path / "cells").glob("??/*.npz"))[7]
    content = bytearray(path.read_bytes())
    content[200] ^= 4
    path.write_bytes({"flip": bytes(content), "cut": bytes(content[:300]), "empty": b""}[damage])
    with pytest.warns(UserWarning, match=r"is damaged: .* it is set aside as .*damaged"):
        again = small(tmp_path)
    assert same(again.data, whole)
    assert len(list((tmp_path / "damaged").iterdir())) == 1 and len(cells(tmp_path)) == 24


def test_checking_a_store(tmp_path: Path) -> None:
    small(tmp_path, over={"algorithm.rate": [0.5, -1.0]}, seeds=1)
    store = Store.existing(tmp_path)
    assert store.check().counts == {"done": 2} and "all are what was written" in repr(store.check())
    path = next(iter((tmp_path / "cells").glob("??/*.npz")))
    path.write_bytes(path.read_bytes()[:-1])
    draft = path.with_name(f".draft-{files._host()}-999999999-ab")
    draft.write_bytes(b"half")
    found = store.check()
    assert len(found.damaged) == 1 and found.counts == {"done": 1} and "damaged: 1, set aside" in repr(found)
    assert not draft.exists() and store.check().damaged == []
    with pytest.raises(ov.InputError, match="is no store"):
        Store.existing(tmp_path / "cells")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("two years")
    with pytest.raises(ov.InputError, match="holds other things"):
        small(tmp_path / "other")
    with pytest.raises(ov.InputError, match="is a file"):
        small(tmp_path / "other" / "thesis.txt")


def test_addresses_tell_apart_what_is_computed_and_nothing_else() -> None:
    base = Cell(PROBLEM, "meso", 40, 0, 1.0, None, (0.0, 1.0), {"runs": 1})
    start = ov.draw(PROBLEM, 40)
    others = [
        replace(base, problem=replace(PROBLEM, label_noise=0.1)),
        replace(base, scale="micro"),
        replace(base, size=41),
        replace(base, seed=1),
        replace(base, spread=0.5),
        replace(base, start=start),
        replace(base, times=(0.0, 2.0)),
        replace(base, options={"runs": 2}),
    ]
    assert len({cell.address for cell in (base, *others)}) == 9
    same_problem = ov.Problem.from_toml(PROBLEM.to_toml())
    assert replace(base, problem=same_problem, options={"runs": 1}).address == base.address
    theory = replace(base, scale="macro", start=start)
    assert theory.address == replace(theory, seed=5).address  # it draws no random numbers
    code = (
        "from sweeps import PROBLEM; from overlaps.sweep.cell import Cell; "
        "print(Cell(PROBLEM, 'meso', 40, 0, 1.0, None, (0.0, 1.0), {'runs': 1}).address)"
    )
    here = Path(__file__).parent
    same = {**os.environ, "PYTHONPATH": str(Path(ov.__file__).parents[1])}  # the library that is tested here
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=here, env=same)
    assert done.stdout.strip() == base.address  # in another process


def test_addresses_of_functions() -> None:
    def scaled(factor: float):
        return lambda x: factor * helper(x)

    def helper(x: float) -> float:
        return x + 1

    def recursive(n: int) -> int:
        return recursive(n - 1) if n else 0

    assert address(scaled(2.0)) == address(scaled(2.0)) != address(scaled(3.0))
    assert address(recursive) == address(recursive)
    assert address(lambda x: x + 1) == address(lambda x: x + 1) != address(lambda x: x + 2)
    assert address(np.sin) != address(np.cos)
    assert address([1, 2], [3]) != address([1], [2, 3])
    assert address(1) != address(1.0) != address("1.0")
    assert address({"a": 1, "b": 2}) == address({"b": 2, "a": 1})
    with pytest.raises(ov.InputError, match=r"store: .* has no address"):
        address(object())


def test_packed_datasets_keep_bits_names_and_text() -> None:
    data = ov.solve(PROBLEM, ov.draw(PROBLEM, 40), [0.0, 1.0]).data.assign_coords(
        unit=("student", np.array(["first"], object))
    )
    back = unpack(pack(data))
    assert back.identical(data) and pack(back) == pack(data)
    assert back["Q"].values.tobytes() == data["Q"].values.tobytes()


def test_two_sweeps_share_a_store(tmp_path: Path) -> None:
    """At the same time, from two processes: every cell is computed once, and both have all of them."""
    code = (
        "import sys; from pathlib import Path; from sweeps import small\n"
        "found = small(Path(sys.argv[1]), over={'algorithm.rate': [i / 40 for i in range(1, 25)]}, size=300)\n"
        "print(found.counts, found._finished)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent) for _ in range(2)]
    told = [each.communicate(timeout=120)[0] for each in both]
    assert [each.returncode for each in both] == [0, 0]
    assert told == ["{'done': 96} 96\n"] * 2
    assert len(cells(tmp_path)) == 96


def test_two_sweeps_of_one_process_share_a_store(tmp_path: Path) -> None:
    """Every cell is computed by one of them, and the first that ends takes no claims of the other along."""
    over = {"algorithm.rate": np.linspace(0.1, 1.0, 5)}
    written: list[str] = []
    put = Store.put

    def counted(self: Store, address: str, content: bytes) -> None:
        written.append(address)
        put(self, address, content)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Store, "put", counted)
        both = [small(tmp_path / name, over=over, wait=False) for name in ("new", "new/../new")]
        assert [each.wait().counts for each in both] == [{"done": 20}] * 2
    assert len(written) == 20 == len(cells(tmp_path / "new"))
    first, second, third = (Store.at(tmp_path / "new") for _ in range(3))
    name = "ab" * 32
    assert first.claim(name) and first.claim(name) and not second.claim(name)
    assert second.claim("cd" * 32)
    third.close()
    second.close()
    code = "import sys; from overlaps.sweep.store import Store; print(Store.at(sys.argv[1]).claim(sys.argv[2]))"
    command = [sys.executable, "-c", code, str(tmp_path / "new"), name]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False\n"
    first.release(name)
    assert second.claim(name)
    first.close()
    assert not first.claim(name)
    second.close()


def test_a_cell_that_is_damaged_later_is_pending_again(tmp_path: Path) -> None:
    found = small(tmp_path, over={"algorithm.rate": [0.5, -1.0, 1.0]}, seeds=1, scales="meso")
    assert found.counts == {"done": 2, "refused": 1} and found.data.sizes["rate"] == 3
    found = small(tmp_path, over={"algorithm.rate": [0.5, -1.0, 1.0]}, seeds=1, scales="meso", workers=0)
    path = next(iter((tmp_path / "cells").glob("??/*.npz")))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="is damaged"):
        data = found.data
    assert sorted(data["status"].values.ravel()) == ["done", "pending", "refused"]
    assert found.counts == {"done": 1, "refused": 1, "pending": 1} and len(found.missing()) == 1


def test_a_claim_of_another_process_is_respected_until_it_dies(tmp_path: Path) -> None:
    store = Store.at(tmp_path)
    name = "ab" * 32
    code = (
        "import sys, time; from overlaps.sweep.store import Store\n"
        f"print(Store.at(sys.argv[1]).claim({name!r}), flush=True); store = Store.at(sys.argv[1]); "
        f"store.claim({name!r}); print('claimed', flush=True); time.sleep(60)"
    )
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None and other.stdout.readline() == "True\n" and other.stdout.readline() == "claimed\n"
    assert not store.claim(name) and store.claim("cd" * 32)
    other.kill()
    other.wait()
    other.stdout.close()
    assert store.claim(name)
    store.close()


def kills_itself(job: list[int]) -> int:
    """A job of a worker: negative numbers end the process, others are doubled after a moment."""
    import os
    import signal

    if job[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return 2 * job[0]


def test_a_cell_that_kills_its_process_is_given_up_and_the_others_are_done() -> None:
    jobs = [[1], [2], [-1], [3], [4], [5]]
    found = {job[0]: result for job, result in in_turn(jobs, kills_itself, Processes(2))}
    assert isinstance(found.pop(-1), Died)
    assert found == {1: 2, 2: 4, 3: 6, 4: 8, 5: 10} and DEATHS == 3


class Simulated:
    """Workers in this process: a job of a dying number ends its worker as often as it says."""

    at_once, shared, deaths = 2, True, (ChildProcessError,)

    def __init__(self, dies: dict[int, int]) -> None:
        self.dies, self.parcels = dies, list[list[int]]()

    def submit(self, work: Callable[[Any], Any], job: Any) -> Future[Any]:
        done: Future[Any] = Future()
        self.parcels.append([each[0] for each in job])
        for (number,) in job:
            if self.dies.get(number, 0) > 0:
                self.dies[number] -= 1
                done.set_exception(ChildProcessError())
                return done
        done.set_result(work(job))
        return done

    def restart(self) -> None: ...
    def stop(self) -> None: ...


def test_deaths_count_for_the_cell_that_died() -> None:
    """Cells come and go, and none inherits the deaths of one that has been given up."""
    by = Simulated({3: 99, 4: 99, 5: 99} | dict.fromkeys(range(20, 200), 1))
    found = {job[0]: result for job, result in in_turn(((k,) for k in range(200)), lambda job: job[0], by)}
    assert sorted(k for k, result in found.items() if isinstance(result, Died)) == [3, 4, 5]
    assert len(found) == 200 and all(k == result for k, result in found.items() if k not in (3, 4, 5))


def test_slow_cells_after_fast_ones_are_handed_out_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parcels grow while cells are fast; of slow ones all but the first come back, and nothing is computed twice."""
    monkeypatch.setattr(workers, "PARCEL", 0.02)
    computed: list[int] = []

    def work(job: tuple[int]) -> int:
        computed.append(job[0])
        time.sleep(0.03 if job[0] >= 300 else 0.0)
        return job[0]

    by = Simulated({})
    found = [result for _, result in in_turn(((k,) for k in range(320)), work, by)]
    assert sorted(found) == list(range(320)) and sorted(computed) == list(range(320))
    sizes = [len(parcel) for parcel in by.parcels]
    assert max(sizes) > 16 and sizes[-8:] == [1] * 8
    assert all(after <= 2 * max(sizes[:i]) for i, after in enumerate(sizes) if i)


def about_a_worker(job: list[int]) -> tuple[list[int], int | None, int, set[str], int]:
    """A job of a worker: threads of its linear algebra and of its runs, functions that it compiled, its modules, and
    how many objects its collector of garbage passes over."""
    import gc

    from numba.core import event
    from threadpoolctl import threadpool_info

    from overlaps.trajectory import independent_runs

    compiled: list[object] = []

    class Compiled(event.Listener):
        def on_start(self, event: event.Event) -> None:
            compiled.append(event)

        def on_end(self, event: event.Event) -> None: ...

    with event.install_listener("numba:compile", Compiled()):
        ov.sample(PROBLEM, ov.draw(PROBLEM, 40), [0.0, 1.0], 2, 0, progress=False)
    threads = [each["num_threads"] for each in threadpool_info()]
    assert gc.isenabled() and os.environ["OPENBLAS_NUM_THREADS"] == "1"
    return threads, independent_runs.THREADS, len(compiled), set(sys.modules), gc.get_freeze_count()


def test_workers_keep_to_one_core_and_compile_nothing_anew() -> None:
    ov.sample(PROBLEM, ov.draw(PROBLEM, 40), [0.0, 1.0], 2, 0, progress=False)
    found = [result for _, result in in_turn([[1], [2]], about_a_worker, Processes(2))]
    assert len(found) == 2
    for libraries, threads, compiled, loaded, passed_over in found:
        assert "xarray" in loaded and not loaded & {"dask", "overlaps.plan.optimise"}
        assert libraries and set(libraries) == {1} and threads == 1
        assert compiled == 0
        assert passed_over > 50_000  # what was loaded when it began


def test_a_worker_that_is_killed_costs_nothing(tmp_path: Path) -> None:
    import psutil

    over = {"algorithm.rate": np.linspace(0.1, 1.0, 40)}
    found = small(tmp_path, over=over, size=400, workers=2, wait=False)
    deadline = time.monotonic() + 60
    while found.counts.get("done", 0) < 5:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    workers = [p for p in psutil.Process().children() if "loky" in " ".join(p.cmdline())]
    workers = [p for p in workers if "resource_tracker" not in " ".join(p.cmdline())]
    assert workers
    workers[0].kill()
    assert found.wait().counts == {"done": 160}
    assert same(found.data, small(over=over, size=400).data)
    assert threading.active_count() < 20
