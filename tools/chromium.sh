#!/usr/bin/env bash
# Install what the browser tests of the console need: Debian's Chromium, and a font that has Chinese.
set -euo pipefail
command -v chromium >/dev/null && exit 0
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends chromium fonts-wqy-microhei
