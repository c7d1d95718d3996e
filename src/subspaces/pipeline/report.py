"""Numbers, tables, figures and the page as artefacts: what each is made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from subspaces.errors import UserError
from subspaces.files import read_json, sha256_file, write_json, write_text
from subspaces.pipeline.artefact import Artefact, Machine
from subspaces.pipeline.experiment import Experiment
from subspaces.report import registry
from subspaces.report.labels import NLI_LABELS
from subspaces.report.layouts import Layout
from subspaces.report.numbers import FRAME, METRICS, NUMBERS
from subspaces.report.own_tables import OWN_TABLES

TABLE = "results/tables/{name}.tex"
FIGURE = "figures/{name}.png"
PAGE = "results/report.html"
BOUNDS = "results/evaluations/soft_projectors.json"


class ReportOutputs(Experiment):
    name = "report"

    # --- Table 1 ----------------------------------------------------------------------------------------------------------

    @cache  # noqa: B019
    def bounds(self) -> Artefact:
        return self.project.artefact(BOUNDS, ["bounds"], self.params.bounds.model_dump(), make=self._check_bounds)

    def _check_bounds(self, artefact: Artefact, machine: Machine) -> None:
        """Check every bound of Table 1 numerically; a violated bound is an error."""
        from dataclasses import asdict

        from subspaces.bounds import check_bounds, require_bounds

        rows = check_bounds(**artefact.settings)
        require_bounds(rows)
        content = {"settings": artefact.settings, "rows": [asdict(row) for row in rows]}
        write_json(artefact.output, {"key": artefact.key, **content})

    # --- numbers ----------------------------------------------------------------------------------------------------------

    @property
    def layouts(self) -> dict[str, tuple[Experiment, Layout]]:
        """Table of the paper -> (the experiment behind it, its layout), in the order of the registry."""
        found = {
            table.name: (experiment, table) for experiment in self.project.experiments for table in experiment.tables
        }
        return {name: found[name] for name in registry.tables()}

    @cached_property
    def _committed(self) -> dict[str, dict[str, Any]]:
        """What the project's own results say of numbers that a run elsewhere leaves out."""
        from subspaces.report.numbers import committed_numbers

        root = self.project.root
        return {} if self.project.folder.resolve() == root.resolve() else committed_numbers(root, self.params.scale)

    @cache  # noqa: B019
    def numbers(self, name: str) -> Artefact:
        """All numbers of one table: one job, one file each, and one provenance file that carries the key."""
        experiment, table = self.layouts[name]
        printed: dict[str, Any] = {}
        inputs: dict[str, Artefact] = {}
        for number in registry.of_table(name):
            column = table.column(number.column)
            evidence = experiment.evidence(table, number.row, column)
            inputs |= {artefact.output: artefact for artefact in evidence}
            reason = experiment.not_run(number.row, column.condition)
            printed[number.id] = {
                "value": number.value,
                "sd": number.sd,
                "evidence": [artefact.output for artefact in evidence],
                "reason": reason,
            }
            if reason and number.id in self._committed:
                printed[number.id]["committed"] = self._committed[number.id]
        return self.project.artefact(
            NUMBERS.format(table=name),
            ["report.numbers"],
            {"scale": self.params.scale, "printed": printed},
            inputs.values(),
            lambda artefact, machine: self._write_numbers(artefact, name),
            [METRICS.format(id=identifier) for identifier in printed],
        )

    def _write_numbers(self, artefact: Artefact, name: str) -> None:
        from subspaces.report.numbers import measured, unmeasured, write_numbers

        experiment, table = self.layouts[name]
        self._require_current(artefact)
        numbers = []
        for paper in registry.of_table(name):
            column = table.column(paper.column)
            paths = [evaluation.output for evaluation in experiment.evidence(table, paper.row, column)]
            evaluations = {path: read_json(path) for path in paths}
            found = [experiment.value(evaluation, paper.row, column) for evaluation in evaluations.values()]
            values = [value for value in found if value is not None]
            if not values or len(values) < len(found):
                reason = experiment.not_run(paper.row, column.condition)
                committed = self._committed.get(paper.id) if reason else None  # as in the key
                numbers.append(unmeasured(paper, self.params.scale, reason or "this row was not measured", committed))
                continue
            extent = experiment.extent(next(iter(evaluations.values())))
            numbers.append(measured(paper, self.params.scale, values, evaluations, extent))
        write_numbers(name, numbers, artefact.key)

    @cache  # noqa: B019
    def frame(self) -> Artefact:
        inputs = [self.numbers(name) for name in self.layouts]
        return self.project.artefact(FRAME, ["report.frame"], {}, inputs, self._write_frame)

    def _write_frame(self, artefact: Artefact, machine: Machine) -> None:
        from subspaces.report.numbers import write_frame

        self._require_current(artefact)
        write_frame(artefact.key)

    # --- tables -----------------------------------------------------------------------------------------------------------

    @property
    def table_names(self) -> list[str]:
        return [*self.layouts, *self.own_tables]

    @property
    def own_tables(self) -> list[str]:
        """Tables that the paper does not print, without those whose evaluations are not run."""
        return [name for name, table in OWN_TABLES.items() if table.inputs(self.project)]

    @property
    def _page_tables(self) -> list[str]:
        return [name for name in self.own_tables if OWN_TABLES[name].on_page]

    @property
    def figure_names(self) -> list[str]:
        """All figures without those whose evaluations are not run."""
        from subspaces.report.figures import FIGURES

        return [name for name, figure in FIGURES.items() if figure.run(self.project)]

    @cache  # noqa: B019
    def table(self, name: str) -> Artefact:
        output = TABLE.format(name=name)
        if name in OWN_TABLES:
            inputs = OWN_TABLES[name].inputs(self.project)
        elif name in self.layouts:
            extra = {found.output: found for row in self._extra_rows(name).values() for found in row.values()}
            inputs = [self.numbers(name), *extra.values()]
        else:
            raise UserError(f"unknown table {name!r}: choose one of {', '.join(self.table_names)}.")
        return self.project.artefact(
            output,
            ["report.tables"],
            {"table": name},
            inputs,
            lambda artefact, machine: self._write_table(artefact, name),
            [Path(output).with_suffix(".md").as_posix()],
        )

    def _extra_rows(self, name: str) -> Mapping[str, Mapping[str, Artefact]]:
        experiment, layout = self.layouts[name]
        return experiment.extra_rows(layout)

    def _extra_values(self, name: str) -> list[tuple[str, dict[str, float | None]]]:
        """The rows of our own of a table: label, and value by column id."""
        experiment, layout = self.layouts[name]
        return [
            (
                NLI_LABELS.get(row, row),
                {
                    column: experiment.value(read_json(found.output), row, layout.column(column))
                    for column, found in cells.items()
                },
            )
            for row, cells in self._extra_rows(name).items()
        ]

    def _write_table(self, artefact: Artefact, name: str) -> None:
        from subspaces.report import tables
        from subspaces.report.numbers import frame_of

        self._require_current(artefact)
        if name in OWN_TABLES:
            made = OWN_TABLES[name].make([read_json(evaluation.output) for evaluation in artefact.inputs])
            markdown, latex = made.markdown(artefact.key), made.latex(artefact.key, name)
        else:
            layout, numbers, extra = self.layouts[name][1], frame_of(name), self._extra_values(name)
            markdown, latex = (write(layout, numbers, artefact.key, extra) for write in (tables.markdown, tables.latex))
        write_text(artefact.path.with_suffix(".md"), markdown)
        write_text(artefact.path, latex)

    # --- figures ----------------------------------------------------------------------------------------------------------

    @cache  # noqa: B019
    def figure(self, name: str) -> Artefact:
        from subspaces.report.figures import FIGURES

        if name not in FIGURES:
            raise UserError(f"unknown figure {name!r}: choose one of {', '.join(FIGURES)}.")
        figure = FIGURES[name]
        settings = {"figure": name, **figure.settings(self.project)}
        output = FIGURE.format(name=name)
        return self.project.artefact(
            output,
            ["report.figures"],
            settings,
            figure.inputs(self.project),
            self._draw,
            [Path(output).with_suffix(".pdf").as_posix()],
        )

    def _draw(self, artefact: Artefact, machine: Machine) -> None:
        from subspaces.report.figures import FIGURES, FigureData
        from subspaces.report.style import save

        self._require_current(artefact)
        data = FigureData([source.path for source in artefact.inputs], artefact.settings)
        save(FIGURES[artefact.settings["figure"]].draw(data), artefact.path.with_suffix(""), artefact.key)

    # --- the page ---------------------------------------------------------------------------------------------------------

    @cache  # noqa: B019
    def page(self) -> Artefact:
        """results/report.html: every number, table and figure with its provenance, in one file."""
        from subspaces.report.page.build import asset_digests

        texts = [self.project.root / name for name in ("docs/deviations.md", "CITATION.cff")]
        settings: dict[str, Any] = {
            "assets": asset_digests(),
            "texts": {path.name: sha256_file(path) for path in texts if path.exists()},
        }
        inputs = [self.numbers(name) for name in self.layouts]
        inputs += [self.table(name) for name in self._page_tables] + [self.figure(name) for name in self.figure_names]
        inputs += self.project.experiment("models").artefacts()  # their training curves
        return self.project.artefact(PAGE, ["report.page"], settings, inputs, self._write_page)

    def _write_page(self, artefact: Artefact, machine: Machine) -> None:
        import os

        from subspaces.report.numbers import frame
        from subspaces.report.page.build import build_page

        self._require_current(artefact)
        here, root = Path.cwd(), self.project.root.resolve()
        build_page(
            frame(),
            Path(),
            artefact.path,
            artefact.key,
            figures=self.figure_names,
            extra_tables=tuple(self._page_tables),
            deviations=root / "docs/deviations.md",
            citation_file=root / "CITATION.cff",
            directory="" if here == root else os.path.relpath(here, root),
        )

    # --- all of it --------------------------------------------------------------------------------------------------------

    def artefacts(self) -> Iterable[Artefact]:
        return [
            self.bounds(),
            *(self.numbers(name) for name in self.layouts),
            self.frame(),
            *(self.table(name) for name in self.table_names),
            *(self.figure(name) for name in self.figure_names),
            self.page(),
        ]

    def _require_current(self, artefact: Artefact) -> None:
        """Refuse stale inputs: an output made from them would carry a wrong key."""
        stale = [source.output for source in artefact.inputs if source.is_stale()]
        if stale:
            shown = ", ".join(stale[:3]) + (f" and {len(stale) - 3} more" if len(stale) > 3 else "")
            raise UserError(
                f"stale inputs: {shown}. Run `snakemake --cores 2 -- {artefact.output}`, which rebuilds them first."
            )
