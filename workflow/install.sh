#!/usr/bin/env bash
# Make a virtual environment with the versions of workflow/requirements.lock: install.sh PYTHON FOLDER
set -euo pipefail
python=$1
folder=$2

"$python" - <<'PY' || { echo "error: Python 3.11 or newer is needed; call make with PYTHON=/path/to/python3.11" >&2; exit 1; }
import sys
sys.exit(sys.version_info < (3, 11))
PY
if ! "$folder/bin/python" -m pip --version >/dev/null 2>&1; then # absent, or interrupted while it was made
  echo "making $folder"
  if ! "$python" -m venv "$folder" 2>/dev/null; then
    rm -rf "$folder"
    # Debian ships venv without pip unless python3-venv is there
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
      apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null
      "$python" -m venv "$folder"
    else
      echo "error: $python cannot make a virtual environment; install python3-venv and try again" >&2
      exit 1
    fi
  fi
fi
pip() { "$folder/bin/python" -m pip --quiet "$@"; }

lock=workflow/requirements.lock
torch=$(grep '^torch==' "$lock")
echo "installing $torch and the rest of the stack (a few minutes the first time)"
# A machine without an NVIDIA driver gets the CPU build where the configured package sources offer one.
if command -v nvidia-smi >/dev/null || ! pip install "$torch+cpu" 2>/dev/null; then
  pip install "$torch"
fi
pip install -c "$lock" -e ".[dev]"
"$folder/bin/python" -m pip check >/dev/null || { "$folder/bin/python" -m pip check; exit 1; }
echo "ready: $("$folder/bin/python" -c 'import torch; print("torch", torch.__version__, "with CUDA" if torch.cuda.is_available() else "on CPU")')"
