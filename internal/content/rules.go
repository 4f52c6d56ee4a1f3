package content

import (
	_ "embed"
	"strings"

	"github.com/claudeops/claudeops/internal/content/secretrules"
)

// gitleaksRules are the rules of gitleaks v8 (MIT, see gitleaks/LICENSE), byte for byte: rules_gitleaks_test.go compares them with the
// module, and `make golden` takes them from it. The module itself is not linked, since the package that has the rules brings viper
// with readers of six formats, which took a tenth of the time of compiling.
//
//go:embed gitleaks/rules.toml
var gitleaksRules string

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
	return secretrules.Load(strings.TrimRight(gitleaksRules, "\n") + "\n" + ownRule)
}
