package deploy

// examples returns example calls, by command.
func examples() map[string]string {
	return map[string]string{
		"deploy plan":     "claudeops deploy plan\nclaudeops deploy plan --target codex",
		"deploy diff":     "claudeops deploy diff --target claude_code",
		"deploy status":   "claudeops deploy status\nclaudeops deploy status --only modified",
		"deploy doctor":   "claudeops deploy doctor",
		"deploy apply":    "claudeops deploy apply\nclaudeops deploy apply --yes --adopt",
		"deploy rollback": "claudeops deploy rollback --to 1795614482301445198",
		"deploy explain":  "claudeops deploy explain ~/.claude/skills/pdf/SKILL.md",
		"deploy propose":  "claudeops deploy propose ~/.claude/skills/pdf/SKILL.md",
		"deploy update":   "claudeops deploy update",
	}
}
