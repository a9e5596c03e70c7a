"""Terminals that are not UTF-8: every command prints in letters that they have, and exits as it does elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from test_cli import SMALL


def printed(encoding: str, *arguments: str, code: str | None = None) -> tuple[int, str, str]:
    """Exit code, output and errors of the command, or of a program, in a C locale without a home."""
    environment = {name: value for name, value in os.environ.items() if name != "HOME"}
    environment |= {"PYTHONIOENCODING": encoding, "LC_ALL": "C"}
    start = ["-m", "overlaps"] if code is None else ["-c", code]
    done = subprocess.run([sys.executable, *start, *arguments], capture_output=True, env=environment)
    out, err = (text.decode(encoding.partition(":")[0]) for text in (done.stdout, done.stderr))
    assert "UnicodeEncodeError" not in err, err
    return done.returncode, out, err


@pytest.mark.parametrize("encoding", ["ascii", "ascii:strict", "latin-1"])
def test_the_list_of_papers(encoding: str) -> None:
    """As in UTF-8 line by line, but for the letters."""
    code, out, err = printed(encoding, "papers", "--long")
    assert (code, err) == (0, "") and "|beta" in out
    whole = printed("utf-8", "papers", "--long")[1]
    assert "|β" in whole and out.count("\n") == whole.count("\n")
    assert out.count("?") == whole.count("?"), "there are words for all characters in use"


def test_help_and_refusals(tmp_path: Path) -> None:
    assert printed("ascii", "--help")[0] == 0
    code, out, err = printed("ascii", "check", str(tmp_path / "λ².toml"))
    assert (code, out) == (2, "") and "lambda^2.toml" in err and len(err.splitlines()) == 1
    code, _, err = printed("ascii", "papers", "run", "alignement", "fig1", "--out", str(tmp_path / "out"))
    assert code == 2 and "did you mean 'alignment'" in err
    assert printed("ascii", "runn")[0] == 2


def test_results(tmp_path: Path) -> None:
    """A check, a run and a spectrum; what goes to files is UTF-8 all the same."""
    spec = tmp_path / "spec.toml"
    spec.write_text(SMALL, encoding="utf-8")
    assert "spec: ok" in printed("ascii", "check", str(spec))[1]
    code, out, err = printed("ascii", "run", str(spec), "--out", str(tmp_path / "out"))
    assert code == 0 and " +- " in out, err
    assert "±" in (tmp_path / "out" / "verdict.txt").read_text(encoding="utf-8")
    np.save(tmp_path / "data.npy", np.random.default_rng(0).standard_normal((300, 20)))
    code, out, err = printed("ascii", "spectrum", str(tmp_path / "data.npy"))
    assert code == 0 and out, err


def test_verify() -> None:
    """On all cores, which print through the first."""
    code, out, err = printed("ascii", "verify", "committee", "--quick")
    assert code == 0 and "2 of 2 claims as recorded" in out and " +- " in out, err


def test_warnings_tracebacks_and_processes() -> None:
    """Whatever writes to standard error does so in plain letters too."""
    program = """
import sys, warnings
from overlaps.cli import commands as cli
@cli.app.command()
def fail() -> None:
    from overlaps.papers.workers import one_by_one
    warnings.warn("σ² is small")
    list(one_by_one([[("β → ∞",)], [("≥",)]], print, 2))
    raise RuntimeError("√2 ≠ η")
sys.argv = ["overlaps", "fail"]
cli.main()
"""
    code, out, err = printed("ascii", code=program)
    assert code == 1 and "overlaps: warning: sigma^2 is small" in err and "RuntimeError: sqrt2 != eta" in err
    assert ">=" in out and "beta -> inf" in out and out.isascii()  # two processes may write into one line


def test_utf8_is_left_as_it_is() -> None:
    program = "import sys; from overlaps.interface.terminal import adapt; adapt(); print(sys.stdout.errors, 'η²')"
    assert printed("utf-8:surrogateescape", code=program)[1].strip() == "surrogateescape η²"
