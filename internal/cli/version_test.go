package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"testing"

	"github.com/claudeops/claudeops/internal/app"
)

func TestTheVersionIsTheTag(t *testing.T) {
	t.Parallel()
	stamped := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}}
	for given, want := range map[string]string{
		"v1.2.3": "1.2.3", "v1.2.3-rc.1": "1.2.3-rc.1", "v1.2.3+dirty": "1.2.3+dirty",
		"":                                       app.Release + "+0123456789ab",
		"(devel)":                                app.Release + "+0123456789ab",
		"v0.0.0-20261122135039-0123456789ab":     app.Release + "+0123456789ab",
		"v1.2.4-0.20261122135039-0123456789ab":   app.Release + "+0123456789ab",
		"v1.2.4-rc.0.20261122135039-012345678ab": app.Release + "+0123456789ab",
	} {
		if got := app.VersionOf(&debug.BuildInfo{Main: debug.Module{Version: given}, Settings: stamped}); got != want {
			t.Errorf("%q: %s, want %s", given, got, want)
		}
	}
	if got := app.VersionOf(&debug.BuildInfo{}); got != app.Release {
		t.Errorf("without a stamp: %s", got)
	}
}

// The newest part of the changelog is about the version of the source.
func TestTheChangelogBeginsWithTheVersionOfTheSource(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "CHANGELOG.md"))
	if err != nil {
		t.Fatal(err)
	}
	first := regexp.MustCompile(`(?m)^## (\S+), (unreleased|\d{4}-\d\d-\d\d)$`).FindSubmatch(text)
	if first == nil || string(first[1]) != app.Release {
		t.Errorf("CHANGELOG.md begins with %q, the source is %s", first, app.Release)
	}
}
