package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/views"
)

// What a command answers with --json.
const (
	aList    = "a list"    // {"items": [...]}
	anObject = "an object" // what it is about
	noJSON   = "none"      // a text that another program reads, or a program that goes on
)

// answers are commands with arguments that let them answer. One that is made from an operation alone needs no
// row: its request is made from the type (goodRequest). Toolsets with a contract of their own are left out.
func answers() map[string]struct {
	kind string
	args []string
} {
	type row = struct {
		kind string
		args []string
	}
	home := []string{"--repo", "demo/home"}
	return map[string]row{
		"audit list": {aList, nil}, "audit show": {anObject, []string{"1"}}, "audit verify": {anObject, nil},
		"backup": {anObject, []string{"$DIR/backup"}}, "deploy init": {noJSON, nil},
		"doctor":      {anObject, nil},
		"policy show": {anObject, nil}, "config show": {aList, nil}, "policy check": {aList, []string{"checks/disk.md"}},
		"policy suggest": {anObject, home},
		"pr create": {anObject, []string{"--repo", "demo/home", "--title", "Another", "--body", "Why: x", "--dry-run",
			"--create", "checks/x.md=$DIR/new.md"}},
		"pr list": {aList, home}, "pr status": {anObject, append([]string{"1"}, home...)}, "pr resume": {aList, nil},
		"pr file":          {anObject, []string{"demo/home", "checks/one.md", "--pull", "1"}},
		"pr files":         {anObject, []string{"demo/home"}},
		"pr diff":          {anObject, append([]string{"1"}, home...)},
		"connections list": {aList, nil}, "scripts list": {aList, nil}, "scripts runs": {aList, nil},
		"sources list": {aList, nil}, "token list": {aList, nil}, "deploy snapshots": {aList, nil},
		"pause":    {anObject, []string{"--why", "x", "--repo", "made/paused"}},
		"outcomes": {aList, nil},
		"prune":    {anObject, []string{"--older-than", "90d"}}, "review list": {aList, home},
		"review show":    {anObject, append([]string{"1"}, home...)},
		"review comment": {anObject, append([]string{"1", "--comment", "Look at it"}, home...)},
		"sources allow":  {anObject, []string{"https://made.example"}},
		"sources remove": {anObject, []string{"https://made-before.example"}},
		"session list":   {aList, nil}, "session journal": {aList, nil}, "session usage": {anObject, nil},
		"token create": {anObject, []string{"--name", "made-here"}},
		"token revoke": {anObject, []string{"made-before"}},
		"version":      {anObject, nil}, "mcp-config": {anObject, nil},
		"packages registry init": {anObject, []string{"$DIR/registry"}},
		"completion bash":        {noJSON, nil}, "completion fish": {noJSON, nil}, "completion powershell": {noJSON, nil},
		"completion zsh": {noJSON, nil},
		"demo":           {noJSON, nil}, "status": {anObject, nil},
		"health": {noJSON, nil}, "mcp-server": {noJSON, nil}, "serve": {noJSON, nil},
		"run": {noJSON, nil},
	}
}

// elsewhere are commands whose answers other tests hold, since they need a pull request in some state, an agent or a
// script.
func elsewhere() []string {
	return []string{
		"review approve", "review request-changes", "review close", "review merge", "review lift-cooldown", "session show",
		"session stop", "session follow", "resume", "dashboard", "connections cut",
		"scripts show", "scripts run", "scripts output", "deploy prune", "init", "pr promote",
		"login list", "login end", "deploy explain", "deploy propose", "deploy update", "packages autoremove",
		"packages outdated", "packages upgrade",
	}
}

