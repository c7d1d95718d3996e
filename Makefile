# Two commands are enough: `make run` and `make test`. `make help` lists the rest.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
STAMP := $(VENV)/.installed
CORES ?= $(shell nproc 2>/dev/null || echo 2)
QUICK := runs/quick
export PATH := $(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export MPLCONFIGDIR := $(CURDIR)/$(VENV)/matplotlib
# Snakemake and pip need a cache folder; where the home cannot be written, it is in .venv
ifeq ($(shell cache="$${XDG_CACHE_HOME:-$$HOME/.cache}"; mkdir -p "$$cache" 2>/dev/null && test -w "$$cache" && echo ok),)
export XDG_CACHE_HOME := $(CURDIR)/$(VENV)/cache
endif

.PHONY: help setup run test unit slurm lifecycle lint docs bench audit summary laptop clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(STAMP) ## make .venv and install the pinned stack

# torch first: a plain `torch` would bring gigabytes of CUDA packages to a machine without a GPU
$(STAMP): pyproject.toml workflow/requirements.lock workflow/install.sh
	@bash workflow/install.sh "$(PYTHON)" "$(VENV)"
	@touch $(STAMP)

run: setup ## the whole graph at quick scale in runs/quick, then a summary; VERBOSE=1: with the log; never touches results/
	@mkdir -p $(QUICK); began=$$(date +%s); \
	subspaces watch --folder $(QUICK) $(if $(VERBOSE),--verbose) -- \
		snakemake --directory $(QUICK) --config scale=quick --cores $(CORES) && \
	subspaces summary --folder $(QUICK) --seconds $$(( $$(date +%s) - began ))

test: setup ## every test and check
	@bash .ci/checks.sh

unit: setup ## the unit tests alone
	@bash .ci/unit.sh

lifecycle: setup ## the tests of DVC's life cycle: experiments, plots, a remote, restore (about 4 minutes)
	@pytest -q -m lifecycle

slurm: setup ## all tests against a real one-node SLURM, which they install and start (root; about 3 minutes)
	@pytest -q -m slurm

lint: setup ## ruff, mypy, snakefmt, snakemake --lint, generated files
	@bash .ci/lint.sh

docs: setup ## the API reference of the library in build/docs
	@rm -rf build/docs
	@python workflow/reference.py build/docs && echo "open build/docs/subspaces.html"

bench: setup ## measure speed and memory as ratios in one run, on WordNet and MiniLM; about 15 minutes
	@snakemake --cores $(CORES) --quiet all -- data/wordnet/nouns.json data/snli.json data/captions.json data/sources/all-MiniLM-L6-v2.json
	@python -m benchmarks --sources 4096

laptop: setup ## the committed results at laptop scale: hours, resumable
	@snakemake --cores $(CORES) --quiet rules && subspaces summary

audit: setup ## known vulnerabilities of the installed packages, where the service can be asked
	@bash workflow/audit.sh "$(VENV)"

summary: setup ## the committed numbers beside the paper's
	@subspaces summary

clean: ## remove what `make run` made
	rm -rf $(QUICK)
