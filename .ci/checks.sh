#!/usr/bin/env bash
# `make test`: style, then every test; those that run the real graph, DVC and SLURM come last. Job arrays and accounts of SLURM are in
# `make slurm`. At the end every skipped test is listed once more, with the reason.
set -euo pipefail
log=$(mktemp)
exec 3>&1 > >(tee "$log") 2>&1
tee=$!
trap 'exec 1>&3 2>&3; wait "$tee"; echo "skipped tests:"; grep "^SKIPPED" "$log" || echo "none"; rm -f "$log"' EXIT
bash .ci/lint.sh
bash .ci/unit.sh
pytest -q -m install # the core alone, in an empty environment
pytest -q -n 2 --dist loadfile -m "workflow or lifecycle" # together: they share one built project
pytest -q tests/slurm/test_resources.py tests/slurm/test_slurm.py
