package views_test

import (
	"testing"

	"github.com/claudeops/claudeops/internal/web/views"
)

func TestMessagesHaveNoAddressesOfFilesAndNoDurationsOfPrograms(t *testing.T) {
	for message, want := range map[string]string{
		"#4 (file:///srv/x.git#pr-4), which changed `a.md`, was closed; it may be proposed again in 71h59m59s": "#4, which " +
			"changed `a.md`, was closed; it may be proposed again in 71 h 59 min",
		"every 5m0s":                       "every 5 min",
		"see file:///a/b for more":         "see for more",
		"#4 (https://git.example.org/x/4)": "#4 (https://git.example.org/x/4)",
		"no digits":                        "no digits", "90s": "1 min", "plays 3 rows": "plays 3 rows", "v1h2": "v1h2",
		"commit 12ab3s": "commit 12ab3s",
	} {
		if got := views.Plain(message); got != want {
			t.Errorf("%q: %q", message, got)
		}
	}
}
