//go:build e2e && linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// A server that is killed in the middle of a script leaves nothing of it running, daemons in sessions of their own
// included. The record has the run: it was written before the script started.
func TestNothingOfAScriptOutlivesAKilledServer(t *testing.T) {
	w := newWorld(t, "2")
	w.vars["CLAUDEOPS_TOOLSETS"] = "scripts"
	project := t.TempDir()
	ready := filepath.Join(project, "ready")
	nap := fmt.Sprintf("7%07d", os.Getpid()) // seconds that no other test sleeps
	operationtest.WriteFiles(t, project,
		map[string]string{"scripts/Agent/long.sh": "#!/bin/sh\n# @noparams\ntrap '' TERM HUP\nsleep " + nap + " &\n" +
			"setsid sh -c 'trap \"\" TERM HUP; sleep " + nap + "; true' </dev/null >/dev/null 2>&1 &\n" +
			"setsid sh -c 'setsid sh -c \"cd /; sleep " + nap + "; true\" &' </dev/null >/dev/null 2>&1\necho started; : > " +
			ready + "\nwait\n"})
	s := newTalk(t, project, w.environment())
	s.in(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"long","arguments":{}}}`)
	until(t, "the script and its daemons run",
		func() bool { _, err := os.Stat(ready); return err == nil && len(withWord(nap)) >= 3 })
	must.Do(t, s.cmd.Process.Kill())
	until(t, "nothing is left", func() bool { return len(withWord(nap)) == 0 })
	if runs := w.doesIn(t, project, nil, "scripts", "runs"); !strings.Contains(runs, "long") {
		t.Error(runs)
	}
}

// withWord are the processes whose command line has the word, zombies aside, which have none.
func withWord(word string) (pids []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is valid
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), word) {
			pids = append(pids, filepath.Base(filepath.Dir(file)))
		}
	}
	return pids
}

// until waits for what a busy machine may take long for.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come about that %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// docsBlocks are the blocks of code in a section of a page of the docs, in their order.
func docsBlocks(t *testing.T, page, section string) (blocks []string) {
	t.Helper()
	_, rest, found := strings.Cut(readFile(t, filepath.Join("..", "docs", page)), "\n## "+section+"\n")
	if !found {
		t.Fatalf("docs/%s has no section %s", page, section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	for i, part := range strings.Split(rest, "\n```") {
		if i%2 == 1 {
			_, block, _ := strings.Cut(part, "\n")
			blocks = append(blocks, block+"\n")
		}
	}
	return blocks
}

// The docs' story of a check that is a script: tier 1 calls it, it fails, and tier 2 proposes. Each file, setting and
// answer is taken from the page, word for word. The agent has the toolsets that the operator names, over the folder
// that the session was started in; assertViews holds that it has no tool of others.
func TestACheckThatIsAScriptLeadsToAProposal(t *testing.T) {
	blocks := docsBlocks(t, "guides/scripts.md", "A check that is a script")
	if len(blocks) != 6 {
		t.Fatalf("the page has %d blocks", len(blocks))
	}
	script, settings, check, start, answer, proposed := blocks[0], blocks[1], blocks[2], blocks[3], blocks[4], blocks[5]
	o := newOperator(t)
	files := seed()
	files["checks/disk.md"] = check
	o.git(t, importStream(files), "fast-import", "--quiet", "--force")
	project := t.TempDir()
	operationtest.WriteFiles(t, project, map[string]string{"scripts/Agent/check-disk.sh": script,
		"scripts.yaml": settings})
	// A df that is always 91 % full, for a script that finds it by PATH.
	bin := t.TempDir()
	writeProgram(t, filepath.Join(bin, "df"),
		"#!/bin/sh\necho Filesystem 1024-blocks Used Available Capacity Mounted on\necho /dev/data 100 91 9 91% \"$3\"\n")
	exported, command, _ := strings.Cut(strings.TrimSpace(start), "\n")
	for _, pair := range strings.Fields(strings.TrimPrefix(exported, "export ")) {
		name, value, _ := strings.Cut(pair, "=")
		o.vars[name] = value
	}

	told := map[string]string{} // what each step saw
	stub := newSessionStub(t, func(asked string, results []seenResult) reply {
		if strings.Contains(asked, "<untrusted_handoff>") {
			told["tier 2"] = asked
			if len(results) == 0 {
				args := ofRepository()
				args["title"], args["change_type"] = "Free /data before handing over", "check"
				args["body"] = "## Observed\ncheck_disk failed.\n## Why\nFreeing is safe.\n## What\nchecks/disk.md\n## " +
					"Impact\nFewer handoffs."
				args["files"] = []any{map[string]any{"path": "checks/disk.md", "action": "update", "content": proposed}}
				return use("create_pr", args)
			}
			return say("## Proposal\n" + results[0].text)
		}
		switch len(results) {
		case 0:
			told["tier 1"] = asked
			return use("check_disk", map[string]any{"mount": "/data"})
		case 1:
			told["answer"] = results[0].text
			return free("Write", map[string]any{"file_path": handoffFile(asked),
				"content": `{"version":1,"recommended_tier":2,"services":["disk"],` +
					`"findings":[{"key":"data-full","text":"check_disk: /data is 91 % full, the limit is 80 %"}]}`})
		}
		return say("## Status\nattention\n## Escalate\ntier 2")
	})
	words := strings.Fields(command)
	env := append(o.environment(stub.URL), "PATH="+bin+":"+os.Getenv("PATH"))
	got := run(t, program{path: claudeops(t), args: append(words[1:], "--json"), dir: project, env: env})
	ran := decode[sessions](t, got.stdout).Sessions
	if got.code != 0 || len(ran) != 2 || ran[1].Counts.Opened != 1 || !slices.Equal(ran[0].Toolsets,
		[]string{"pr", "scripts"}) {
		t.Fatalf("exit %d: %s%s", got.code, got.stdout, got.stderr)
	}
	if told["answer"]+"\n" != answer {
		t.Errorf("the script's answer is\n%s\nthe page has\n%s", told["answer"], answer)
	}
	if !strings.Contains(told["tier 1"], "mcp__claudeops__check_disk") ||
		!strings.Contains(told["tier 2"], "/data is 91 % full") {
		t.Errorf("tier 1 was told\n%s\ntier 2 was told\n%s", told["tier 1"], told["tier 2"])
	}
	branches := o.branches(t)
	if len(branches) != 1 || o.git(t, "", "show", branches[0]+":checks/disk.md") != proposed {
		t.Errorf("branches %v", branches)
	}
	o.vars["CLAUDEOPS_TOOLSETS"] = "pr,scripts"
	listed := o.does(t, "audit", "list")
	for _, sentence := range []string{"an agent's session used check_disk\n",
		`an agent's session proposed #1 "Free /data before handing over" in demo/home-cluster` + "\n"} {
		if !strings.Contains(listed, sentence) {
			t.Errorf("the audit does not say %q\n%s", sentence, listed)
		}
	}
	if runs := o.doesIn(t, project, nil, "scripts", "runs"); !strings.Contains(runs, "check_disk") {
		t.Errorf("the runs are\n%s", runs)
	}
}
