#!/usr/bin/env bash
# `make test`: style, then every test; those that run the real graph, DVC and SLURM come last. Job arrays and accounts of SLURM are in
# `make slurm`. At the end every skipped test is listed once more, with the reason.
set -euo pipefail
log=$(mktemp)
exec 3>&1 > >(tee "$log") 2>&1
tee=$!
trap 'exec 1>&3 2>&3; wait "$tee"; echo "skipped tests:"; grep "^SKIPPED" "$log" || echo "none"; rm -f "$log"' EXIT
bash .ci/lint.sh
bash .ci/tools.sh
pytest -q -n 2 --dist loadfile --cov=subspaces --cov-report= -m "not install and not workflow and not slurm and not lifecycle"
coverage report --fail-under=0 | sed -n 1,12p # the files with the least coverage; the floor is checked by the line above
pytest -q -m install # the core alone, in an empty environment
pytest -q -n 2 --dist loadfile -m "workflow or lifecycle" # together: they share one built project
pytest -q tests/slurm/test_resources.py tests/slurm/test_slurm.py
