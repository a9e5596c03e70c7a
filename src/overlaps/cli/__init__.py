"""The command line, and what its commands do."""

from .commands import main

__all__ = ["main"]
