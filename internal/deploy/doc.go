// Package deploy puts an operator's procedures in place for the agents of this machine, in the formats of agentpack: modules of a
// configuration repository become files of Codex, Claude Code, Cursor and VS Code. It sees drift, and rolls back
// (docs/deploy.md).
//
// A Project reads agentpack.yaml, selects modules, applies overlays and renders for each target the files that should be there
// (Desired). A Plan is the difference to what is there. An Apply writes it: journal first, backups, files one by one, snapshot last,
// so that the next call can finish or undo what a killed one began.
package deploy
