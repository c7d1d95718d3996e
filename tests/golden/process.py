"""`python -m tests.golden.process FILE` computes every golden result, with the arithmetic that all CPUs of a kind share.

Kernels for AVX2 and AVX-512 add in other orders, and the training of an encoder makes a different last digit a different third one. So
the results are computed in a process of their own, in which every library uses its plain kernels; a library reads the choice when it is
imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PLAIN = {
    "ATEN_CPU_CAPABILITY": "default",
    "FAISS_OPT_LEVEL": "generic",
    "MKL_CBWR": "COMPATIBLE",
    "NUMBA_CPU_NAME": "generic",
    "OMP_NUM_THREADS": "1",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "OPENBLAS_CORETYPE": "Nehalem",
}


def compute(folder: Path) -> dict[str, dict[str, Any]]:
    """Run this module in `folder`; for each computation its versions and result, or the error that it ended with."""
    file = folder / "results.json"
    environment = {
        **os.environ,
        **PLAIN,
        "NUMBA_CACHE_DIR": str(folder / "numba"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "SUBSPACES_MIRROR": str(folder / "no-mirror"),
        "SUBSPACES_OFFLINE": "1",
    }
    subprocess.run([sys.executable, "-m", "tests.golden.process", str(file)], cwd=folder, env=environment, check=True)
    return json.loads(file.read_text(encoding="utf-8"))


def main(file: Path) -> None:
    from tests.golden.instances import INSTANCES, Golden, result_of

    golden, found = Golden(), {}
    for computation in INSTANCES:
        try:
            versions, result = result_of(golden, computation)
            found[computation] = {"versions": versions, "result": result}
        except Exception:  # the test of this computation shows it; the others go on
            found[computation] = {"error": traceback.format_exc()}
    file.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
