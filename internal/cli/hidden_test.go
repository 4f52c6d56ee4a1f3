package cli_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/cli"
)

// said returns the output of a command on both of its streams.
func (w *peopleWorld) said(args ...string) (out, errs string) {
	w.Helper()
	var stdout, stderr strings.Builder
	cli.Run(context.WithoutCancel(w.Context()), args, cli.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr},
		w.plain())
	return stdout.String(), stderr.String()
}

// What agents wrote is printed so that nothing hides in it, for people and as JSON, and on both streams.
func TestNothingHidesInWhatIsPrinted(t *testing.T) {
	t.Parallel()
	const evil = "Tidy \u202etxt.exe\u200b \x1b[2J\u3164"
	w := newPeopleWorld(t, nil)
	proposal := []string{"pr", "create", "--repo", "demo/home-cluster" + evil, "--title", evil, "--body", evil, "--create",
		"checks/" + evil + ".md=/dev/null"}
	for _, args := range [][]string{
		proposal, append([]string{"--json"}, proposal...),
		{"audit", "list"}, {"--json", "audit", "list"}, {"--json", "audit", "show", "1"}, {"audit", "list", "--repo", evil},
		{"pr", "status", "--repo", evil, "1"}, {"--json", "pr", "list", "--repo", evil},
		{"session", "show", evil}, {"--json", "session", "show", evil}, {"--json", "session", "list"},
		{"token", "create", "--name", evil}, {"--json", "token", "create", "--name", evil},
		{"--json", "token", "revoke", evil}, {"token", "revoke", evil},
		{"connections", "cut", evil}, {"--json", "connections", "cut", evil}, {evil}, {"audit", "list", "--outcome", evil},
		{"--json", "audit", "list", "--outcome", evil},
		{"policy", "check", "checks/" + evil}, {"--json", "policy", "check", "checks/" + evil}, {"scripts", "run", evil},
		{"--json", "doctor"},
	} {
		out, errs := w.said(args...)
		if found := content.Hidden(out + errs); len(found) > 0 {
			t.Errorf("%q prints %v: %q, %q", args, found, out, errs)
		}
		if args[0] == "--json" && !json.Valid([]byte(out)) {
			t.Errorf("%q prints no JSON: %q", args, out)
		}
	}
	if out, _ := w.said("--json", "audit", "list"); !strings.Contains(out, `\u202e`) {
		t.Errorf("no row has what was written: %s", out)
	}
}
