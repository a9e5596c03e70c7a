"""Every script in examples/ runs, from an empty folder, with warnings as errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda p: p.stem)
def test_example_runs(script, tmp_path):
    command = [sys.executable, "-W", "error", str(script)]
    if "sys.argv" in script.read_text(encoding="utf-8"):
        command.append(str(tmp_path / "picture.png"))
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=_plain())
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def _plain() -> dict[str, str]:
    import os

    return {**os.environ, "MPLBACKEND": "Agg"}
