"""`python -m overlaps` is the command line."""

from .cli import main

main()
