"""`subspaces watch`: stages from Snakemake's log, and what a failure says. The logs here have the lines of Snakemake 9."""

from __future__ import annotations

import sys

import pytest

from subspaces.pipeline.watch import JobLog, stage_of, watch

STATS = """Building DAG of jobs...
Job stats:
job                        count
-----------------------  -------
all                            1
fetch_source                   1
train_reconstruction           2
write_table                    1
total                          5

Select jobs to execute...
"""
START = """[Wed Nov 18 21:00:00 2026]
{local}rule {rule}:
    output: somewhere
    log: logs/{job}.log
    jobid: {job}
    reason: Missing output files: somewhere
"""
END = """[Wed Nov 18 21:00:01 2026]
Finished jobid: {job} (Rule: {rule})
1 of 5 steps (20%) done
"""
ERROR = """[Wed Nov 18 21:00:01 2026]
Error in rule train_reconstruction:
    message: None
    jobid: 2
    output: somewhere
    log: logs/2.log (check log file(s) for error details)
    shell:
        subspaces make somewhere
        (command exited with non-zero exit code)
"""


def start(rule: str, job: int, local: str = "") -> str:
    return START.format(rule=rule, job=job, local=local)


def end(rule: str, job: int) -> str:
    return END.format(rule=rule, job=job)


def read(log: JobLog, text: str, now: float = 0.0) -> JobLog:
    for line in text.splitlines(keepends=True):
        log.read(line, now)
    return log


def test_stages_are_counted_in_the_order_of_the_graph():
    log = read(JobLog(), STATS)
    assert [(name, stage.total) for name, stage in log.in_order()] == [
        ("data", 1),
        ("training", 2),
        ("tables and page", 1),
    ]


def test_the_time_left_comes_from_the_jobs_that_ended():
    log = read(JobLog(), STATS)
    training = log.stages["training"]
    read(log, start("train_reconstruction", 2), 10.0)
    assert training.left(1) is None
    read(log, end("train_reconstruction", 2), 40.0)
    assert (training.done, training.left(1), training.left(2)) == (1, 30.0, 15.0)
    read(log, start("train_reconstruction", 3) + end("train_reconstruction", 3), 50.0)
    assert (training.done, training.left(1)) == (2, None)


def test_jobs_side_by_side_are_noticed():
    log = read(JobLog(), STATS + start("train_reconstruction", 2) + start("fetch_source", 1, "local"))
    assert log.most == 2
    read(log, end("fetch_source", 1) + start("train_reconstruction", 3))
    assert log.most == 2


def test_a_failed_job_is_known_with_its_log():
    log = read(JobLog(), STATS + start("train_reconstruction", 2) + ERROR)
    assert log.failed == [("train_reconstruction", "logs/2.log")]
    assert log.stages["training"].done == 0


@pytest.mark.parametrize(
    ("rule", "stage"),
    [("build_split", "data"), ("build_index", "search and speed"), ("draw_figure", "figures"), ("new", "other steps")],
)
def test_every_rule_has_a_stage(rule, stage):
    assert stage_of(rule) == stage


def run(tmp_path, text: str, code: int, verbose: bool = False) -> int:
    (tmp_path / "said.txt").write_text(text)
    program = f"print(open({str(tmp_path / 'said.txt')!r}).read(), end=''); raise SystemExit({code})"
    return watch([sys.executable, "-c", program], tmp_path, tmp_path / "logs/snakemake.log", verbose)


def test_a_run_shows_its_stages_and_keeps_the_log(tmp_path, capsys):
    text = STATS + start("fetch_source", 1) + end("fetch_source", 1)
    assert run(tmp_path, text, 0) == 0
    shown = capsys.readouterr().out
    assert "data             1 of 1 done" in shown
    assert str(tmp_path / "logs/snakemake.log") in shown
    assert "Job stats" not in shown and "What to do" not in shown
    assert (tmp_path / "logs/snakemake.log").read_text() == text


def test_verbose_shows_the_log(tmp_path, capsys):
    assert run(tmp_path, STATS, 0, verbose=True) == 0
    assert STATS in capsys.readouterr().out


def test_a_failure_shows_the_end_of_the_jobs_log_and_what_to_do(tmp_path, capsys):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/2.log").write_text("\n".join(f"line {number}." for number in range(40)) + "\nno space left\n")
    assert run(tmp_path, STATS + start("train_reconstruction", 2) + ERROR, 1) == 1
    shown = capsys.readouterr().out
    assert "train_reconstruction failed." in shown and "no space left" in shown
    assert "line 39." in shown and "line 5." not in shown
    assert "What to do:" in shown and "VERBOSE=1" in shown


def test_a_failure_before_any_job_shows_the_end_of_snakemakes_log(tmp_path, capsys):
    assert run(tmp_path, "Error: Directory cannot be locked.\n", 1) == 1
    shown = capsys.readouterr().out
    assert "Directory cannot be locked." in shown and "What to do:" in shown
