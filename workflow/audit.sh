#!/usr/bin/env bash
# Known vulnerabilities of what is installed in a virtual environment: audit.sh FOLDER. pip-audit gets an environment of its own.
set -euo pipefail
folder=$1
tools=$folder/audit
[ -x "$tools/bin/pip-audit" ] || { "$folder/bin/python" -m venv "$tools" && "$tools/bin/python" -m pip --quiet install pip-audit==2.10.1; }
packages=$("$folder/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
if said=$("$tools/bin/pip-audit" --vulnerability-service osv --path "$packages" --skip-editable --progress-spinner off 2>&1); then
  echo "$said"
elif grep -qE "ConnectionError|ServiceError|Max retries" <<< "$said"; then
  echo "the vulnerability service cannot be reached from here: nothing was checked"
else
  echo "$said"
  exit 1
fi
