package packages

// examples returns example calls, by command.
func examples() map[string]string {
	return map[string]string{
		"packages search":   "claudeops packages search pdf\nclaudeops packages search pdf --package-type skill --limit 5",
		"packages list":     "claudeops packages list",
		"packages info":     "claudeops packages info pdf-tools\nclaudeops packages info @ops/pdf-tools 1.2.0",
		"packages validate": "claudeops packages validate",
		"packages doctor":   "claudeops packages doctor",
		"packages outdated": "claudeops packages outdated",
		"packages upgrade":  "claudeops packages upgrade\nclaudeops packages upgrade pdf-tools --dry-run",
		"packages install": "claudeops packages install pdf-tools@^1.0.0\nclaudeops packages install pdf-tools " +
			"--platform claude",
		"packages uninstall":  "claudeops packages uninstall pdf-tools",
		"packages autoremove": "claudeops packages autoremove --dry-run",
		"packages create": "claudeops packages create\nclaudeops packages create --name @ops/pdf-tools " +
			"--description \"Reads and fills PDFs\"",
		"packages publish":       "claudeops packages publish\nclaudeops packages publish --registry team --tag beta",
		"packages config get":    "claudeops packages config get default_platform",
		"packages config set":    "claudeops packages config set default_platform claude",
		"packages registry list": "claudeops packages registry list",
		"packages registry add":  "claudeops packages registry add team ~/registry",
	}
}
