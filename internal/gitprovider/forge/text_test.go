package forge_test

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

func TestAServersMessageIsMadeFitForALine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain": "plain", "two\r\nlines\tand\u202ebidi\x00": "two lines and bidi",
		strings.Repeat("é", 300): strings.Repeat("é", 240) + "...", "cut\xffoff": "cut off",
	} {
		if got := forge.Clean(in); got != want {
			t.Errorf("%q became %q", in, got)
		}
	}
}
