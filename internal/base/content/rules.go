package content

import (
	_ "embed"
	"strings"

	"github.com/claudeops/claudeops/internal/base/content/secretrules"
)

// gitleaksRules are the rules of gitleaks v8 (MIT, see gitleaks/LICENSE), byte for byte: tools/gitleaks compares them
// with the module, and `make golden` takes them from it. The module itself is not linked, since the package that has
// the rules brings viper with readers of six formats, which took a tenth of the time of compiling.
//
//go:embed gitleaks/rules.toml
var gitleaksRules string

// ownRules are rules of our own, beside those of gitleaks: what operators hold and gitleaks does not know.
//
//go:embed ownrules.toml
var ownRules string

// loadRules reads the rules that come with gitleaks, and our own. harmless stands in for the stop words that
// secretrules.Load drops.
func loadRules() (*secretrules.Set, error) {
	return secretrules.Load(strings.TrimRight(gitleaksRules, "\n")+"\n"+ownRules, harmless)
}
