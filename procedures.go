// Package claudeops embeds the project's own procedures: what an agent reads, and what the demo repository is made of.
package claudeops

import "embed"

// Procedures holds checks/, playbooks/ and CLAUDE-OPS.md.
//
//go:embed checks playbooks CLAUDE-OPS.md
var Procedures embed.FS
