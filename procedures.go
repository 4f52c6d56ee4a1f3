// Package claudeops embeds the project's own procedures: what an agent reads and may not do, and what the demo
// repository is made of.
package claudeops

import "embed"

// Procedures holds checks/, playbooks/ and CLAUDE-OPS.md.
//
//go:embed checks playbooks CLAUDE-OPS.md
var Procedures embed.FS

// Prompts holds the system prompt of each tier.
//
//go:embed prompts
var Prompts embed.FS

// AgentSettings is .claude/settings.json, whose deny rules hold for every agent.
//
//go:embed .claude/settings.json
var AgentSettings []byte
