"""`python -m subspaces` is the command `subspaces`."""

from subspaces.cli import main

main()
