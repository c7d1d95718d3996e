#!/usr/bin/env bash
# `make test`: style, then every test; those that run the real graph and DVC come last, one at a time. `make slurm` has the cluster.
set -euo pipefail
bash .ci/lint.sh
bash .ci/tools.sh
pytest -q -n 2 --dist loadfile -m "not workflow and not slurm and not lifecycle"
pytest -q -m "workflow or lifecycle" # together: they share one built project
