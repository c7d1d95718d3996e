"""Hierarchies: the graph, its samplers, one file per geometry, and the tasks of the paper's §4.1 and §4.2."""
