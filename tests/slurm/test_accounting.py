"""The same profile on a cluster that keeps accounts."""

from __future__ import annotations

import pytest

from tests.slurm.conftest import SLURM, slurm

pytestmark = pytest.mark.slurm


def test_jobs_are_charged_to_the_account(accounting_cluster, small):
    project = small("accounts", built=False)
    options = ("--slurm-status-command", "sacct", "--config", "account=lab", "--")
    project.run(*SLURM, *options, "data/wordnet/nouns.npz")
    assert slurm("sacct", "-X", "-n", "-P", "-o", "Account,State").split() == ["lab|COMPLETED"]


def test_an_account_that_is_not_ours_is_refused(accounting_cluster, small):
    project = small("stranger", built=False)
    done = project.run(*SLURM, "--config", "account=nobody", "--", "data/wordnet/nouns.npz", check=False, timeout=120)
    assert done.returncode != 0
    assert "account nobody appears to be invalid" in done.stdout + done.stderr
