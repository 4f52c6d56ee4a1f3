package cli_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// switchWorld is a world in which one place says true to a switch, and each other place says false.
type switchWorld struct {
	*peopleWorld
	dry   bool // the switch is that of the dry run, else that of read-only
	flags []string
}

// placesOfSwitches are the places in which an operator sets a switch. The token of an agent is another one.
func placesOfSwitches() []string { return []string{"environment", "file", "policy", "flag"} }

func newSwitchWorld(t *testing.T, dry bool, on string) *switchWorld {
	t.Helper()
	name, key := "READ_ONLY", "read_only"
	if dry {
		name, key = "DRY_RUN", "dry_run"
	}
	says := func(place string) string { return fmt.Sprint(place == on) }
	w := &switchWorld{dry: dry, peopleWorld: newPeopleWorld(t, map[string]string{
		"CLAUDEOPS_" + name: says("environment"), "CLAUDEOPS_POLICY": "$DIR/policy.yaml"})}
	w.put(".config/claudeops/environment", "CLAUDEOPS_"+name+"="+says("file")+"\n")
	w.put("policy.yaml", rulesOfTest+key+": "+says("policy")+"\n")
	w.flags = []string{"--" + strings.ReplaceAll(key, "_", "-") + "=" + says("flag")}
	return w
}

// held checks what a door answered to a proposal: a preview in a dry run, and a refusal if it is read-only.
func (w *switchWorld) held(door string, code fault.Code, dryRun bool) {
	w.Helper()
	if w.dry && (code != "" || !dryRun) || !w.dry && code != fault.ReadOnly {
		w.Errorf("%s: %q, dry run %t", door, code, dryRun)
	}
}

// warned checks that a process says once, and in one line, which places have no effect.
func (w *switchWorld) warned(door, said string) {
	w.Helper()
	if strings.Count(said, "false has no effect in ") != 1 {
		w.Errorf("%s: the warning stands %d times: %s", door, strings.Count(said, "false has no effect in "), said)
	}
}

// The safe word of any place holds at each door against all other places together, and the process says so once.
func TestTheSafeWordOfAnyPlaceHoldsAtEveryDoor(t *testing.T) {
	t.Parallel()
	for _, dry := range []bool{true, false} {
		for _, on := range placesOfSwitches() {
			t.Run(fmt.Sprintf("dry run %t by the %s", dry, on), func(t *testing.T) {
				t.Parallel()
				w := newSwitchWorld(t, dry, on)
				before := w.refs()
				w.proposesAtTheCommandLine()
				w.mergesAtTheCommandLine()
				w.proposesOverStdio()
				w.proposesToAServer()
				if after := w.refs(); after != before {
					t.Errorf("something was written:\n%s\nwas\n%s", after, before)
				}
			})
		}
	}
}

// A switch of a token holds where each other place says false, and takes nothing from other tokens.
func TestTheSafeWordOfATokenHolds(t *testing.T) {
	t.Parallel()
	for _, dry := range []bool{true, false} {
		w := newSwitchWorld(t, dry, "token")
		made := map[string]string{}
		for _, flag := range []string{"--dry-run", "--read-only"} {
			made[flag] = w.secretOf("token", "create", "--agent", "--tier", "2", "--name", "agent"+flag, flag)
		}
		said := w.serving(func(address string) {
			code, dryRun := w.proposes(address, made["--dry-run"])
			if code != "" || !dryRun {
				t.Errorf("a token in a dry run: %q, %t", code, dryRun)
			}
			if code, _ = w.proposes(address, made["--read-only"]); code != fault.ReadOnly {
				t.Errorf("a token that is read-only: %q", code)
			}
			if code, dryRun = w.proposes(address, ""); code != "" || dryRun {
				t.Errorf("a person: %q, %t", code, dryRun)
			}
		}, w.flags...)
		if strings.Contains(said(), "has no effect") {
			t.Errorf("false everywhere, and %s", said())
		}
	}
}

func (w *switchWorld) proposesAtTheCommandLine() {
	w.Helper()
	code, dryRun := w.flagged("pr create", "--title", "New", "--body", "Why: x", "--create",
		"checks/s.md="+w.dir+"/short.md")
	w.held("pr create", code, dryRun)
}

// flagged runs a command about demo/home as ann, with the flags of the world, and checks what it warns of.
func (w *switchWorld) flagged(command string, args ...string) (code fault.Code, dryRun bool) {
	w.Helper()
	args = slices.Concat(strings.Fields(command), []string{"--repo", "demo/home", "--json"}, args, w.flags)
	out, errs, _ := runCommand(w, w.asAnn(w.env), args...)
	answer := decode[proposed](w, out)
	w.warned(command, errs)
	return answer.Code, answer.DryRun
}

// mergesAtTheCommandLine asks for a merge, which a dry run refuses. Read-only refuses proposals alone.
func (w *switchWorld) mergesAtTheCommandLine() {
	w.Helper()
	verb := "merge"
	if !w.dry {
		verb = "comment"
	}
	if code, _ := w.flagged("review "+verb, "1", "--comment", "A word."); (code == fault.ReadOnly) != w.dry {
		w.Errorf("review %s: %q", verb, code)
	}
}

func (w *switchWorld) proposesOverStdio() {
	w.Helper()
	asked := greetingOfTest + "\n" + initializedOfTest + "\n" + toolCall("create_pr", newFile()) + "\n"
	out, errs, code := runWith(w.Context(), asked, lookupIn(w.env), append([]string{"mcp-server"}, w.flags...))
	found := false
	for line := range strings.Lines(out) {
		var answer toolAnswer
		if json.Unmarshal([]byte(line), &answer) == nil && answer.ID == 2 {
			found = true
			w.held("mcp-server", answer.code(), answer.Result.Structured.DryRun)
		}
	}
	if !found || code != 0 {
		w.Errorf("mcp-server ended with %d: %s%s", code, out, errs)
	}
	w.warned("mcp-server", errs)
}

func (w *switchWorld) proposesToAServer() {
	w.Helper()
	token := w.secretOf("token", "create", "--agent", "--tier", "2", "--name", "bot")
	said := w.serving(func(address string) {
		for _, agent := range []string{"", token} {
			code, dryRun := w.proposes(address, agent)
			w.held("serve, agent "+agent, code, dryRun)
		}
		if w.dry {
			got := w.post(address+"/api/v1/prs/1/merge", map[string]any{"repo_owner": "demo", "repo_name": "home",
				"provider": "local"})
			if got != fault.ReadOnly {
				w.Errorf("serve, merge: %q", got)
			}
		}
	}, w.flags...)
	w.warned("serve", said())
}

// refs are the branches of the repository with their commits.
func (w *switchWorld) refs() string {
	w.Helper()
	refs, err := exec.CommandContext(w.Context(), "git", "--git-dir", filepath.Join(w.dir, "root/demo/home.git"),
		"for-each-ref").Output()
	must.Do(w, err)
	return string(refs)
}
