"""`cluster`: what jobs ask of SLURM. Nothing here changes what is computed, so no key depends on it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from subspaces.settings import Strict

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.,-]+$")]
Minutes = Annotated[int, Field(ge=1)]


class Gpus(Strict):
    """GPUs of one training job that can use them, by scale."""

    quick: int = Field(ge=0)
    laptop: int = Field(ge=0)
    paper: int = Field(ge=0)


class MinutesByScale(Strict):
    quick: Minutes
    laptop: Minutes
    paper: Minutes


class JobMinutes(Strict):
    """Time limits. A training job that reaches its limit is submitted again and resumes from its checkpoint."""

    training: MinutesByScale
    evaluation: MinutesByScale
    other: MinutesByScale


class Cluster(Strict):
    partition: Name | None = Field(description="of every job; null: the cluster's default")
    gpu_partition: Name | None = Field(description="of jobs that ask for a GPU; null: as the others")
    account: Name | None = Field(description="who pays; null: the user's default")
    gpus: Gpus
    minutes: JobMinutes
