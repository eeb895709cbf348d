#!/usr/bin/env bash
# The README's "run it": everything from a fresh Debian 12 to a running
# all-in-one cluster with its demonstration. Arguments go to
# "swift-dss aio start".
set -euo pipefail
# shellcheck source=devstack/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
need_system python3=python3 xfsprogs=mkfs.xfs mount=losetup util-linux=mount
# bench: plots of the first things that one tries.
need_venv aio,bench
say "installed; starting the cluster"
exec "$venv/bin/swift-dss" aio start "$@" < /dev/null
