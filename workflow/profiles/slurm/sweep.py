"""One SLURM array for the seeds of a sweep: `python profiles/slurm/sweep.py PATTERN SEED… [-- OPTIONS OF SNAKEMAKE]`, for example
`python profiles/slurm/sweep.py 'results/evaluations/reconstruction/subspace-64/nouns/seed-{seed}.json' 0 1 2 3 4`.

What the seeds share is made first. Then every task of the array makes the file of its seed, with the resources that the rules ask for.
A task that was killed or reached its limit is sent again and goes on from its checkpoint. The executor's own arrays are not used: there
one killed task takes the finished results of all others with it, and all tasks get the memory and time of the first.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

SNAKEMAKE = str(Path(sys.executable).with_name("snakemake"))
LOGS = Path("logs/slurm/sweep")
LARGEST = ("mem_mb", "runtime", "gpu")


def planned(targets: list[str], options: list[str]) -> list[dict[str, str]]:
    """The jobs that the targets need: rule, wildcards, threads and resources, as a dry run tells them."""
    done = subprocess.run(
        [SNAKEMAKE, "--cores", "all", "--dry-run", *options, "--", *targets],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"the sweep cannot be planned:\n{(done.stdout + done.stderr)[-2000:]}")
    jobs = []
    for block in re.split(r"\n(?=(?:local)?rule )", done.stdout):
        if begin := re.match(r"(?:local)?rule (\w+):", block):
            lines = dict(re.findall(r"\n    (wildcards|threads|resources): (.*)", block))
            parts = [*lines.get("wildcards", "").split(", "), *lines.get("resources", "").split(", ")]
            asked = dict(part.split("=", 1) for part in parts if "=" in part)
            jobs.append({"rule": begin[1], "threads": lines.get("threads", "1")} | asked)
    return jobs


def sbatch_options(jobs: list[dict[str, str]]) -> list[str]:
    """What a task asks for: the most that one of its jobs does, and time for all of them."""
    most = {name: max(int(job.get(name, 0)) for job in jobs) for name in LARGEST}
    by_rule = {job["rule"]: int(job.get("runtime", 0)) for job in jobs}
    options = [
        f"--mem={most['mem_mb']}",
        f"--time={sum(by_rule.values())}",
        f"--cpus-per-task={max(int(job['threads']) for job in jobs)}",
    ]
    if most["gpu"]:
        options.append(f"--gpus={most['gpu']}")
    neediest = max(jobs, key=lambda job: int(job.get("gpu", 0)))
    for name, option in (("slurm_partition", "--partition"), ("slurm_account", "--account")):
        if neediest.get(name):
            options.append(f"{option}={neediest[name]}")
    return options


def submit(pattern: str, seeds: list[int], asked: list[str], options: list[str]) -> str:
    """Send one array; its number."""
    run = shlex.join([SNAKEMAKE, "--nolock", *options])
    script = "\n".join(
        (
            "#!/usr/bin/env bash",
            "set -euo pipefail",
            f"pattern={shlex.quote(pattern)}",
            f'{run} --cores "$SLURM_CPUS_PER_TASK" -- "${{pattern//\\{{seed\\}}/$SLURM_ARRAY_TASK_ID}}"',
            f"touch {LOGS}/$SLURM_ARRAY_JOB_ID.$SLURM_ARRAY_TASK_ID.done",
            "",
        )
    )
    array = [f"--array={','.join(map(str, seeds))}", f"--output={LOGS}/%A.%a.log", "--job-name=sweep"]
    LOGS.mkdir(parents=True, exist_ok=True)
    sent = subprocess.run(
        ["sbatch", "--parsable", *array, *asked], input=script, capture_output=True, text=True, check=False
    )
    job = sent.stdout.strip().split(";")[0]
    if not job.isdigit():
        raise SystemExit(f"SLURM refused the array: {sent.stderr.strip()}\nasked for: {shlex.join(asked)}")
    return job


def wait(job: str, seconds: float) -> None:
    """Until no task of the array is left. An interrupt cancels them. `sbatch --wait` would notice the end half a minute late."""
    states = "--states=PENDING,RUNNING,SUSPENDED,COMPLETING"
    try:
        while True:
            asked = subprocess.run(
                ["squeue", "--noheader", states, f"--jobs={job}"], capture_output=True, text=True, check=False
            )
            # a scheduler that does not answer now will later; one that knows no such job has forgotten it
            if not asked.stdout.strip() and (asked.returncode == 0 or "Invalid job id" in asked.stderr):
                return
            time.sleep(seconds)
    except KeyboardInterrupt:
        subprocess.run(["scancel", job], check=False)
        raise SystemExit(
            f"interrupted; array {job} is cancelled. The same command goes on from the checkpoints."
        ) from None


def main() -> None:
    parser = argparse.ArgumentParser(description="Train or evaluate many seeds as one SLURM array.")
    parser.add_argument("pattern", help="a file that the graph can make, with {seed} for the seed")
    parser.add_argument("seeds", nargs="+", type=int)
    parser.add_argument("--retries", type=int, default=3, help="how often tasks that were killed are sent again")
    parser.add_argument(
        "--every", type=float, default=15, metavar="SECONDS", help="how often SLURM is asked whether tasks are left"
    )
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    given, options = parser.parse_args(words[:cut]), words[cut + 1 :]
    if "{seed}" not in given.pattern or min(given.seeds) < 0:
        raise SystemExit("the pattern needs {seed} in it, and seeds are 0 or more")
    targets = [given.pattern.replace("{seed}", str(seed)) for seed in given.seeds]
    jobs = planned(targets, options)
    own = [job for job in jobs if "seed" in job]
    if not own:
        print("everything is there already")
        return
    if len(own) < len(jobs):
        rules = sorted({job["rule"] for job in own})
        subprocess.run([SNAKEMAKE, "--cores", "1", *options, "--omit-from", *rules, "--", *targets], check=True)
    left, asked = given.seeds, sbatch_options(own)
    for attempt in range(given.retries + 1):
        print(f"attempt {attempt + 1}: seeds {', '.join(map(str, left))}, {shlex.join(asked)}", flush=True)
        job = submit(given.pattern, left, asked, options)
        wait(job, given.every)
        left = [seed for seed in left if not (LOGS / f"{job}.{seed}.done").exists()]
        if not left:
            return
    raise SystemExit(f"seeds {', '.join(map(str, left))} did not finish; see {LOGS}")


if __name__ == "__main__":
    main()
