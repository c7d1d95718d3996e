"""One module per geometry that can say "this child lies below that parent", loaded by name (`base.make_entailment`)."""
