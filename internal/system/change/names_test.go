package change

import "errors"

// Names of targets, as deployments have them.
const (
	Codex      TargetName = "codex"
	ClaudeCode TargetName = "claude_code"
	Cursor     TargetName = "cursor"
	VSCode     TargetName = "vscode"
)

func TargetNames() []TargetName { return []TargetName{ClaudeCode, Codex, Cursor, VSCode} }

func codeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
