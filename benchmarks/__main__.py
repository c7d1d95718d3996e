"""`python -m benchmarks [--only step-64 …] [--small] [--strict]`: a table on the screen, the same as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarks.evaluation import evaluation
from benchmarks.graphs import NOUNS, find_graph
from benchmarks.link_prediction import link
from benchmarks.memory import memory
from benchmarks.nli import head, nli
from benchmarks.poincare import compiled, poincare
from benchmarks.search import encoding, hyperbolic, search
from benchmarks.steps import per_edge, shared
from benchmarks.timing import Row, Skipped, machine
from subspaces.errors import UserError
from subspaces.hierarchy.graph import Taxonomy

HERE = Path(__file__).resolve().parent


def benchmarks(graph: Taxonomy, graph_path: Path, small: bool, limit: int = 0) -> dict[str, Callable[[], Row]]:
    if small:
        return {
            "step-64": lambda: per_edge(graph, 8, 2.5, batch=16, negatives=4, rounds=1),
            "step-128": lambda: per_edge(graph, 16, 3.0, batch=16, negatives=4, rounds=1),
            "shared-64": lambda: shared(graph, 8, batch=32, pool=16, edge_batch=16, rounds=1),
            "link-64": lambda: link(graph, 8, batch=32, pool=16, edge_batch=16, rounds=1),
            "poincare-gensim": lambda: poincare(graph, batch=32, edges=64, rounds=1, others=()),
            "poincare-compiled": lambda: compiled(graph, edges=64, rounds=1),
            "nli-128": lambda: nli(HERE / "nowhere", 8, batch=24, micro=12, rounds=1),
            "head-128": lambda: head(HERE / "nowhere", 8, batch=16, rounds=1),
            "encoding": lambda: encoding(HERE / "nowhere", small=True, texts=24, rounds=1),
            "search": lambda: search(HERE / "nowhere", small=True, documents=200, queries=8, rounds=1),
            "hyperbolic": lambda: hyperbolic(documents=500, queries=8, rounds=1),
            "evaluation": lambda: evaluation(graph, 16, sample=20),
            "memory": lambda: memory(graph_path, graph.nodes, 8, batch=32, pool=16, steps=2),
        }
    return {
        "step-64": lambda: per_edge(graph, 64, 2.5),
        "step-128": lambda: per_edge(graph, 128, 3.0, rounds=5),
        "shared-64": lambda: shared(graph, 64),
        "link-64": lambda: link(graph, 64),
        "poincare-gensim": lambda: poincare(graph),
        "poincare-compiled": lambda: compiled(graph),
        "nli-128": lambda: nli(HERE.parent),
        "head-128": lambda: head(HERE.parent),
        "encoding": lambda: encoding(HERE.parent),
        "search": lambda: search(HERE.parent),
        "hyperbolic": lambda: hyperbolic(),
        "evaluation": lambda: evaluation(graph, 64, limit=limit),
        "memory": lambda: memory(graph_path, graph.nodes, 64),
    }


def show(row: Row) -> str:
    goal = f"{row.at_least:g}× / {row.aim:g}×"
    return f"{row.name:<46} {row.ours:>11,.1f} {row.baseline:>13,.1f} {row.unit:<3} {row.ratio:>7.2f}× {goal:>14}  {row.verdict}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    names = list(benchmarks(None, HERE, small=True))
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="run some of them")
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that everything runs; not judged")
    parser.add_argument("--strict", action="store_true", help="exit with 1 when a ratio is short of what is asked")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument(
        "--graph", type=Path, default=HERE.parent / "data/wordnet/nouns.npz", help="the prepared noun hierarchy"
    )
    parser.add_argument(
        "--sources", type=int, default=0, help="evaluation: time ours on so many nodes and extrapolate; 0: all"
    )
    parser.add_argument("--name", help="of the result file, benchmarks/results/NAME.json")
    parser.add_argument("--out", type=Path, help="another path for the result")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    graph, kind = find_graph(options.graph.resolve(), 300 if options.small else NOUNS)
    print(f"{machine()['cpu']}, {options.threads} threads, torch {machine()['torch']}; hierarchy: {kind}")
    print(f"{'':<46} {'ours':>11} {'baseline':>13} {'':<3} {'ratio':>8} {'at least / aim':>14}")
    rows, skipped = [], {}
    runs = benchmarks(graph, options.graph.resolve(), options.small, options.sources)
    for name in names:
        if name not in options.only:
            continue
        try:
            row = runs[name]()
        except (Skipped, UserError) as reason:
            skipped[name] = str(reason)
            print(f"{name:<46} skipped: {reason}", flush=True)
            continue
        row.settings["graph"] = kind
        if options.small:
            row.verdict = "not judged"
        else:
            row.judge()
        rows.append(row)
        print(show(row), flush=True)
    out = options.out or HERE / "results" / f"{options.name or ('small' if options.small else 'benchmarks')}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "small": options.small,
        "graph": kind,
        "graph_counts": graph.counts(),
        "rows": [row.as_dict() for row in rows],
    }
    content["skipped"] = skipped
    out.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    print(f"saved {out}")
    return int(options.strict and any(row.verdict == "short" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
