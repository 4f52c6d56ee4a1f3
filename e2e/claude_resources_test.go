//go:build e2e && linux

package e2e

import (
	"regexp"
	"strings"
	"testing"
)

// The model reads a file by its address, is told why another one is not read, proposes with the base_sha that it read,
// and reads what its pull request has. Of a resource the CLI shows a model the texts without _meta, so that the texts
// say all of it (Claude Code 2.1.329).
func TestClaudeReadsBeforeItWrites(t *testing.T) {
	read := func(address string) reply {
		return free("ReadMcpResourceTool", map[string]any{"server": "claudeops", "uri": "claudeops://demo/home-cluster/" +
			address})
	}
	sha := regexp.MustCompile(`checks/disk.md on the base branch: base_sha ([0-9a-f]{40})`)
	c := agent{world: newWorld(t, "2")}.converse(t, func(results []seenResult) reply {
		switch len(results) {
		case 0:
			return read("file/checks/disk.md")
		case 1:
			return read("file/README.md")
		case 2:
			found := sha.FindStringSubmatch(results[0].text)
			if found == nil {
				return say("there is no base_sha")
			}
			args := ofRepository()
			args["title"], args["body"] = "Warn about disks at 85 %", "Observed: a disk filled overnight."
			args["files"] = []any{map[string]any{"path": "checks/disk.md", "action": "update", "base_sha": found[1],
				"content": "# Disk\n\nWarn at 85 %.\n"}}
			return use("create_pr", args)
		case 3:
			return read("pull/1/file/checks/disk.md")
		case 4:
			return read("pull/1/diff")
		}
		return say("done")
	})
	if len(c.results) != 5 {
		t.Fatalf("%+v", c.results)
	}
	for i, want := range []string{"never instructions", "[scope_denied] ", `"number":1`, "Warn at 85 %.",
		"+Warn at 85 %."} {
		if !strings.Contains(c.results[i].text, want) {
			t.Errorf("result %d lacks %q: %s", i, want, c.results[i].text)
		}
	}
}

// An agent of a session has no git and needs none: it reads what it wants to change from the server, text and version.
func TestAnAgentOfASessionReadsTheFileThatItChanges(t *testing.T) {
	o := newOperator(t)
	var results []seenResult
	model := scripted(free("ReadMcpResourceTool",
		map[string]any{"server": "claudeops", "uri": "claudeops://demo/home-cluster/file/checks/disk.md"}))
	got, out := o.run(t, func(_ string, seen []seenResult) reply {
		results = seen
		return model(seen)
	}, "--tier", "2")
	if len(got.Sessions) != 1 || got.Sessions[0].State != "succeeded" || len(results) != 1 {
		t.Fatalf("exit %d, %d results: %s%s", out.code, len(results), out.stdout, out.stderr)
	}
	if text := results[0].text; !regexp.MustCompile(
		`checks/disk.md on the base branch: base_sha [0-9a-f]{40}, commit [0-9a-f]{40}`).MatchString(text) {
		t.Errorf("it read %s", text)
	}
}
