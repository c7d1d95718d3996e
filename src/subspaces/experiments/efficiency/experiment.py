"""Tables 7 and 8, and the figures of compression, storage and compositional retrieval."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from subspaces.errors import UserError
from subspaces.experiments.data import CAPTIONS
from subspaces.files import read_json, write_json, write_text
from subspaces.pipeline.artefact import Artefact, Machine
from subspaces.pipeline.experiment import SOURCES, Experiment
from subspaces.report.layouts import LAYOUTS, Column, Layout

SHARD = "data/retrieval/{model}/shard-{shard}.json"
INDEX = "data/retrieval/{model}/{kind}.json"
LATENCY = "results/evaluations/retrieval_latency.json"
ENCODING = "results/evaluations/encoding_time.json"
QUERIES = "results/evaluations/retrieval_queries.json"
COMPRESSION = "results/evaluations/compression/{part}.json"
PARTS = ("wordnet", "snli")  # the two halves of the compression figure


class EfficiencyExperiment(Experiment):
    name = "efficiency"
    tables = (
        LAYOUTS["encoding_time"],
        LAYOUTS["retrieval_latency"],
    )

    @property
    def settings(self):
        return self.params.retrieval

    @property
    def budget(self):
        return self.settings.budget(self.params.scale)

    @property
    def _data(self):
        return self.project.experiment("data")

    @property
    def _row(self) -> str:
        return self.project.experiment("snli").subspace_row(self.settings.model)

    @property
    def text_model(self) -> Artefact:
        """The 2-way SNLI model that encodes captions and queries."""
        snli = self.project.experiment("snli")
        return snli.judged_model(self._row, "2way", snli.first_seed)

    # --- captions as an index ---------------------------------------------------------------------------------------------

    @cache  # noqa: B019
    def shard(self, number: int) -> Artefact:
        """One slice of the captions, encoded."""
        return self.project.artefact(
            SHARD.format(model=self._row, shard=number),
            ["retrieval.encode"],
            {"shards": self.budget.shards, "shard": number},
            [self._data.captions(), self.text_model],
            self._encode_shard,
        )

    def shards(self) -> list[Artefact]:
        return [self.shard(number) for number in range(self.budget.shards)]

    @cache  # noqa: B019
    def index(self, kind: str) -> Artefact:
        """All shards, merged into one kind of index."""
        return self.project.artefact(
            INDEX.format(model=self._row, kind=kind),
            ["retrieval.index"],
            {"kind": kind, "seed": self.settings.seed},
            self.shards(),
            self._build_index,
        )

    def indexes(self) -> list[Artefact]:
        return [self.index(kind) for kind in self.settings.kinds]

    # --- measurements -----------------------------------------------------------------------------------------------------

    @cache  # noqa: B019
    def latency(self) -> Artefact:
        """One run measures every row of Table 8, and our own kinds of index."""
        chosen, budget = self.settings, self.budget
        settings = {"queries": budget.queries, "repeats": budget.repeats, "batch": chosen.batch, "top": chosen.top}
        settings |= {"seed": chosen.seed, "conjunction": chosen.conjunction, "kinds": list(chosen.kinds)}
        return self.project.artefact(LATENCY, ["retrieval.latency"], settings, self.indexes(), self._measure_latency)

    @property
    def _encoded(self):
        """The model whose encoding time Table 7 gives."""
        return self.project.experiment("snli").settings.job("mpnet-subspace-128", 2, self.params.scale)

    @cache  # noqa: B019
    def encoding(self) -> Artefact:
        chosen, budget, job = self.settings, self.budget, self._encoded
        settings = {"batches": list(chosen.batches), "sentences": budget.sentences, "repeats": budget.repeats}
        settings |= {"seed": chosen.seed, "job": job.model_dump(mode="json")}
        inputs = [self._data.captions(), self._data.source(job.backbone.name)]
        return self.project.artefact(ENCODING, ["encoding_time.measure"], settings, inputs, self._measure_encoding)

    @cache  # noqa: B019
    def queries(self) -> Artefact:
        """The queries of the figure, answered by subspace logic, by plain text and by vector arithmetic."""
        chosen = self.settings
        settings = {"queries": list(chosen.queries), "conjunction": chosen.conjunction, "top": chosen.top}
        settings["captions"] = self.budget.compared
        job = self.project.experiment("snli").settings.job(chosen.model, 2, self.params.scale)
        inputs = [self.index(chosen.kinds[0]), self._data.source(job.backbone.name)]
        return self.project.artefact(QUERIES, ["retrieval.queries"], settings, inputs, self._answer_queries)

    @cache  # noqa: B019
    def compression(self, part: str) -> Artefact:
        """Quality and mean rank as eigenvalues below τ are dropped: mAP on WordNet, or 2-way accuracy on SNLI."""
        settings: dict[str, Any] = {"taus": list(self.settings.taus), "seed": self.settings.seed}
        if part == "wordnet":
            reconstruction = self.project.experiment("reconstruction")
            row = self.params.figures.rank_vs_descendants.model
            model = reconstruction.model(row, "nouns", reconstruction.first_seed)
            settings["nodes"] = self.budget.compression_nodes
        elif part == "snli":
            model, settings["pairs"] = self.text_model, self.budget.compression_pairs
        else:
            raise UserError(f"compression is measured on {' or '.join(PARTS)}, not on {part!r}.")
        return self.project.artefact(
            COMPRESSION.format(part=part),
            ["compression.measure"],
            settings,
            [model],
            lambda artefact, machine: self._measure_compression(artefact, machine, part),
        )

    def artefacts(self) -> Iterable[Artefact]:
        measured = [self.latency(), self.encoding(), self.queries(), *map(self.compression, PARTS)]
        return [*self.shards(), *self.indexes(), *measured]

    # --- numbers ----------------------------------------------------------------------------------------------------------

    def evidence(self, table: Layout, row: str, column: Column) -> tuple[Artefact, ...]:
        return (self.latency(),) if table.name == "retrieval_latency" else (self.encoding(),)

    def value(self, evaluation: Mapping[str, Any], row: str, column: Column) -> float | None:
        """None where the row was not measured, as the FAISS row is when `ivfpq` is not among the kinds of index."""
        measured = evaluation["metrics"].get(row)
        return measured.get(column.metric) if isinstance(measured, Mapping) else measured

    # --- jobs -------------------------------------------------------------------------------------------------------------

    def _encoder(self):
        from subspaces.search.half_vectors import HalfVectorEncoder
        from subspaces.text.load import load_text_model

        model = load_text_model(self.text_model.path.parent, SOURCES)
        return HalfVectorEncoder(model.projectors, model.dim, model.fingerprint, model)

    def _encode_shard(self, artefact: Artefact, machine: Machine) -> None:
        from subspaces.search.build import build_shard, shard_bounds
        from subspaces.training.loop import set_threads
        from subspaces.training.progress import ConsoleProgress

        set_threads(machine.threads)
        number, shards = artefact.settings["shard"], artefact.settings["shards"]
        bounds = shard_bounds(read_json(f"{CAPTIONS}.json")["captions"], shards)
        rows, fingerprint = bounds[number] if number < len(bounds) else None, None
        folder = artefact.path.with_suffix("")
        _clear(folder, artefact.key)
        if rows:
            encoder, (start, stop) = self._encoder(), rows
            fingerprint = encoder.fingerprint
            progress = ConsoleProgress(f"captions {start:,} to {stop:,}", "captions")
            build_shard(Path(f"{CAPTIONS}.txt"), start, stop, encoder, folder, progress=progress)
        write_json(artefact.output, {"key": artefact.key, "rows": rows, "encoder": fingerprint})

    def _build_index(self, artefact: Artefact, machine: Machine) -> None:
        from subspaces.search.build import merge
        from subspaces.search.storage import Manifest
        from subspaces.training.loop import set_threads

        set_threads(machine.threads)
        kind, folder = artefact.settings["kind"], artefact.path.with_suffix("")
        shards = [shard.path.with_suffix("") for shard in artefact.inputs if read_json(shard.output)["rows"]]
        _clear(folder, artefact.key)
        merge(shards, folder, kind=kind)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        count = Manifest.read(folder).count
        record = {"kind": kind, "documents": count, "bytes": size, "bytes_per_document": size / count}
        write_json(artefact.output, {"key": artefact.key, **record})
        print(f"{kind}: {count:,} captions, {size / count:,.0f} bytes each")

    def _measure_latency(self, artefact: Artefact, machine: Machine) -> None:
        from subspaces.experiments.efficiency.latency import measure_latency
        from subspaces.experiments.efficiency.settings import LatencySettings
        from subspaces.search.index import SubspaceIndex

        encoder = self._encoder()
        indexes = {
            index.settings["kind"]: SubspaceIndex.open(index.path.with_suffix(""), encoder) for index in artefact.inputs
        }
        found = measure_latency(
            LatencySettings.model_validate(artefact.settings),
            indexes,
            Path(f"{CAPTIONS}.txt"),
            artefact.path,
            artefact.key,
            machine.threads,
            self.params.scale,
        )
        for kind in indexes:
            row = found["rows"][kind]
            print(f"{kind}: {row['latency_ms']:.2f} ms, recall {row['recall']}, {row['bytes_per_document']:,.0f} bytes")

    def _measure_encoding(self, artefact: Artefact, machine: Machine) -> None:
        from subspaces.experiments.efficiency.encoding import measure_encoding
        from subspaces.experiments.efficiency.settings import EncodingSettings

        device = self.device(machine, large=True)
        found = measure_encoding(
            EncodingSettings.model_validate(artefact.settings),
            self._encoded,
            Path(f"{CAPTIONS}.txt"),
            SOURCES,
            artefact.path,
            artefact.key,
            machine.threads,
            device,
            self.params.scale,
        )
        print("  ".join(f"{size}: +{value:.2f} ms" for size, value in found["added"].items()))

    def _answer_queries(self, artefact: Artefact, machine: Machine) -> None:
        from subspaces.experiments.efficiency.composed_queries import write_found
        from subspaces.experiments.efficiency.settings import QueriesSettings
        from subspaces.search.index import SubspaceIndex

        job = self.project.experiment("snli").settings.job(self._row, 2, self.params.scale)
        index = SubspaceIndex.open(artefact.inputs[0].path.with_suffix(""), self._encoder())
        backbone = SOURCES / job.backbone.name
        found = write_found(
            index,
            QueriesSettings.model_validate(artefact.settings),
            backbone,
            job,
            artefact.path,
            artefact.key,
            machine.threads,
            self.params.scale,
        )
        for query in found["queries"]:
            print(f"{query['query']}: {query['subspace'][0]['text']}")

    def _measure_compression(self, artefact: Artefact, machine: Machine, part: str) -> None:
        from subspaces.experiments.efficiency.compression import write_compression
        from subspaces.experiments.efficiency.settings import CompressionSettings

        row = self.params.figures.rank_vs_descendants.model if part == "wordnet" else self._row
        extra = {"scale": self.params.scale, "model": row}
        model = artefact.inputs[0].path.parent
        write_compression(
            part,
            model,
            CompressionSettings.model_validate(artefact.settings),
            SOURCES,
            artefact.path,
            artefact.key,
            machine.threads,
            extra,
        )


def _clear(folder: Path, key: str) -> None:
    """Remove what was made for another key: a finished folder, and one that a killed run left half done."""
    mark = folder.with_suffix(".key")
    shutil.rmtree(folder, ignore_errors=True)
    if not mark.exists() or mark.read_text() != key:
        shutil.rmtree(folder.with_name(folder.name + ".part"), ignore_errors=True)
        write_text(mark, key)
