"""Speed and memory against a straightforward baseline, as ratios measured in one run: `python -m benchmarks`."""
