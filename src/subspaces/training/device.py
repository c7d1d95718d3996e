"""Where the arithmetic of training happens: the processor, or a CUDA device where there is one."""

from __future__ import annotations

import os

import torch

from subspaces.errors import UserError

DEVICES = ("auto", "cpu", "cuda")


def choose_device(name: str) -> str:
    """cpu or cuda; `auto` takes CUDA when there is one. CUDA is told to give the same bits again."""
    if name not in DEVICES:
        raise UserError(f"unknown device {name!r}: use auto, cpu or cuda.")
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("no CUDA device can be used here: run `nvidia-smi` to see why, or use --device cpu.")
    if name == "cpu" or not torch.cuda.is_available():
        return "cpu"
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    return "cuda"
