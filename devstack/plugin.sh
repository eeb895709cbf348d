# shellcheck shell=bash
# DevStack plug-in: puts swift-dss on the Swift that DevStack set up.
#
# DevStack sources this file once a phase, with the phase as arguments:
#   stack install      the package, into the environment of Swift
#   stack post-config  swift.conf, proxy, object servers, dss.conf; DevStack
#                      has written Swift's files and not yet started it
#   stack extra        capacity folders marked, the tier daemons
#   unstack, clean     stop the daemons; remove what was made

_SWIFT_DSS_XTRACE=$(set +o | grep xtrace)
set +o xtrace

SWIFT_DSS_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
SWIFT_CONF_DIR=${SWIFT_CONF_DIR:-/etc/swift}

# swift_dss_pipeline <pipeline>: the same with dss in its place, in front of
# the run of proxy-logging, encryption and proxy-server at the end, and with
# dss_retry_after in front of s3api where there is one.
function swift_dss_pipeline {
    local words at
    read -r -a words <<< "$1"
    if [[ " $1 " == *" dss "* ]]; then
        echo "$1"
        return
    fi
    for ((at = ${#words[@]}; at > 0; at--)); do
        case ${words[at - 1]} in
            proxy-server|proxy-logging|encryption|*keymaster) ;;
            *) break ;;
        esac
    done
    local found=" ${words[*]:0:at} dss ${words[*]:at}"
    found=${found/ s3api / dss_retry_after s3api }
    echo "${found# }"
}

# DevStack gives pip the constraints of its own release, the same for all that
# it installs; ours beside them could not both be met.
function install_swift_dss {
    pip_install "$SWIFT_DSS_DIR"
}

function configure_swift_dss_proxy {
    local conf=$SWIFT_CONF_DIR/proxy-server.conf
    iniset "$conf" pipeline:main pipeline \
        "$(swift_dss_pipeline "$(iniget "$conf" pipeline:main pipeline)")"
    iniset "$conf" filter:dss use egg:swift_dss#dss
    iniset "$conf" filter:dss class_table "$SWIFT_CONF_DIR/dss-classes.conf"
    mkdir -p "$SWIFT_DSS_RUN_DIR"
    iniset "$conf" filter:dss run_dir "$SWIFT_DSS_RUN_DIR"
    iniset "$conf" filter:dss_retry_after use egg:swift_dss#dss_retry_after
    if [[ " $(iniget "$conf" pipeline:main pipeline) " == *" s3api "* ]]; then
        iniset "$conf" filter:s3api use egg:swift_dss#s3api
    fi
}

# configure_swift_dss_node <node>: one of DevStack's Swift nodes, with its
# own devices folder, object server and tier daemon.
function configure_swift_dss_node {
    local node=$1
    local conf=$SWIFT_CONF_DIR/dss-$node.conf
    local object_conf=$SWIFT_CONF_DIR/object-server/$node.conf
    local capacity=$SWIFT_DSS_CAPACITY_DIR/$node/sdb1

    mkdir -p "$capacity" "$SWIFT_DSS_RUN_DIR/$node"
    install -d -m 0700 "$SWIFT_DSS_STATE_DIR" "$SWIFT_DSS_STATE_DIR/$node"

    : > "$conf"
    iniset "$conf" dss devices "$SWIFT_DATA_DIR/$node"
    iniset "$conf" dss swift_dir "$SWIFT_CONF_DIR"
    iniset "$conf" dss mount_check false
    iniset "$conf" dss run_dir "$SWIFT_DSS_RUN_DIR/$node"
    iniset "$conf" dss object_conf "$object_conf"
    iniset "$conf" dss class_table "$SWIFT_CONF_DIR/dss-classes.conf"
    iniset "$conf" capacity sdb1 "$capacity"
    iniset "$conf" tier index_dir "$SWIFT_DSS_STATE_DIR/$node"
    iniset "$conf" tier ssd_bytes "$SWIFT_DSS_SSD_BYTES"
    if [[ -n $SWIFT_DSS_S3_BUCKET ]]; then
        iniset "$conf" gateway enabled true
        iniset "$conf" gateway url "$SWIFT_DSS_S3_URL"
        iniset "$conf" gateway bucket "$SWIFT_DSS_S3_BUCKET"
        iniset "$conf" gateway secret_file "$SWIFT_DSS_S3_SECRET_FILE"
    fi

    iniset "$object_conf" DEFAULT dss_conf "$conf"
    iniset "$object_conf" app:object-server use egg:swift_dss#object
    # rsync would copy a stub as it is; ssync reads through it.
    iniset "$object_conf" object-replicator sync_method ssync
}

function configure_swift_dss {
    local node
    cp "$SWIFT_DSS_DIR/etc/dss-classes.conf-sample" \
        "$SWIFT_CONF_DIR/dss-classes.conf"
    iniset "$SWIFT_CONF_DIR/swift.conf" storage-policy:0 \
        diskfile_module egg:swift_dss#dss.fs
    for node in ${SWIFT_REPLICAS_SEQ:-1}; do
        configure_swift_dss_node "$node"
    done
    configure_swift_dss_proxy
}

function start_swift_dss {
    local node
    for node in ${SWIFT_REPLICAS_SEQ:-1}; do
        # Without the marker that this makes, the HDD counts as not mounted.
        # DevStack's is a folder of the root file system, hence --force.
        swift-dss tier init --force --config "$SWIFT_CONF_DIR/dss-$node.conf"
        enable_service "swift-dss-tierd-$node"
        run_process "swift-dss-tierd-$node" \
            "swift-dss-tierd --config $SWIFT_CONF_DIR/dss-$node.conf"
    done
}

function stop_swift_dss {
    local node
    for node in ${SWIFT_REPLICAS_SEQ:-1}; do
        stop_process "swift-dss-tierd-$node"
    done
}

function cleanup_swift_dss {
    rm -rf "${SWIFT_DSS_RUN_DIR:?}" "${SWIFT_DSS_STATE_DIR:?}" \
        "${SWIFT_DSS_CAPACITY_DIR:?}"
    rm -f "$SWIFT_CONF_DIR"/dss-*.conf
}

if is_service_enabled s-object; then
    case "$1 ${2:-}" in
        "stack install")
            echo_summary "Installing swift-dss"
            install_swift_dss ;;
        "stack post-config")
            echo_summary "Configuring swift-dss"
            configure_swift_dss ;;
        "stack extra")
            echo_summary "Starting the tier daemons of swift-dss"
            start_swift_dss ;;
        "unstack ") stop_swift_dss ;;
        "clean ") cleanup_swift_dss ;;
    esac
fi

$_SWIFT_DSS_XTRACE
