"""One file per encoder of the SNLI table; each has `build(ways, backbone, words, **options) -> PairModel`."""
