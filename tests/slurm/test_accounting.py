"""The same profile on a cluster that keeps accounts."""

from __future__ import annotations

import subprocess

import pytest

from tests.slurm.conftest import SLURM

pytestmark = pytest.mark.slurm


def test_jobs_are_charged_to_the_account(accounting_cluster, small):
    project = small("accounts", 2)
    options = (*SLURM, "--slurm-status-command", "sacct", "--config", "account=lab", "--")
    project.run("snakemake", *options, "data/wordnet/nouns.npz")
    charged = subprocess.run(["sacct", "-X", "-n", "-P", "-o", "Account,State"], capture_output=True, text=True, check=True).stdout
    assert charged.split() == ["lab|COMPLETED"]


def test_an_account_that_is_not_ours_is_refused(accounting_cluster, small):
    project = small("stranger", 2)
    done = project.run("snakemake", *SLURM, "--config", "account=nobody", "--", "data/wordnet/nouns.npz", check=False, timeout=120)
    assert done.returncode != 0
    assert "account nobody appears to be invalid" in done.stdout + done.stderr
