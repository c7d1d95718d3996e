"""The page results/report.html: claims, numbers with their provenance, figures and deviations in one file without network access."""
