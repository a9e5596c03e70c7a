"""Commands killed at random: `make torture`.

Sweeps (on processes, and on a Dask cluster), runs, `verify` and the gallery are started as users start them and killed
at random moments: the command by SIGKILL or by Ctrl-C, which goes to all of its processes as that of a terminal does,
one of its workers, a worker of the cluster or its scheduler by SIGKILL. They are started again until they come to their
end. Half of the moments are random in time, from the start of the command on; half are random in what the command has
kept, so that they fall where it computes and writes, however fast the machine is. Asked after every kill:

- what was kept before is there (nothing lost), the same file with the same time of writing, and the same seconds that a
  claim took (nothing computed or written twice; files of results are replaced, so another one is another inode);
- no process of the command is left;
- a command that was sent Ctrl-C before it had written everything says how to go on, exit code 130; one whose worker was
  killed comes to its end;

and at the end that numbers and pictures are those of a command that nobody has killed, bit by bit. The gallery is that
of one paper.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

import overlaps as ov
from overlaps.interface import files
from overlaps.problem.address import version

from .table import write_section

TAG = "OVERLAPS_TORTURE"  # variable by which processes of one command are known
PATIENCE = 900.0  # seconds until a command that should end is given up
ENDING = 60.0  # seconds until a process that is left counts as such; on a busy machine the end takes its time
COMMANDS = {
    "sweep": "`overlaps sweep`, two processes",
    "cluster": "`overlaps sweep --cluster`, two workers",
    "run": "`overlaps run`",
    "verify": "`overlaps verify`",
    "gallery": "`overlaps papers gallery`, one paper",
}
WORDS = {
    "parent": "command, SIGKILL",
    "interrupt": "command, SIGINT",
    "worker": "worker, SIGKILL",
    "cluster worker": "worker of the cluster, SIGKILL",
    "scheduler": "scheduler, SIGKILL",
}
SPEC = """
[data.spectrum]
kind = "PowerLaw"
levels = 3
exponent = 0.5
[teacher]
units = 1
activation = "linear"
[student]
units = 1
activation = "linear"
[algorithm]
rate = 0.5
[run]
size = 300
last = 10.0
count = 6
meso_runs = 8
micro_runs = 8
"""
SWEEP = """
[sweep]
seeds = 2
[sweep.over]
algorithm.rate = { log = [0.1, 1.0], count = 6 }
data.spectrum.exponent = [0.25, 0.5]
"""


@dataclass(frozen=True)
class Job:
    """A command.

    arguments: of `overlaps`, given its folder. kept: what is there and must stay as it is, by name. result: what must
    be the same in the end. last: the file that is written last, and once. complete: whether all is there, though the
    command may have been killed on its last step; the record of `verify` is not asked for twice then.
    """

    name: str
    arguments: Callable[[Path], list[str]]
    kept: Callable[[Path], dict[str, Any]]
    result: Callable[[Path], dict[str, bytes]]
    last: str
    complete: Callable[[Path], bool] = lambda folder: False
    victims: tuple[str, ...] = ("parent", "interrupt", "worker")

    def finished(self, folder: Path) -> Any:
        """What is another thing as soon as a command has written everything."""
        path = folder / self.last
        return self.complete(folder) or (as_written(path) if path.exists() and path.suffix != ".json" else None)


def as_written(path: Path) -> tuple[bytes, int, int]:
    """A file as it was written once: its contents, when that was, and which file it is."""
    about = path.stat()
    return path.read_bytes(), about.st_mtime_ns, about.st_ino


def _cells(folder: Path) -> dict[str, Any]:
    return {path.name: as_written(path) for path in (folder / "out").glob("cells/??/*.npz")}


def _dataset(folder: Path) -> dict[str, bytes]:
    data, vouched = files.read_dataset("torture", folder / "out" / "sweep.nc")
    assert vouched
    return {str(name): values.values.tobytes() for name, values in data.variables.items() if values.dtype != object}


def _trajectories(folder: Path) -> dict[str, bytes]:
    found = {name: ov.load(folder / "out" / f"{name}.nc").data for name in ("macro", "meso", "micro")}
    return {f"{name} {v}": data[v].values.tobytes() for name, data in found.items() for v in data.variables}


def _claims(folder: Path) -> dict[str, Any]:
    """Claims that were measured, with the seconds that took, which differ where one is measured again."""
    path = folder / "verdicts.json"
    rows = json.loads(path.read_text())["claims"] if path.exists() else []
    return {row["claim"]: row for row in rows if row["value"] is not None}


def _measured(folder: Path) -> dict[str, bytes]:
    """Claims that were measured, without the seconds that took."""
    return {name: json.dumps({**row, "seconds": 0}).encode() for name, row in _claims(folder).items()}


def _is_complete(folder: Path) -> bool:
    path = folder / "verdicts.json"
    return path.exists() and bool(json.loads(path.read_text())["complete"])


def _pictures(folder: Path) -> dict[str, Any]:
    """Pictures that the gallery says are drawn, each of which must be one."""
    from PIL import Image

    found = {}
    for record in (folder / "gallery").glob("*.json"):
        for picture in (folder / "gallery").glob(f"{record.stem}.webp"):
            found[picture.name] = as_written(picture)
            Image.open(io.BytesIO(found[picture.name][0])).load()
    return found


def jobs(cluster: str | None) -> list[Job]:
    """What is started and killed; the cluster's by its address."""
    sweep = lambda d: ["sweep", str(d / "sweep.toml"), "--out", str(d / "out")]  # noqa: E731
    run = Job(
        "run", lambda d: ["run", str(d / "run.toml"), "--out", str(d / "out")], lambda d: _finished(d), _trajectories,
        "out/points meso against micro.nc", victims=("parent", "interrupt"),
    )  # fmt: skip
    listed = [
        Job("sweep", lambda d: [*sweep(d), "--workers", "2"], _cells, _dataset, "out/sweep.png"),
        run,
        Job(
            "verify", lambda d: ["verify", "committee", "--quick", "--json", str(d / "verdicts.json")], _claims,
            _measured, "verdicts.json", complete=_is_complete,
        ),
        Job(
            "gallery", lambda d: ["papers", "gallery", "committee", "--quick", "--out", str(d / "gallery")], _pictures,
            lambda d: {name: content for name, (content, *_) in _pictures(d).items()}, "gallery/index.md",
        ),
    ]  # fmt: skip
    if cluster:
        victims = ("parent", "interrupt", "cluster worker", "scheduler")
        listed.append(
            Job(
                "cluster",
                lambda d: [*sweep(d), "--cluster", cluster],
                _cells,
                _dataset,
                "out/sweep.png",
                victims=victims,
            )
        )
    return listed


