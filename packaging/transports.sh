#!/bin/bash
# `make ut-transports`: transports.sh "lean library" "tests on etcd" "tests on Kubernetes" [options of pytest]
#
# Those on Kubernetes are few and each process of them needs an API server, so they run in one, beside those on etcd.
set -uo pipefail
read -ra transports <<<"$1"
read -ra on_etcd <<<"$2"
read -ra on_kubernetes <<<"$3"
read -ra pytest <<<"$PYTEST"
shift 3
log=build/ut-transports-kubernetes.log

each() { # tests and options: on each transport
    local failed=0 transport
    for transport in "${transports[@]}"; do TORTIE_TRANSPORT=$transport "${pytest[@]}" "$@" || failed=1; done
    return $failed
}

mkdir -p build
set -m # so that its tests can be interrupted, as the others can
TORTIE_TEST_STORE=kubernetes each "${on_kubernetes[@]}" "$@" >$log 2>&1 &
beside=$!
set +m
trap 'kill -- -$beside 2>/dev/null' EXIT
[ "${WORKERS:-}" != 0 ] || wait $beside # a server that tests are given is one for all of them
TORTIE_TEST_STORE=etcd each -n "${WORKERS:-2}" --dist loadfile "${on_etcd[@]}" "$@"
etcd=$?
wait $beside
kubernetes=$?
trap - EXIT
cat $log
[ $etcd$kubernetes = 00 ]
