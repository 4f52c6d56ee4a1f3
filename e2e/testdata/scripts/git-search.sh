#!/bin/sh
# Search the text of tracked files with git grep.
# @param pattern string required What to look for
# @param path string optional Only below this folder
while [ $# -gt 0 ]; do case "$1" in --pattern) p=$2; shift 2;; --pattern=*) p=${1#*=}; shift;; --path) d=$2; shift 2;; *) echo "unknown $1" >&2; exit 2;; esac; done
git grep -n -e "$p" -- ${d:+"$d"}
