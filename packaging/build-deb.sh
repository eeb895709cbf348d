#!/usr/bin/env bash
# Builds the Debian packages swift-dss and dm-dss-dkms for the release of
# Debian that it runs on: build-deb.sh [FOLDER]. FOLDER is dist/ by default.
#
# PYTHON names an environment with swift-dss[package] in it, for the man pages;
# without it one is made. What is installed is built by /usr/bin/python3.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
target=$(realpath -m "${1:-$root/dist}")
export DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1
export PIP_ROOT_USER_ACTION=ignore

for command in dpkg-buildpackage dh dh_dkms; do
    command -v "$command" > /dev/null || {
        echo "build-deb.sh: no $command here. As root: apt-get install" \
             "--no-install-recommends build-essential debhelper dh-dkms" \
             "python3-dev python3-venv" >&2
        exit 69
    }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/swift-dss
mkdir "$tree"
cd "$root"
if git ls-files -z --cached --others --exclude-standard > "$work/names" 2> /dev/null; then
    # Only what is still there.
    xargs -0 ls -d 2> /dev/null < "$work/names" | tar -c -T - | tar -x -C "$tree"
else
    cp -r swift_dss etc doc packaging setup.py setup.cfg pyproject.toml \
        constraints.txt README.md LICENSE MANIFEST.in "$tree"
fi
cd "$tree"

/usr/bin/python3 -m venv "$work/venv"
pip=("$work/venv/bin/python" -m pip)
wanted=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')

echo "fetching the libraries"
mapfile -t needed < <(/usr/bin/python3 -c '
import configparser
setup = configparser.ConfigParser()
setup.read("setup.cfg")
for line in setup["options"]["install_requires"].split():
    # The node has its own Swift.
    if not line.startswith("swift>"):
        print(line)')
"${pip[@]}" install -q --no-compile --target stage/python3 \
    -c constraints.txt "${needed[@]}"
"${pip[@]}" install -q --no-compile --no-deps --upgrade \
    --target stage/python3 .
# What pip leaves beside modules: the files of etc/ and doc/man come from the
# checkout, the commands are the package's own.
rm -rf stage/python3/bin stage/python3/share build ./*.egg-info
rm -f stage/python3/*.dist-info/direct_url.json
# Of the hundreds of services that botocore describes: S3, and those that give
# credentials for it.
find stage/python3/botocore/data -mindepth 1 -maxdepth 1 -type d \
    ! -name s3 ! -name sts ! -name 'sso*' ! -name signin -exec rm -r {} +

echo "making man pages and completion"
if [[ -z ${PYTHON:-} ]]; then
    "${pip[@]}" install -q -c constraints.txt ".[package]"
    PYTHON=$work/venv/bin/python
fi
export PYTHONPATH=$tree
swift_dss=("$PYTHON" -m swift_dss.cli.main)
"${swift_dss[@]}" manual stage/man > /dev/null
mkdir stage/completion
"${swift_dss[@]}" completion bash > stage/completion/swift-dss
"${swift_dss[@]}" completion zsh > stage/completion/_swift-dss
"${swift_dss[@]}" completion fish > stage/completion/swift-dss.fish
unset PYTHONPATH

sed -i "s/@VERSION@/$wanted/" packaging/swift-dss-attach
cp -r packaging/debian debian
# shellcheck source=/dev/null
version=$(sed -n 's/^version = //p' setup.cfg)-1~deb$(. /etc/os-release; echo "$VERSION_ID")
date=$(git -C "$root" log -1 --format=%aD 2> /dev/null || date -R)
cat > debian/changelog <<END
swift-dss ($version) unstable; urgency=medium

  * The release notes are in the documentation.

 -- swift-dss maintainers <maintainers@swift-dss.invalid>  $date
END
echo "building the packages"
dpkg-buildpackage --build=binary --no-sign > "$work/log" 2>&1 || {
    tail -40 "$work/log" >&2
    exit 1
}
mkdir -p "$target"
cp "$work"/*.deb "$target"
(cd "$target" && ls -1 ./*"${version}"*.deb ./dm-dss-dkms_*.deb)
