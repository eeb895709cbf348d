# shellcheck shell=bash
# Sourced by devstack/aio.sh and test/run: makes sure of the system's
# packages and of a virtual environment, and says what is missing where it
# may not install. Sets $venv. Nothing is asked and stdin is not read.

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${SWIFT_DSS_VENV:-$here/.venv}
export DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1

# say <words>: a progress line with the seconds since the start.
function say {
    printf '[%5d s] %s\n' "$SECONDS" "$*"
}

# missing_packages <package>=<command>...: those whose command is not there.
function missing_packages {
    local pair
    for pair in "$@"; do
        PATH=$PATH:/usr/sbin:/sbin command -v "${pair#*=}" > /dev/null \
            || echo "${pair%%=*}"
    done
}

# need_system <package>=<command>...: install what is missing, as root;
# otherwise name it. Loop devices and shell checks can be done without, a
# Python with venv cannot.
function need_system {
    local missing
    mapfile -t missing < <(missing_packages "$@")
    python3 -c 'import ensurepip, venv' 2> /dev/null \
        || missing+=(python3-venv)
    [[ ${#missing[@]} -gt 0 ]] || return 0
    if [[ $(id -u) -eq 0 ]] && command -v apt-get > /dev/null; then
        say "installing ${missing[*]}"
        apt-get update -qq < /dev/null
        apt-get install -y -qq --no-install-recommends "${missing[@]}" \
            < /dev/null > /dev/null
        return 0
    fi
    echo "Not root, so these packages were not installed: ${missing[*]}" >&2
    echo "  apt-get install ${missing[*]}" >&2
    [[ " ${missing[*]} " != *" python3"* ]]
}

# need_venv <extras>: the environment with this checkout installed in it.
function need_venv {
    local extras=$1 stamp
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 7))' || {
        echo "Python 3.7 or later is needed" >&2
        return 1
    }
    stamp=$(cat "$here/setup.cfg" "$here/constraints.txt" \
            "$here/pyproject.toml" "$here/setup.py" \
            "$here/swift_dss/io/md5_lanes.c" | sha256sum | cut -c1-16)-$extras
    if [[ -x $venv/bin/swift-dss && -e $venv/.swift-dss-$stamp ]]; then
        return 0
    fi
    say "installing swift-dss into $venv"
    [[ -x $venv/bin/pip ]] || python3 -m venv "$venv"
    "$venv/bin/pip" install -q -c "$here/constraints.txt" \
        -e "${here}[$extras]" < /dev/null
    rm -f "$venv"/.swift-dss-*
    touch "$venv/.swift-dss-$stamp"
}
