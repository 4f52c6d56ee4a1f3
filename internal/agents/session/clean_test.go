package session

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/content"
)

// All lines of a credential are withheld, not only the first.
func TestCleanerWithholdsEveryLineOfACredential(t *testing.T) {
	t.Parallel()
	token := "gh" + "p_" + strings.Repeat("aB3dE6gH9", 4)
	clean := cleaner{content.NewScanner(nil)}
	got := clean.text("one\n"+token[:20]+"\n"+token[20:]+"\nlast", 1000)
	if want := "one\n" + withheldLine + "\n" + withheldLine + "\nlast"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
