"""Specs of two units that learn from two, which several test files share."""

from __future__ import annotations


def two_units(data: str, **run: float) -> str:
    """A spec in TOML: the table `data`, with its headers, and the fields of ``[run]``."""
    fields = "\n".join(f"{name} = {value}" for name, value in run.items())
    return f"""
{data}
[teacher]
units = 2
[student]
units = 2
[algorithm]
rate = 0.5
[run]
{fields}
"""
