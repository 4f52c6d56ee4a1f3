package content

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/zricethezav/gitleaks/v8/config"
)

// The rules are those of the module in go.mod. With UPDATE_GOLDEN they are taken from it.
func TestTheRulesAreThoseOfGitleaks(t *testing.T) {
	t.Parallel()
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(filepath.Join("gitleaks", "rules.toml"), []byte(config.DefaultConfig), 0o644); err != nil { // #nosec G306: part of the sources
			t.Fatal(err)
		}
		return
	}
	if gitleaksRules != config.DefaultConfig {
		t.Error("gitleaks/rules.toml is not the one of the module in go.mod; run `make golden`, and look at the difference")
	}
}
