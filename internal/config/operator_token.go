package config

import (
	"os"
	"path/filepath"
	"strings"
)

// OperatorTokenFile is the file in the state folder with the token that `claudeops serve` makes at its first start.
const OperatorTokenFile = "operator-token"

// OperatorToken is that token, as it is in its file now; "" if there is none that we may read. It is among the Secrets of a
// Config, so that it is kept out of texts like any other.
func OperatorToken(stateDir string) string {
	if stateDir == "" {
		return ""
	}
	path := filepath.Join(stateDir, OperatorTokenFile)
	if info, err := os.Stat(path); err != nil || info.Size() > maxSecretFile {
		return ""
	}
	text, err := os.ReadFile(path) // #nosec G304: a fixed name in the state folder
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