def _finished(folder: Path) -> dict[str, Any]:
    """Trajectories of a run; files of single runs are gathered into them, and go."""
    return {path.name: as_written(path) for path in (folder / "out").glob("*.nc") if "points" not in path.name}


@dataclass
class Cluster:
    """A scheduler and two workers, as `dask scheduler` and `dask worker` start them; started again when killed."""

    folder: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    port: int = 0

    def start(self) -> str:
        import socket

        if not self.port:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
        address = f"tcp://127.0.0.1:{self.port}"
        commands = {
            "scheduler": ["scheduler", "--host", "127.0.0.1", "--port", str(self.port), "--no-dashboard"],
            "worker 1": ["worker", address, "--nthreads", "1", "--no-dashboard", "--death-timeout", "60"],
            "worker 2": ["worker", address, "--nthreads", "1", "--no-dashboard", "--death-timeout", "60"],
        }
        dask = [sys.executable, "-m", "dask"]
        if "scheduler" in self.processes and self.processes["scheduler"].poll() is not None:
            self.stop()  # its workers would end too, but only after a while in which they count as there
        for name, words in commands.items():
            if name not in self.processes or self.processes[name].poll() is not None:
                options = {"cwd": self.folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
                self.processes[name] = subprocess.Popen([*dask, *words], start_new_session=True, **options)
        return address

    def worker(self, choice: random.Random) -> psutil.Process | None:
        """One of the processes that compute: a child of a nanny."""
        found = []
        for name, process in self.processes.items():
            if "worker" in name:
                with suppress(psutil.Error):
                    found += filter(computes, psutil.Process(process.pid).children())
        return choice.choice(found) if found else None

    def stop(self) -> None:
        for process in self.processes.values():
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def clusters(wanted: bool, folder: Path) -> Iterator[Cluster | None]:
    cluster = Cluster(folder) if wanted else None
    try:
        yield cluster
    finally:
        if cluster:
            cluster.stop()


def tagged(token: str) -> list[psutil.Process]:
    """Processes of a command, by the variable that they have inherited; those that have ended do not count."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(TAG) == token and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def begin(job: Job, folder: Path) -> tuple[subprocess.Popen[str], str]:
    """Start a command, as a session of its own."""
    token = uuid.uuid4().hex
    environment = {**os.environ, TAG: token, "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    command = [sys.executable, "-m", "overlaps", *job.arguments(folder)]
    options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    return subprocess.Popen(command, env=environment, **options), token  # type: ignore[call-overload]


def prepared(where: Path) -> Path:
    """A new folder with the specs."""
    folder = Path(tempfile.mkdtemp(dir=where))
    (folder / "run.toml").write_text(SPEC)
    (folder / "sweep.toml").write_text(SPEC + SWEEP)
    return folder


def computes(process: psutil.Process) -> bool:
    """Whether it is a worker, and not one that looks after what others leave."""
    with suppress(psutil.Error):  # it has ended meanwhile
        return "resource_tracker" not in " ".join(process.cmdline())
    return False


def kill(
    victim: str, process: subprocess.Popen[str], token: str, cluster: Cluster | None, choice: random.Random
) -> str:
    """Kill one process by SIGKILL; returns what was killed, the command itself where there was no other."""
    target: psutil.Process | None = None
    if victim == "worker":
        others: list[psutil.Process] = []
        while not others and process.poll() is None:  # until one is started
            time.sleep(0.02)
            others = [p for p in tagged(token) if p.pid != process.pid and computes(p)]
        target = choice.choice(others) if others else None
    elif victim == "cluster worker" and cluster:
        target = cluster.worker(choice)
    elif victim == "scheduler" and cluster:
        target = psutil.Process(cluster.processes["scheduler"].pid)
    if target is not None:
        with suppress(psutil.Error):
            target.kill()
            return victim
    process.kill()
    return "parent"


def interrupt(job: Job, folder: Path, process: subprocess.Popen[str], begun: Any) -> bool:
    """Press Ctrl-C, which all processes of a terminal hear; returns whether the command had written everything before.

    It is stopped for a moment, so that it writes nothing between the question and the signal.
    """
    process.send_signal(signal.SIGSTOP)
    with suppress(psutil.Error):
        while psutil.Process(process.pid).status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
            time.sleep(0.001)
    written = job.finished(folder) not in (None, False, begun)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
        os.kill(process.pid, signal.SIGCONT)
    return written


@dataclass(frozen=True)
class Moment:
    """When to kill: so many seconds after so many results are kept, or after the start."""

    seconds: float
    kept: int = 0


def once(
    job: Job, folder: Path, moment: Moment, victim: str, cluster: Cluster | None, choice: random.Random
) -> tuple[str, bool]:
    """Start, kill, and ask; returns what was killed, and whether the command has come to its end."""
    before, begun, written = job.kept(folder), job.finished(folder), False
    process, token = begin(job, folder)
    try:
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and len(before) < moment.kept > len(job.kept(folder)):
            assert time.monotonic() < deadline, f"{job.name}: nothing was kept within {PATIENCE:g} s"
            time.sleep(0.05)
        with suppress(subprocess.TimeoutExpired):
            process.wait(moment.seconds)
        killed = "" if process.poll() is not None else victim
        if killed == "interrupt":
            written = interrupt(job, folder, process, begun)
        elif killed:
            killed = kill(victim, process, token, cluster, choice)
        told = process.communicate(timeout=PATIENCE)[1]
    finally:
        process.kill()  # where this has been interrupted
    deadline = time.monotonic() + ENDING
    while left := tagged(token):
        assert time.monotonic() < deadline, f"{job.name}: processes are left after {killed}: {left}"
        time.sleep(0.05)
    code, now = process.returncode, job.kept(folder)
    if killed == "interrupt" and code == 1 and "KeyboardInterrupt" in told and "main()" not in told:
        code = -2  # in Python's own beginning, or an import before that of the command
    lost = [name for name, content in before.items() if now.get(name) != content]
    assert not lost, f"{job.name}: lost or written again after {killed}: {lost}"
    expected = {
        "parent": (-9, 0), "interrupt": (130, -2, 0)[: 2 + written], "scheduler": (2, 0),
    }.get(killed, (0,))  # fmt: skip  # -2: before Python could answer
    assert code in expected, f"{job.name}: exit code {code} after {killed}: {told}"
    if code == 130:
        assert "interrupted; " in told and len(told.strip().splitlines()) == 1, f"{job.name}: {told}"
    done = code == 0 or job.complete(folder)
    return "" if killed in ("parent", "interrupt") and code == 0 else killed, done  # it had ended a moment before


@dataclass
class Tally:
    """How often what was killed, and how many commands came to their end, all of one code; kept in a file if named."""

    counts: Counter[str] = field(default_factory=Counter)
    ended: int = 0
    file: Path | None = None

    @classmethod
    def at(cls, file: Path | None) -> Tally:
        """What was counted before, if that was with the same sources."""
        before = json.loads(file.read_text()) if file is not None and file.exists() else {}
        if before.get("code") != version():
            return cls(file=file)
        return cls(Counter(before["counts"]), before["ended"], file)

    def save(self) -> None:
        if self.file is not None:
            about = {"code": version(), "ended": self.ended, "counts": self.counts}
            files.write(self.file, json.dumps(about, indent=2) + "\n")


def torture(
    kills: int, seed: int, where: Path, names: list[str] | None = None, report: Callable[..., None] = print,
    record: Path | None = None,
) -> Tally:  # fmt: skip
    """Kill until there have been that many; an `AssertionError` says what went wrong.

    record: where the counts are kept after every kill, so that what was interrupted goes on.
    """
    tally = Tally.at(record)
    counts, choice = tally.counts, random.Random(f"{seed} {tally.counts.total()}")
    with clusters(names is None or "cluster" in names, where) as cluster:
        chosen = [job for job in jobs(cluster.start() if cluster else None) if names is None or job.name in names]
        pairs = [(job, victim) for job in chosen for victim in job.victims]
        least = kills // (2 * len(pairs))  # of each job and victim, where there is such a victim
        tried: Counter[str] = Counter()
        expected: dict[str, dict[str, bytes]] = {}
        seconds: dict[str, float] = {}
        wholes: dict[str, int] = {}  # results that a command keeps in all
        folders: dict[str, Path] = {}
        for job in chosen:
            folders[job.name], began = prepared(where), time.monotonic()
            assert once(job, folders[job.name], Moment(PATIENCE), "", cluster, choice)[1], job.name
            seconds[job.name] = time.monotonic() - began
            wholes[job.name] = len(job.kept(folders[job.name]))
            expected[job.name] = job.result(folders[job.name])
            folders[job.name] = prepared(where)
            report(f"{job.name}: {seconds[job.name]:.1f} s when nobody kills it", flush=True)
        while True:
            short = [
                (j, v) for j, v in pairs if counts[f"{j.name}: {v}"] < least and tried[f"{j.name}: {v}"] < 9 * least
            ]
            if counts.total() >= kills and not short:
                break
            job, victim = choice.choice(short if short and choice.random() < 0.5 else pairs)
            tried[f"{job.name}: {victim}"] += 1  # it may find no such process, and then kills the command
            if cluster:
                cluster.start()
            moment = Moment(choice.uniform(0.0, seconds[job.name]))
            if choice.random() < 0.5:
                moment = Moment(choice.uniform(0.0, 0.5), choice.randint(1, wholes[job.name]))
            began = time.monotonic()
            killed, done = once(job, folders[job.name], moment, victim, cluster, choice)
            if not killed:  # sooner than the first, which may have compiled
                seconds[job.name] = min(seconds[job.name], time.monotonic() - began)
            if killed:
                counts[f"{job.name}: {killed}"] += 1
            if done:
                tally.ended += 1
                assert job.result(folders[job.name]) == expected[job.name], f"{job.name}: other numbers"
                folders[job.name] = prepared(where)
            tally.save()
            report(f"{counts.total()} of {kills} kills, {tally.ended} ends: {job.name} {killed or 'ended'}", flush=True)
        if cluster:
            cluster.start()
        for job in chosen:  # what is under way comes to its end
            assert once(job, folders[job.name], Moment(PATIENCE), "", cluster, choice)[1]
            assert job.result(folders[job.name]) == expected[job.name], f"{job.name}: other numbers"
            tally.ended += 1
        tally.save()
    return tally


def table(tally: Tally) -> str:
    """How often what was killed, for the documentation."""
    counts = tally.counts
    victims = [victim for victim in WORDS if any(counts[f"{name}: {victim}"] for name in COMMANDS)]
    names = [name for name in COMMANDS if any(counts[f"{name}: {victim}"] for victim in victims)]
    lines = [f"| command | {' | '.join(WORDS[v] for v in victims)} | kills |", "|---" * (len(victims) + 2) + "|"]
    for name in names:
        row = [counts[f"{name}: {victim}"] for victim in victims]
        lines.append(f"| {COMMANDS[name]} | {' | '.join(map(str, row))} | {sum(row)} |")
    sums = [sum(counts[f"{name}: {victim}"] for name in names) for victim in victims]
    lines.append(f"| all | {' | '.join(map(str, sums))} | {counts.total()} |")
    outcome = (
        f"\n{counts.total()} kills, after which {tally.ended} sweeps, runs, records and galleries came to their end: "
        "nothing lost,\nnothing written twice, no process left, and the same bits as without a kill.\n"
    )
    return "\n".join(lines) + "\n" + outcome


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.torture", description="Kill commands at random.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", type=Path, default=None, help="write the counts here")
    parser.add_argument("--record", type=Path, default=None, help="keep the counts here, and go on from them")
    parser.add_argument("jobs", nargs="*", help="of sweep, run, verify, gallery and cluster; all by default")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends what it has started
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a script, and in all it starts
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as where:
        tally = torture(asked.kills, asked.seed, Path(where), asked.jobs or None, record=asked.record)
    print(table(tally))
    if asked.page is not None:
        write_section(asked.page, "torture", table(tally))


if __name__ == "__main__":
    main()
