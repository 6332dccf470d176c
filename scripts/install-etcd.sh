#!/usr/bin/env bash
# Installs what the feature `lock-etcd` wants, unless it is there already:
#
#   bash scripts/install-etcd.sh          # protoc to build it, etcd to test it
#   bash scripts/install-etcd.sh protoc   # only what building needs
#
# Takes Debian's packages, so it needs apt-get and root or a sudo that does not
# ask. PROTOC may name a protoc that is not on the PATH.
set -euo pipefail

# Whether protoc works and finds the well-known types that come with it.
has_protoc() {
  local folder
  command -v "${PROTOC:-protoc}" >/dev/null || return 1
  folder=$(mktemp -d)
  printf 'syntax = "proto3";\nimport "google/protobuf/descriptor.proto";\n' >"$folder/probe.proto"
  local result=0
  "${PROTOC:-protoc}" -I "$folder" -o /dev/null "$folder/probe.proto" >/dev/null 2>&1 || result=1
  rm -r "$folder"
  return "$result"
}

# A server may lie in /usr/sbin, which is not on the PATH of every user.
has() {
  PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null
}

packages=()
has_protoc || packages+=(protobuf-compiler libprotobuf-dev)
if [ "${1:-all}" != protoc ]; then
  has etcd || packages+=(etcd-server)
  has etcdctl || packages+=(etcd-client)
fi
[ ${#packages[@]} -gt 0 ] || exit 0

root=()
if [ "$(id -u)" -ne 0 ]; then
  root=(sudo -n)
fi
if ! command -v apt-get >/dev/null || ! "${root[@]}" true 2>/dev/null; then
  echo "The feature lock-etcd needs protoc to be built, and its tests need etcd and etcdctl." >&2
  echo "Have root run: apt-get install ${packages[*]}" >&2
  echo "or install the same things in another way (PROTOC names a protoc elsewhere)." >&2
  exit 1
fi

install=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends)
# The lists of packages may be missing or old.
if ! "${install[@]}" "${packages[@]}" >/dev/null 2>&1; then
  "${root[@]}" apt-get update --quiet >/dev/null
  "${install[@]}" "${packages[@]}" >/dev/null
fi
