"""The example of docs/retrieval.md, run as a reader would."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_example_prints_what_its_comments_say(tmp_path: Path) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/retrieval.md").read_text(), re.DOTALL)
    said = [line.split("#")[1].strip() for line in example.splitlines() if line.startswith("print(")]
    assert len(said) == 2
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == said
