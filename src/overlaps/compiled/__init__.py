"""Compiled functions, and their code on disk."""

from .functions import kept, loop

__all__ = ["kept", "loop"]
