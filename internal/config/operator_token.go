package config

import (
	"path/filepath"

	"github.com/claudeops/claudeops/internal/credentialfile"
)

// OperatorTokenFile is the file in the state folder with the token that `claudeops serve` makes at its first start.
const OperatorTokenFile = "operator-token"

// OperatorToken is that token, as it is in its file now; "" if there is none that we may read. It is among the Secrets of a
// Config, so that it is kept out of texts like any other.
func OperatorToken(stateDir string) string {
	if stateDir == "" {
		return ""
	}
	text, err := credentialfile.Read(filepath.Join(stateDir, OperatorTokenFile))
	if err != nil {
		return ""
	}
	return text
}
