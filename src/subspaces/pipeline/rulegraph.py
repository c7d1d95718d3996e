"""The rule graph of docs/architecture.md, drawn from what Snakemake itself says about the workflow."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from subspaces.errors import UserError

BEGIN, END = "<!-- rules -->", "<!-- end -->"
GROUPS = {  # by the first word of a rule's name
    "data": ("fetch", "build", "encode"),
    "training": ("train",),
    "evaluation": ("evaluate", "measure", "list", "answer", "check"),
    "paper": ("write", "draw"),
}


def mermaid(project: Path) -> str:
    """The graph as a Mermaid diagram: one box per rule, grouped by what it is for."""
    command = ["snakemake", "--rulegraph", "mermaid-js", "--forceall", "--cores", "1", "--quiet", "all"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"snakemake cannot draw the rules: {done.stderr.strip()[-500:]}")
    names = dict(re.findall(r"^\s*(id\d+)\[(\w+)", done.stdout, re.MULTILINE))
    edges = sorted((names[a], names[b]) for a, b in re.findall(r"^\s*(id\d+) --> (id\d+)", done.stdout, re.MULTILINE))
    rules = sorted(set(names.values()) - {"all"})
    lines = ["flowchart LR"]
    for group, words in GROUPS.items():
        lines += [f"  subgraph {group}", *(f"    {rule}" for rule in rules if rule.split("_")[0] in words), "  end"]
    lines += [f"  {one} --> {other}" for one, other in edges if other != "all"]
    return "\n".join(lines)


def with_graph(text: str, graph: str) -> str:
    """A document with the diagram between its two marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UserError(f"docs/architecture.md has lost its marks {BEGIN} and {END}.")
    return f"{before}{BEGIN}\n```mermaid\n{graph}\n```\n{END}{after}"
