"""`python -m subspaces` is the command `subspaces`."""

from subspaces.pipeline.entry import main

main()