func TestEveryCommandAnswersInOneShape(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := map[string]string{
		"CLAUDEOPS_STATE_DIR": filepath.Join(dir, "state"), "CLAUDEOPS_LOCAL_ROOT": filepath.Join(dir, "root"),
		"CLAUDEOPS_TIER":      "2",
		"CLAUDEOPS_REPOS_DIR": filepath.Join(dir, "repos"), "PATH": os.Getenv("PATH"), "HOME": dir,
		"CLAUDEOPS_SCRIPTS_DIR": filepath.Join(dir, "scripts"),
		"CLAUDEOPS_TOOLSETS":    "pr,scripts,deploy",
	}
	input := ""
	run := func(args ...string) (string, int) {
		var out, errOut bytes.Buffer
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "$DIR", dir)
		}
		code := Run(t.Context(), args, Streams{In: strings.NewReader(input), Out: &out, Err: &errOut},
			valuesOf(env))
		return out.String(), code
	}
	for _, folder := range []string{"state", "scripts"} {
		must.Do(t, os.Mkdir(filepath.Join(dir, folder), 0o700))
	}
	makeRepository(t, filepath.Join(dir, "root", "demo", "home.git"), streamOf("checks/disk.md", "x\n"))
	must.Do(t, os.WriteFile(filepath.Join(dir, "new.md"), []byte("# New\n"), 0o600))
	for _, first := range [][]string{
		{"pr", "create", "--repo", "demo/home", "--title", "One", "--body", "Why: x", "--create",
			"checks/one.md=$DIR/new.md"},
		{"token", "create", "--name", "made-before"},
		{"sources", "allow", "https://made-before.example"},
	} {
		if out, code := run(first...); code != 0 {
			t.Fatalf("%v: %d %s", first, code, out)
		}
	}
	known := answers()
	for _, path := range commandsOf(t) {
		row, listed := known[path]
		made := commandOperation(path)
		switch {
		case listed && row.kind == noJSON || slices.Contains(elsewhere(), path):
			continue
		case listed:
			input = ""
		case made == nil:
			t.Errorf("%q is in no table of answers", path)
			continue
		default:
			row.kind, row.args = anObject, []string{"--from", "-"}
			if strings.HasPrefix(made.Name, "list_") {
				row.kind = aList
			}
			input = strings.NewReplacer("joe", "demo", "infra", "home").Replace(goodRequest(*made))
		}
		out, _ := run(append(append(strings.Fields(path), row.args...), "--json")...)
		var answer map[string]json.RawMessage
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			t.Errorf("%s: %v: %s", path, err, out)
			continue
		}
		items, lists := answer["items"]
		if lists != (row.kind == aList) || lists && !bytes.HasPrefix(items, []byte("[")) {
			t.Errorf("%s answers no %s: %s", path, row.kind, out)
		}
		if answer["detail"] != nil {
			t.Errorf("%s failed: %s", path, out)
		}
		// Called wrongly, each answers with a problem.
		out, code := run(append(strings.Fields(path), "--json", "--no-such-flag")...)
		var problem httpx.Problem
		if err := json.Unmarshal([]byte(out), &problem); err != nil || code != 2 || problem.Status != 400 ||
			problem.Code != "invalid_argument" || problem.Detail == "" {
			t.Errorf("%s called wrongly: %d, %v, %s", path, code, err, out)
		}
	}
}

// commandOperation is the operation that a command is made from; nil if it is made by hand.
func commandOperation(path string) *operation.Operation {
	all := append(operation.List(new(app.App).Toolsets()...), app.Acts(nil)...)
	if at := slices.IndexFunc(all, func(o operation.Operation) bool { return o.Command == path }); at >= 0 {
		return &all[at]
	}
	return nil
}

// commandsOf are the commands that do something, without those of toolsets whose contract says how they answer.
func commandsOf(t *testing.T) (paths []string) {
	t.Helper()
	a := &commandLine{lookup: valuesOf(nil)}
	root := a.rootCommand()
	root.InitDefaultCompletionCmd()
	contract := map[string]bool{}
	for _, set := range a.program().Toolsets() {
		for _, o := range set.Operations {
			if set.Form != nil && o.Tool.Title != "" {
				contract[o.Command] = true
			}
		}
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if path := pathOf(cmd); !cmd.HasSubCommands() && path != "" && !contract[path] && cmd.Name() != "help" {
			paths = append(paths, path)
		}
		for _, below := range cmd.Commands() {
			visit(below)
		}
	}
	visit(root)
	return paths
}

func TestRunGivesOneAnswerEvenIfItsRecordFailed(t *testing.T) {
	t.Parallel()
	full := fault.New(fault.Internal, "the disk is full")
	for _, c := range []struct {
		name  string
		state sessions.State
		err   error
		exit  error
		told  string
	}{
		{"a good one", sessions.StateSucceeded, nil, nil, ""},
		{"a bad one", sessions.StateFailed, nil, silentExit(1), ""},
		{"one that could not be recorded", sessions.StateFailed, full, silentExit(1), "the disk is full"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			a := &commandLine{json: true, streams: Streams{Out: &out}, lookup: valuesOf(nil)}
			if err := tellRun(a, []sessions.Record{{ID: "a", Ending: sessions.Ending{State: c.state}}}, nil,
				c.err); !errors.Is(err, c.exit) {
				t.Errorf("got %v, want %v", err, c.exit)
			}
			var answer struct {
				Items []sessions.Record
				Error struct{ Detail string }
			}
			if err := json.Unmarshal(out.Bytes(), &answer); err != nil || len(answer.Items) != 1 ||
				answer.Error.Detail != c.told {
				t.Errorf("answered %v, %s", err, &out)
			}
			out.Reset()
			a.json = false
			if err := tellRun(a, []sessions.Record{{ID: "a", Ending: sessions.Ending{State: c.state}}}, nil,
				c.err); c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("to people: got %v, want %v", err, c.err)
			}
			if !strings.Contains(out.String(), views.Session(c.state).Text) {
				t.Errorf("people are not told of the session: %s", &out)
			}
		})
	}
}
