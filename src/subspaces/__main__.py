"""`python -m subspaces` is the command `subspaces`."""

from subspaces.entry import main

main()
