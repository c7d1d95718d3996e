"""Snakemake as it is, except that it asks SLURM every second; the executor asks less and less often, up to every three minutes."""

from __future__ import annotations

from snakemake.cli import main
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

RemoteExecutor.next_seconds_between_status_checks = property(lambda self: 1, lambda self, value: None)

if __name__ == "__main__":
    main()
