#!/usr/bin/env bash
# Style and generated files; fails on the first thing that is off.
set -euo pipefail
ruff check .
ruff format --check --quiet .
mypy
snakefmt --check --compact-diff Snakefile workflow/rules
snakemake --lint
subspaces dvc-yaml --check
subspaces rule-graph --check
subspaces status --check
echo "style and generated files are clean"
