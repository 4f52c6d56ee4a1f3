package gitleaks

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/zricethezav/gitleaks/v8/config"
)

// The rules that the program embeds are those of the module in go.mod. With UPDATE_GOLDEN they are taken from it.
func TestTheRulesAreThoseOfGitleaks(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "internal", "base", "content", "gitleaks", "rules.toml")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(config.DefaultConfig), 0o644); err != nil { // #nosec G306: part of the sources
			t.Fatal(err)
		}
	}
	rules, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(rules) != config.DefaultConfig {
		t.Error("gitleaks/rules.toml is not the one of the module in tools/gitleaks/go.mod; run `make golden`, and look at " +
			"the difference")
	}
}
