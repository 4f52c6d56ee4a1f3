package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/cli"
)

func TestTheManualHasAPageForEachCommand(t *testing.T) {
	dir := t.TempDir()
	root := cli.Command()
	if err := writeManual(root, dir); err != nil {
		t.Fatal(err)
	}
	checkPages(t, root, dir)
	list, err := os.ReadFile(filepath.Join(dir, "claudeops-audit-list.1"))
	if err != nil || !strings.Contains(string(list), `\fB\-\-outcome\fR`) || !strings.Contains(string(list), ".BR claudeops\\-audit (1)") {
		t.Errorf("%v\n%s", err, list)
	}
}

// checkPages fails for a command that has no page, and for a line of text that man(7) would take for a request.
func checkPages(t *testing.T, cmd *cobra.Command, dir string) {
	t.Helper()
	name := manName(cmd) + ".1"
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(string(text)) {
		request, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(line, ".") && !strings.Contains(" .TH .SH .B .BR .TP .PP .nf .fi ", " "+request+" ") {
			t.Errorf("%s: a line of text is taken for a request: %q", name, line)
		}
	}
	for _, below := range cmd.Commands() {
		if !below.Hidden {
			checkPages(t, below, dir)
		}
	}
}
