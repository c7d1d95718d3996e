"""One file and one class per geometry, used by every task; `base.make_geometry` finds a geometry by the name of its file."""
