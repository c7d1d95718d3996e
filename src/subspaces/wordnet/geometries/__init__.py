"""One module per geometry, loaded by name (`base.make_geometry`): a new file here is a new geometry."""
