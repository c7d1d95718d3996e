"""The exceptions that are meant for people: they say what is wrong and what to do next."""

from pathlib import Path


class UserError(Exception):
    """Wrong input, missing source, impossible request. The command line prints it without a traceback."""


class DamagedModel(UserError):
    """The weights in `folder` are not the ones that its settings name."""

    def __init__(self, folder: Path):
        super().__init__(f"{folder / 'weights.safetensors'} is damaged or missing: copy {folder} again, or delete it and train again.")
        self.folder = folder
