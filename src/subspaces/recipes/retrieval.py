"""Retrieval: captions, shards, indexes, and what is measured on them (Tables 7 and 8, three figures)."""

from __future__ import annotations

from subspaces.errors import UserError
from subspaces.keys import Recipe
from subspaces.paper import registry
from subspaces.paper.registry import PaperNumber
from subspaces.recipes.composition import CompositionRecipes
from subspaces.recipes.wordnet import WordnetRecipes

COMPRESSED = ("wordnet", "snli")  # the halves of the compression figure


class RetrievalRecipes(WordnetRecipes, CompositionRecipes):
    @property
    def retrieval_budget(self):
        return getattr(self.params.retrieval.scales, self.params.scale)

    def captions(self) -> Recipe:
        settings = {"captions": self.retrieval_budget.captions}
        return Recipe("data/captions.json", settings, ("subspaces.retrieval.captions",), (self.source("flickr30k"),))

    @property
    def retrieval_model(self) -> Recipe:
        """The 2-way SNLI model that encodes captions and queries."""
        return self.snli_model(self.params.retrieval.model, 2, self.snli_budget.seeds[0])

    def shard(self, place: int) -> Recipe:
        """One slice of the captions, encoded."""
        model, shards = self.retrieval_model, self.retrieval_budget.shards
        code = ("subspaces.retrieval.store", "subspaces.retrieval.encoder", "subspaces.retrieval.documents", "subspaces.nli.load")
        settings = {"shards": shards, "shard": place}
        output = f"data/retrieval/{self.params.retrieval.model}/shard-{place}.json"
        return Recipe(output, settings, (*code, model.code[1]), (self.captions(), model))

    @property
    def shards(self) -> tuple[Recipe, ...]:
        return tuple(self.shard(place) for place in range(self.retrieval_budget.shards))

    def index(self, kind: str) -> Recipe:
        """All shards, merged and made into one kind of index."""
        output = f"data/retrieval/{self.params.retrieval.model}/{kind}.json"
        return Recipe(output, {"kind": kind, "seed": self.params.retrieval.seed}, ("subspaces.retrieval.build",), self.shards)

    @property
    def indexes(self) -> tuple[Recipe, ...]:
        return tuple(self.index(kind) for kind in self.params.retrieval.kinds)

    # --- what is measured -------------------------------------------------------------------------------------------------

    @property
    def latency(self) -> Recipe:
        """One run measures every row of Table 8, and our own; each row of the table has its file beside this one."""
        family, budget = self.params.retrieval, self.retrieval_budget
        settings = {"queries": budget.queries, "repeats": budget.repeats, "batch": family.batch, "top": family.top, "seed": family.seed}
        settings |= {"conjunction": family.conjunction, "kinds": family.kinds}
        return Recipe("results/evaluations/retrieval_latency/all.json", settings, ("subspaces.retrieval.measured",), self.indexes)

    def latency_row(self, row: str) -> Recipe:
        return Recipe(f"results/evaluations/retrieval_latency/{row}.json", {"row": row}, (), (self.latency,))

    @property
    def encoding(self) -> Recipe:
        family, budget = self.params.retrieval, self.retrieval_budget
        row = self.params.snli.job("mpnet-subspace-128", 2, self.params.scale)
        settings = {"batches": family.batches, "sentences": budget.sentences, "repeats": budget.repeats, "job": row, "seed": family.seed}
        inputs = (self.captions(), self.source(row["backbone"]["name"]))
        code = ("subspaces.retrieval.encoding", "subspaces.nli.encoders.subspace")
        return Recipe("results/evaluations/encoding_time/all.json", settings, code, inputs)

    def encoding_row(self, row: str) -> Recipe:
        return Recipe(f"results/evaluations/encoding_time/{row}.json", {"row": row}, (), (self.encoding,))

    @property
    def found(self) -> Recipe:
        """The figure's queries: captions found by subspace logic, by the plain text of the query, by vector arithmetic."""
        family = self.params.retrieval
        settings = {"queries": family.queries, "conjunction": family.conjunction, "top": family.top}
        settings["captions"] = self.retrieval_budget.compared
        code = ("subspaces.retrieval.found", "subspaces.nli.load", self.retrieval_model.code[1])
        backbone = self.source(self.params.snli.job(family.model, 2, self.params.scale)["backbone"]["name"])
        return Recipe("results/evaluations/retrieval_queries.json", settings, code, (self.index(family.kinds[0]), backbone))

    def compression(self, part: str) -> Recipe:
        """Quality and mean rank as eigenvalues below τ are dropped: mAP on WordNet, or 2-way accuracy on SNLI."""
        family, budget = self.params.retrieval, self.retrieval_budget
        settings = {"taus": family.taus, "seed": family.seed}
        if part == "wordnet":
            row = self.params.figures.rank_vs_descendants.model
            model = self.reconstruction_model(row, "nouns", self.params.reconstruction_budget.seeds[0])
            settings["nodes"] = budget.compression_nodes
        elif part == "snli":
            model, settings["pairs"] = self.retrieval_model, budget.compression_pairs
        else:
            raise UserError(f"compression is measured on {' or '.join(COMPRESSED)}, not on {part!r}.")
        code = ("subspaces.retrieval.compressed", model.code[1])
        return Recipe(f"results/evaluations/compression/{part}.json", settings, code, (model,))

    # --- numbers ----------------------------------------------------------------------------------------------------------

    def evidence_retrieval_latency(self, entry: PaperNumber) -> tuple[Recipe, ...]:
        return (self.latency_row(entry.row),)

    def evidence_encoding_time(self, entry: PaperNumber) -> tuple[Recipe, ...]:
        return (self.encoding_row(entry.row),)

    def reason_retrieval_latency(self, entry: PaperNumber) -> str | None:
        return None

    reason_encoding_time = reason_retrieval_latency

    def rows_of(self, table: str) -> list[str]:
        return list(dict.fromkeys(one.row for one in registry.of_table(table)))

    def retrieval_everything(self) -> list[Recipe]:
        return [
            self.captions(),
            *self.shards,
            *self.indexes,
            self.latency,
            *(self.latency_row(row) for row in self.rows_of("retrieval_latency")),
            self.encoding,
            *(self.encoding_row(row) for row in self.rows_of("encoding_time")),
            self.found,
            *map(self.compression, COMPRESSED),
        ]
