// Package deploy puts an operator's procedures in place for the agents of this machine, in the formats of agentpack:
// modules of a configuration repository become files of Codex, Claude Code, Cursor and VS Code. It sees drift, and
// rolls back (docs/guides/deploy.md).
//
// It reads agentpack.yaml, selects modules, applies overlays and renders for each target the files that should be
// there. The engine in internal/system/change puts them in place, and those of packages as well. Errors are *Error, or
// the engine's.
package deploy
