//go:build e2e && linux

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
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
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, "nothing is left", func() bool { return len(withWord(nap)) == 0 })
	got := run(t, program{path: claudeops(t), args: []string{"scripts", "runs"}, dir: project, env: w.environment()})
	if got.code != 0 || !strings.Contains(got.stdout, "long") {
		t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
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
