"""`make docs`: the reference has a page for every module of the library, and pdoc resolves every name and annotation."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src/subspaces"


def test_every_module_of_the_library_has_a_page(tmp_path: Path) -> None:
    reference = runpy.run_path(str(ROOT / "workflow/reference.py"))
    reference["write_reference"](tmp_path)
    pages = {path.relative_to(tmp_path).as_posix() for path in (tmp_path / "subspaces").rglob("*.html")}
    homes = [SOURCE / name for name in reference["LIBRARY"]]
    files = [file for home in homes for file in (home.rglob("*.py") if home.is_dir() else [home.with_suffix(".py")])]
    assert len(files) > 50 and {file.parent.name for file in files} >= {"geometries", "encoders", "kinds"}
    for file in files:
        module = file.parent if file.name == "__init__.py" else file.with_suffix("")
        assert f"{module.relative_to(SOURCE.parent)}.html" in pages
    assert (tmp_path / "subspaces.html").read_text(encoding="utf-8").count("Concepts as linear subspaces") > 0
    text = (tmp_path / "subspaces/geometries/base.html").read_text(encoding="utf-8")
    assert "Training scores of pairs" in text  # a docstring of a method
