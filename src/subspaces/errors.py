"""The exceptions that users see: they say what is wrong and what to do next."""

from pathlib import Path


class UserError(ValueError):
    """Wrong input, missing source, impossible request. The command line prints it without a traceback; a library user catches it as
    the ValueError that it is."""


class DamagedModel(UserError):
    """The weights in `folder` are not the ones that its settings name."""

    def __init__(self, folder: Path):
        super().__init__(
            f"{folder / 'weights.safetensors'} is damaged or missing: copy {folder} again, or delete it and train again."
        )
        self.folder = folder


# import name -> the extra that brings it, where it is not the pipeline
_EXTRAS = {
    "matplotlib": "plot",
    "fastapi": "serve",
    "uvicorn": "serve",
    "milvus_lite": "milvus",
    "pymilvus": "milvus",
    "sentence_transformers": "sentence-transformers",
}
_PIPELINE = {
    "datasets",
    "dvc",
    "geoopt",
    "google",
    "huggingface_hub",
    "jinja2",
    "jsonschema",
    "latex2mathml",
    "markdown_it",
    "nltk",
    "pandas",
    "pyarrow",
    "sklearn",
    "snakemake",
}


def missing_package(error: ModuleNotFoundError) -> str | None:
    """What to install when an import failed: the extra of this package that brings it; None for a module of no extra."""
    name = (error.name or "").partition(".")[0]
    extra = _EXTRAS.get(name) or ("pipeline" if name in _PIPELINE else None)
    return extra and f"this needs the package {name}, which is not installed: pip install 'subspaces[{extra}]'."
