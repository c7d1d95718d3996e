"""Data sets that several experiments share: verified sources, WordNet hierarchies, splits, SNLI pairs, captions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from subspaces.errors import UserError
from subspaces.files import read_json, write_json
from subspaces.pipeline.artefact import Artefact, Machine
from subspaces.pipeline.experiment import SOURCES, Experiment
from subspaces.settings import COVERAGES, POS
from subspaces.sources.registry import get

HIERARCHY = "data/wordnet/{pos}"
SPLIT = "data/link_prediction/{coverage}"
SNLI = "data/snli"
CAPTIONS = "data/captions"


class SharedData(Experiment):
    name = "data"

    # --- sources ----------------------------------------------------------------------------------------------------------

    def source(self, name: str) -> Artefact:
        """The raw files: the registry's digests, or those of the sample when a sample was used (quick scale only)."""
        output = f"data/sources/{name}.json"
        settings: dict[str, Any] = {"source": name, "files": {file.name: file.sha256 for file in get(name).files}}
        record = self.project.folder / output
        if self.params.scale == "quick" and record.exists():
            content = read_json(record)
            if content.get("sample"):
                settings = {"source": name, "sample": content["files"]}
        return self.project.artefact(output, (), settings, make=self.fetch)

    @property
    def sources(self) -> list[str]:
        """The sources that this scale needs."""
        return [
            *("wordnet", "hyperlex", "composition", "flickr30k"),
            *self.split_sources,
            *self.snli_sources,
            *self.project.experiment("snli").backbones,
        ]

    def fetch(self, artefact: Artefact, machine: Machine) -> None:
        """Download and verify a source; at quick scale a sample may take its place."""
        from subspaces.sources.fetch import fetch

        name = artefact.settings["source"]
        manifest = fetch(name, SOURCES / name, root=self.project.root, allow_sample=self.params.scale == "quick")
        files = {file: entry["sha256"] for file, entry in manifest["files"].items()}
        record = {"source": name, "origin": manifest["origin"], "sample": manifest["sample"], "files": files}
        write_json(artefact.output, record)  # first without the key, which depends on whether this is a sample
        write_json(artefact.output, {**record, "key": self.source(name).key})
        sample = " (a sample, not the real data)" if manifest["sample"] else ""
        print(f"{name}: {len(files)} files from {manifest['origin']}{sample}")

    # --- WordNet ----------------------------------------------------------------------------------------------------------

    @cache  # noqa: B019
    def hierarchy(self, pos: str) -> Artefact:
        settings = {"pos": pos, "instance_hypernyms": self.params.wordnet.instance_hypernyms}
        path = HIERARCHY.format(pos=pos)
        return self.project.artefact(
            f"{path}.json", ["wordnet"], settings, [self.source("wordnet")], self.build_hierarchy, [f"{path}.npz"]
        )

    def build_hierarchy(self, artefact: Artefact, machine: Machine) -> None:
        from subspaces.experiments.wordnet import prepare_hierarchy
        from subspaces.report.registry import claims

        pos, out = artefact.settings["pos"], artefact.path.with_suffix("")
        expected = {name: int(claims()[f"wordnet-{pos[:-1]}-{name}"]) for name in ("nodes", "edges", "closure")}
        instances = artefact.settings["instance_hypernyms"]
        record = prepare_hierarchy(SOURCES / "wordnet", pos, instances, expected, out, artefact.key)
        print(f"{pos}: " + ", ".join(f"{count:,} {name}" for name, count in record["counts"].items()))

    # --- link prediction --------------------------------------------------------------------------------------------------

    @property
    def split_sources(self) -> list[str]:
        """The split files. The 50 % file is large and only on its official address; `fifty: drawn` does without it."""
        if self.params.link_prediction.budget(self.params.scale).subtree:
            return []
        original = self.params.link_prediction.budget(self.params.scale).fifty == "original"
        return ["wordnet_link_prediction", *(["wordnet_link_prediction_50"] if original else [])]

    @cache  # noqa: B019
    def split(self, coverage: int) -> Artefact:
        """Training, validation and test edges at one coverage. Where the 50 % edges come from is a setting, so it is in the key."""
        family = self.params.link_prediction
        budget = family.budget(self.params.scale)
        settings: dict[str, Any] = {"coverage": coverage, "seed": family.draw_seed, "subtree": budget.subtree}
        if budget.subtree:
            inputs = [self.hierarchy("nouns")]
        else:
            inputs = [self.source("wordnet_link_prediction")]
            if coverage == 50:
                settings["fifty"] = budget.fifty
                inputs += [self.source(name) for name in self.split_sources[1:]]
        path = SPLIT.format(coverage=coverage)
        return self.project.artefact(
            f"{path}.json", ["link_prediction.split"], settings, inputs, self.build_split, [f"{path}.npz"]
        )

    def build_split(self, artefact: Artefact, machine: Machine) -> None:
        from subspaces.hierarchy.graph import Taxonomy, build_hierarchy
        from subspaces.hierarchy.splits import check_counts, draw_split, read_split, write_split
        from subspaces.sources.wordnet_reader import read_wordnet

        coverage, seed, subtree = (artefact.settings[name] for name in ("coverage", "seed", "subtree"))
        if subtree:
            path = HIERARCHY.format(pos="nouns")
            data = read_json(f"{path}.json")
            graph = Taxonomy.load(Path(f"{path}.npz"))
            split = draw_split(graph if data["sample"] else graph.subtree(subtree), coverage, seed)
            source = {"nouns.npz": data["sha256"]}
            extra = {"sample": data["sample"], "origin": data["origin"], "source": source, "seed": seed}
        else:
            name = "wordnet_link_prediction"
            manifest = read_json(SOURCES / name / "manifest.json")
            if manifest["sample"]:
                split = draw_split(build_hierarchy(*read_wordnet(SOURCES / name, "nouns")), coverage, seed)
            else:
                original = artefact.settings.get("fifty") == "original"
                fifty = SOURCES / f"{name}_50" / "noun_closure.tsv.train_50percent" if original else None
                split = read_split(SOURCES / name, coverage, fifty, seed)
                counts = {**get(name).counts, **get(f"{name}_50").counts}
                expected = {part: counts[part] for part in split.counts() if part in counts}
                check_counts(split, expected | {"train": counts[f"train {coverage} %"]})
            source = {file: entry["sha256"] for file, entry in manifest["files"].items()}
            extra = {"sample": manifest["sample"], "origin": manifest["origin"], "source": source, "seed": seed}
        record = write_split(split, artefact.path.with_suffix(""), artefact.key, extra)
        parts = ", ".join(f"{count:,} {part}" for part, count in record["counts"].items())
        print(f"{coverage} %: {parts} ({split.train_origin})")

    # --- SNLI -------------------------------------------------------------------------------------------------------------

    @property
    def snli_sources(self) -> list[str]:
        """All of SNLI is on the Hugging Face hub only; the parts are what package registries and mirrors hold."""
        return {"full": ["snli_full"], "parts": ["snli", "snli_more"], "first": ["snli"]}[self._snli_data]

    @property
    def _snli_data(self) -> str:
        return self.params.snli.budget(self.params.scale).data

    @cache  # noqa: B019
    def snli(self) -> Artefact:
        """The labelled pairs. Which parts of SNLI they come from is a setting, so it is in the key."""
        inputs = [self.source(name) for name in self.snli_sources]
        settings = {"data": self._snli_data, "dev_pairs": self.params.snli.cut_dev}
        return self.project.artefact(
            f"{SNLI}.json", ["snli.data"], settings, inputs, self.build_snli, [f"{SNLI}.parquet"]
        )

    def build_snli(self, artefact: Artefact, machine: Machine) -> None:
        """Gather the labelled pairs. Counts are checked; training pairs that are also in dev or test are dropped."""
        from subspaces.experiments.pairs import prepare, split_sample

        used = self.snli_sources
        counts: Mapping[str, int] = {}
        manifests = {name: read_json(SOURCES / name / "manifest.json") for name in used}
        if artefact.settings["data"] == "full":
            counts = get("snli_full").counts
            parts = {part: [SOURCES / "snli_full" / f"{part}.tsv"] for part in ("train", "dev", "test")}
        elif manifests["snli"]["sample"]:
            used = ["snli"]
            parts = split_sample(SOURCES / "snli" / "snli.tsv", Path("data/snli_sample"))
        else:
            first, more = SOURCES / "snli", SOURCES / "snli_more"
            parts = {"train": [first / "train_first100k.tsv"], "test": [first / "test.tsv"]}
            if "snli_more" in used:
                parts["dev"] = [more / "dev.tsv"]
                parts["train"].append(more / "train_extra.tsv")
        chosen = [manifests[name] for name in used]
        extra = {
            "sample": any(manifest["sample"] for manifest in chosen),
            "origin": "; ".join(manifest["origin"] for manifest in chosen),
            "sources": used,
            "source": {file: entry["sha256"] for manifest in chosen for file, entry in manifest["files"].items()},
        }
        cut = artefact.settings["dev_pairs"] if "dev" not in parts else 0
        record = prepare(parts, artefact.path.with_suffix(""), artefact.key, extra, cut)
        for part, count in counts.items():
            if record["counts"].get(part, count) != count:
                found = record["counts"][part]
                raise UserError(f"SNLI's {part} part has {found:,} labelled pairs, not {count:,}: fetch it again.")
        print(", ".join(f"{count:,} {part}" for part, count in record["counts"].items()) + f" from {', '.join(used)}")

    # --- captions ---------------------------------------------------------------------------------------------------------

    @cache  # noqa: B019
    def captions(self) -> Artefact:
        settings = {"captions": self.params.retrieval.budget(self.params.scale).captions}
        inputs = [self.source("flickr30k")]
        return self.project.artefact(
            f"{CAPTIONS}.json", ["captions"], settings, inputs, self.build_captions, [f"{CAPTIONS}.txt"]
        )

    def build_captions(self, artefact: Artefact, machine: Machine) -> None:
        from subspaces.experiments.efficiency.composed_queries import write_captions

        manifest = read_json(SOURCES / "flickr30k" / "manifest.json")
        extra = {"sample": manifest["sample"], "origin": manifest["origin"]}
        table, out = SOURCES / "flickr30k" / "captions.txt", artefact.path.with_suffix("")
        record = write_captions(table, artefact.settings["captions"], out, artefact.key, extra)
        print(f"{record['captions']:,} of {record['of']:,} captions")

    def artefacts(self) -> Iterable[Artefact]:
        return [
            *(self.source(name) for name in dict.fromkeys(self.sources)),
            *(self.hierarchy(pos) for pos in POS),
            *(self.split(coverage) for coverage in COVERAGES),
            self.snli(),
            self.captions(),
        ]
