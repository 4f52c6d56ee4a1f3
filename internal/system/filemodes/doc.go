// Package filemodes says who else could change a file, by its owner, its mode and its access list (POSIX, on Linux) and
// those of every folder above it. What Claude Ops reads of the operator's (the policy, prompts, scripts) and keeps for
// itself (keys, records) is worth nothing if an agent can write it.
package filemodes
