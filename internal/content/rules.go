package content

import (
	"strings"

	"github.com/zricethezav/gitleaks/v8/config"

	"github.com/claudeops/claudeops/internal/content/secretrules"
)

// ownRule finds the tokens that `claudeops token create` makes. Only their hashes are kept, so that the list of our own
// values cannot have them.
const ownRule = `
[[rules]]
id = "claude-ops-token"
description = "A token of the Claude Ops server"
regex = '''cops_[A-Za-z0-9_-]{43}'''
keywords = ["cops_"]
`

// loadRules reads the rules that come with gitleaks, and our own. identifier (see harmless) stands in for the stop words that
// secretrules.Load drops, where the rules only guess.
func loadRules() (*secretrules.Set, error) {
	return secretrules.Load(strings.TrimRight(config.DefaultConfig, "\n") + "\n" + ownRule)
}
