"""What each rule asks for, as Snakemake plans it: no SLURM is needed to see that."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.slurm


def planned(project, *options: str, target: str = "results/tables/reconstruction.tex") -> dict[str, list[str]]:
    """Resources of the planned jobs by rule."""
    done = project.run("snakemake", "--cores", "1", "--dry-run", *options, "--", target)
    rules: dict[str, list[str]] = {}
    for block in re.split(r"\n(?=(?:local)?rule )", done.stdout + done.stderr):
        name, asked = re.match(r"(?:local)?rule (\w+):", block), re.search(r"resources: (.*)", block)
        if name and asked:
            rules.setdefault(name[1], []).append(asked[1] + " " + "".join(re.findall(r"row=[\w-]+", block)))
    return rules


def test_only_training_asks_for_a_gpu_and_only_at_paper_scale(small):
    project = small("plan")
    site = ("--config", "scale=paper", "partition=cpu", "gpu_partition=cards", "account=lab")
    paper = planned(project, *site)
    trained = paper["train_reconstruction"]
    assert any("row=subspace" in job for job in trained)
    for job in trained:
        learns = "row=subspace" in job
        assert ("gpu=1" in job) == learns
        assert ("slurm_partition=cards" in job) == learns
        assert "runtime=1440" in job
    for rule in ("build_hierarchy", "evaluate_reconstruction"):
        for job in paper[rule]:
            assert "gpu=0" in job
            assert "slurm_partition=cpu" in job
    asking = [job for jobs in paper.values() for job in jobs if "gpu=" in job]
    assert all("slurm_account=lab" in job and "mem_mb=" in job and "runtime=" in job for job in asking)
    memory: dict[str, int] = {}
    for job in trained:
        ((size, row),) = re.findall(r"mem_mb=(\d+).*row=([\w-]+)", job)
        memory[row] = max(memory.get(row, 0), int(size))
    assert memory["subspace-128"] > memory["subspace-64"] > memory["euclidean-128"]


def test_quick_scale_asks_for_no_gpu(small):
    for job in planned(small("quick"))["train_reconstruction"]:
        assert "gpu=0" in job
        assert "runtime=30" in job
