#!/usr/bin/env bash
# in_memory.sh COMMAND...: run it with an empty /tmp and /var/tmp in memory.
#
# Clusters and nodes of the tests make sure of each write, as they do for
# users, and a disk that all of them share takes milliseconds for each time.
# Here the images and folders lie in memory, on ext4, and nobody waits. Other
# processes see nothing of it, and it goes with the last process that does.
#
# Needs root and memory. Where that is not so, or what is in use lies in these
# folders, it says why, and the command has those of the machine.
set -euo pipefail

least_gib=12
kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
why=
for used in "$PWD" "${XDG_CACHE_HOME:-$HOME/.cache}" "$(command -v python)"; do
    case $used in
        /tmp/* | /var/tmp/*) why="$used would be hidden" ;;
    esac
done
[[ $kib -ge $((least_gib * 1024 * 1024)) ]] \
    || why="$((kib / 1024 / 1024)) GiB of memory, not $least_gib"
unshare --mount true 2> /dev/null || why='may not mount'
losetup --find > /dev/null 2>&1 || why='no loop devices'
if [[ -n $why ]]; then
    echo "/tmp and /var/tmp stay on their disk: $why"
    exec "$@"
fi
unset TMPDIR
# shellcheck disable=SC2016  # those of the inner shell
exec unshare --mount --propagation private bash -euc '
    mount -t tmpfs -o "size=$1k" none /var/tmp
    truncate --size "$1K" /var/tmp/image
    mkfs.ext4 -q -F -m 0 /var/tmp/image
    mount -o loop,discard,noatime /var/tmp/image /var/tmp
    mkdir /var/tmp/tmp
    chmod 1777 /var/tmp /var/tmp/tmp
    mount --bind /var/tmp/tmp /tmp
    shift
    exec "$@"' in_memory $((kib * 2 / 3)) "$@"
