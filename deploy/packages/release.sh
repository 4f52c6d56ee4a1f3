#!/usr/bin/env bash
# Compares what a release says about its version: the tag, the changelog, the entry of the MCP registry, the plugin and the image of the manifests.
#
#   deploy/packages/release.sh v0.1.0
set -euo pipefail
tag=$1
fail() { echo "$tag: $*" >&2; exit 1; }
[[ $tag =~ ^v([0-9]+\.[0-9]+\.[0-9]+)(-[0-9A-Za-z.-]+)?$ ]] || fail "is not of the form v1.2.3 or v1.2.3-rc.1"
version=${BASH_REMATCH[1]}
heading=$(grep -m 1 '^## ' CHANGELOG.md) || fail "CHANGELOG.md has no version"
[[ $heading == "## $version, "* ]] || fail "the newest version of CHANGELOG.md is: $heading"
if [ -z "${BASH_REMATCH[2]:-}" ] && [[ $tag != *-* ]]; then
  [[ $heading =~ ,\ [0-9]{4}-[0-9]{2}-[0-9]{2}$ ]] || fail "CHANGELOG.md has no date for it: $heading"
fi
grep -q "^  \"version\": \"$version\"," server.json || fail "server.json has another version"
grep -q "\"identifier\": \"ghcr.io/claudeops/claudeops:$version\"" server.json || fail "server.json names another image"
grep -q "newTag: $version\$" deploy/kubernetes/base/kustomization.yaml || fail "the manifests of Kubernetes name another image"
echo "$tag: changelog, server.json and manifests agree"
