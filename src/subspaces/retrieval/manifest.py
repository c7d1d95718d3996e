"""What an index says of itself: manifest.json, written last, so that a folder with one is whole."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from subspaces.errors import UserError
from subspaces.files import digest, read_json, sha256_file, write_json

NAME = "manifest.json"
FORMAT = 1


@dataclass(frozen=True)
class Slice:
    """Rows start … stop − 1 of `total` documents whose texts hash to `of`."""

    start: int
    stop: int
    total: int
    of: str


@dataclass(frozen=True)
class Manifest:
    kind: str
    encoder: str  # fingerprint of the model
    dim: int
    count: int
    documents: Slice
    asked: dict[str, Any]  # settings that were given, as opposed to those that were used
    settings: dict[str, Any]
    engine: str = "embedded"
    place: dict[str, str] = field(default_factory=dict)  # of an engine that keeps the vectors elsewhere
    files: dict[str, dict[str, Any]] = field(default_factory=dict)  # name → bytes, sha256
    bytes: int = 0
    format: int = FORMAT

    @property
    def width(self) -> int:
        return self.dim * (self.dim + 1) // 2

    @property
    def request(self) -> str:
        """Names what was asked for: the same request is the same index."""
        parts = (self.kind, self.engine, self.place.get("uri"), self.encoder, self.dim, asdict(self.documents), self.asked)
        return digest(list(parts))

    def with_files(self, folder: Path, names: list[str]) -> Manifest:
        files = {name: {"bytes": (folder / name).stat().st_size, "sha256": sha256_file(folder / name)} for name in sorted(names)}
        return Manifest(**{**self._fields(), "files": files, "bytes": sum(one["bytes"] for one in files.values())})

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def write(self, folder: Path) -> None:
        write_json(folder / NAME, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        if not (folder / NAME).is_file():
            raise UserError(f"{folder} is not an index (it has no {NAME}): make one with `subspaces index`.")
        content = read_json(folder / NAME)
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise UserError(f"{folder / NAME} is not of format {FORMAT}, which this version reads: build the index again.")
        try:
            return cls(**{**content, "documents": Slice(**content["documents"])})
        except (TypeError, KeyError) as error:
            raise UserError(f"{folder / NAME} is damaged ({error}): build the index again.") from error

    def check_files(self, folder: Path, thorough: bool = False) -> None:
        """Sizes always; with `thorough` every byte, which takes as long as reading the index."""
        for name, expected in self.files.items():
            path = folder / name
            if not path.is_file() or path.stat().st_size != expected["bytes"] or (thorough and sha256_file(path) != expected["sha256"]):
                raise UserError(f"{path} is damaged or missing: copy the folder again, or delete it and build the index again.")

    def check_encoder(self, folder: Path, fingerprint: str, dim: int) -> None:
        if fingerprint != self.encoder:
            raise UserError(
                f"{folder} was built with the model {self.encoder}, and this is the model {fingerprint}: their spaces have nothing in "
                "common. Load the first model, or build the index again with the second."
            )
        if dim != self.dim:
            raise UserError(f"{folder} holds subspaces of dimension {self.dim}, and this model makes some of dimension {dim}.")
