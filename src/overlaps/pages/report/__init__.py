"""One file to send to a colleague: question, verdict, figures to hover over, tables, and how to repeat it."""

from .document import Document, Shown, Table, write
from .sources import read

__all__ = ["Document", "Shown", "Table", "read", "write"]
