package cli

import (
	"os"
	"strings"
	"testing"
)

func TestOnlyYesAgrees(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]bool{"y\n": true, " YES \n": true, "yes": true, "": false, "\n": false,
		"n\n": false, "yesterday\n": false, strings.Repeat(" ", 100) + "y\n": false} {
		var shown strings.Builder
		if got := answersYes(strings.NewReader(said), &shown, "Really?"); got != want || shown.String() != "Really? [y/N] " {
			t.Errorf("%q: %t, %q", said, got, shown.String())
		}
	}
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if agreed(&commandLine{streams: Streams{In: file}}, "Really?") {
		t.Error("a file is no terminal")
	}
}
