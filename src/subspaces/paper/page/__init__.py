"""The page results/report.html: every number with its provenance, the figures and the deviations, in one file that needs no network."""
