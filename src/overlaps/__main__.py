"""`python -m overlaps` is the command line."""

from .cli.commands import main

main()
