//go:build e2e && linux

package e2e

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

// With the boundary of the settings a script reaches neither the records nor local repositories nor the server's
// processes, and everything else as before.
func TestAScriptWithABoundaryDoesNotReachWhatIsOurs(t *testing.T) {
	w := newWorld(t, "2")
	w.vars["CLAUDEOPS_TOOLSETS"] = "scripts"
	project := t.TempDir()
	state, root := w.vars["CLAUDEOPS_STATE_DIR"], w.vars["CLAUDEOPS_LOCAL_ROOT"]
	operationtest.WriteFiles(t, state, map[string]string{"secret": "found the records\n"})
	operationtest.WriteFiles(t, project, map[string]string{"scripts/Agent/reach.sh": "#!/bin/sh\n# @noparams\n" +
		"cat " + state + "/secret\necho x > " + state + "/planted && echo planted in the records\n" +
		"git --git-dir=" + w.repo + " update-ref refs/heads/planted main && echo planted in a repository\nls " + root +
		" >/dev/null && echo listed repositories\n" +
		"ln -s " + state +
		" link; cat link/secret\nparent=$PPID; while [ \"$parent\" -gt 1 ]; do cat /proc/$parent/environ >/dev/null 2>&1 " +
		"&& echo looked into $parent; parent=$(awk '/^PPid/ {print $2}' /proc/$parent/status); done\n" +
		"echo kept > kept; cat kept; echo ${TMPDIR:-/tmp} | head -c 1; cat /etc/hostname >/dev/null && echo hosts; echo > " +
		"/dev/null && echo null\n"})
	reach := func(boundary string) string {
		t.Helper()
		w.vars["CLAUDEOPS_SCRIPTS"] = `{"boundary": "` + boundary + `"}`
		got := run(t, program{path: claudeops(t), args: []string{"scripts", "run", "reach"}, dir: project,
			env: w.environment()})
		if got.code != 0 {
			t.Fatalf("%s: exit %d\n%s%s", boundary, got.code, got.stdout, got.stderr)
		}
		return got.stdout
	}
	open := reach("none")
	for _, said := range []string{"found the records", "planted in the records", "planted in a repository",
		"listed repositories"} {
		if !strings.Contains(open, said) {
			t.Errorf("without a boundary the attack %q does not work, so that the test shows nothing:\n%s", said, open)
		}
	}
	w.git(t, "", "update-ref", "-d", "refs/heads/planted")
	held := reach("landlock")
	if held != "kept\n/hosts\nnull\n" {
		t.Errorf("with the boundary the script says:\n%s", held)
	}
	if got := w.git(t, "", "for-each-ref", "refs/heads/planted"); got != "" {
		t.Errorf("a script wrote to a repository: %s", got)
	}
}
