#!/usr/bin/env bash
# Programs that some tests drive, where they can be installed: a browser for the page. Without them those tests skip, and say so.
set -euo pipefail
command -v chromium > /dev/null && command -v chromedriver > /dev/null && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get > /dev/null; then
  echo "no Chromium here, and it cannot be installed without root and apt-get: the browser tests will be skipped"
  exit 0
fi
echo "installing Chromium for the browser tests"
log=$(mktemp)
if ! { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends chromium chromium-driver; } > "$log" 2>&1; then
  tail -5 "$log"
  echo "Chromium could not be installed: the browser tests will be skipped"
fi
rm -f "$log"
