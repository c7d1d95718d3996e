"""A local page and a JSON API to try a model: search with logic, entailment, a fitted hierarchy (`subspaces serve`)."""
