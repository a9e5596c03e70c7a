"""The command line, run inside a test."""

from __future__ import annotations

import sys

from overlaps.cli.commands import main


def command(monkeypatch, capsys, *arguments: str) -> tuple[int, str, str]:
    """Run `overlaps` in this process; exit code, standard output and error."""
    monkeypatch.setattr(sys, "argv", ["overlaps", *arguments])
    code = 0
    try:
        main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    out, err = capsys.readouterr()
    return code, out, err
