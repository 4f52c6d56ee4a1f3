package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/system/change"
)

// private is a repository on this machine that the operator can read, with one prompt. Its address and its commit.
func (b *bench) private(name string) (url, commit string) {
	b.Helper()
	dir := filepath.Join(b.dir, name)
	operationtest.WriteFiles(b, dir, map[string]string{"ask.md": "the secret of " + name + "\n"})
	git(b, dir, "init", "-q", "-b", "main")
	git(b, dir, "add", "-A")
	git(b, dir, "commit", "-q", "-m", "x")
	return "file://" + filepath.ToSlash(dir), git(b, dir, "rev-parse", "HEAD")
}

func (b *bench) allow(origins ...string) {
	list := sources.List{}
	for _, origin := range origins {
		o, err := sources.OriginOf(origin)
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, sources.Source{Origin: o})
	}
	b.settings.Sources = func() sources.List { return list }
}

// fetched are the entries of the cache, whole or not.
func (b *bench) fetched() []string {
	b.Helper()
	found, err := filepath.Glob(filepath.Join(b.dir, "agentpack", "cache", "git", "*", "*"))
	if err != nil {
		b.Fatal(err)
	}
	return found
}

func moduleOf(url, more string) string {
	return "version: 1\nprofiles: {default: {include_modules: [p]}}\ntargets: {vscode: {}}\nmodules: [{id: p, type: " +
		"prompt, source: {git: {url: '" + url + "'" + more + "}}}]\n"
}

func (b *bench) callers() map[string]record.Door {
	return map[string]record.Door{"agent over MCP": record.DoorMCP, "program over REST": record.DoorREST}
}

// An agent's own configuration is neither read nor followed, whatever it names; the refusal says how a person allows
// it, and is recorded.
func TestAnAgentReadsNoConfigurationOfItsOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t, life())
	url, _ := b.private("secret")
	operationtest.WriteFiles(t, b.dir, map[string]string{"project/mine/" + configName: moduleOf(url, "")})
	if err := os.Symlink(filepath.Join(b.dir, "project", "mine"), filepath.Join(b.dir, "project", "link")); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(b.dir, "project", "mine")
	for name, door := range b.callers() {
		for _, repo := range []string{own, "mine", "link", own + "/../mine",
			filepath.Join(b.dir, "agentpack", "repo", "..", "..", "project", "mine"), "/nowhere"} {
			for tool, more := range map[string]string{ToolPlan: "", ToolDiff: "", ToolStatus: "", ToolDoctor: "",
				ToolApply: `,"yes":true`} {
				b.door, b.rows = door, nil
				arguments, _ := json.Marshal(repo)
				out := b.ask(tool, `{"repo":`+string(arguments)+more+`}`)
				text, _ := json.Marshal(out)
				if out.OK || out.Errors[0].Code != SourceNotAllowed || strings.Contains(string(text), "secret of") ||
					!strings.Contains(out.Errors[0].Message, "claudeops sources allow /") {
					t.Errorf("%s, %s, %s: %s", name, tool, repo, text)
				}
				if len(b.rows) != 1 || b.rows[0].Outcome != record.OutcomeRefused {
					t.Errorf("%s, %s, %s: the audit: %+v", name, tool, repo, b.rows)
				}
			}
		}
	}
	if list := b.fetched(); len(list) > 0 {
		t.Errorf("fetched: %v", list)
	}
	if out := b.ask(ToolPlan, `{"repo":"`+filepath.Join(b.dir, "agentpack", "repo")+`"}`); !out.OK {
		t.Errorf("the operator's own: %+v", out.Errors)
	}
}

// A configuration that the operator did not write chooses among the sources that the operator admitted; this holds for
// persons, too.
func TestAProjectsConfigurationChoosesAmongSources(t *testing.T) {
	t.Parallel()
	b := newBench(t, life())
	url, _ := b.private("secret")
	dir := filepath.Join(b.dir, "project", "mine")
	if err := os.Symlink(filepath.Join(b.dir, "secret"), filepath.Join(b.dir, "project", "way")); err != nil {
		t.Fatal(err)
	}
	plan := func(address, more string) Envelope[map[string]any] {
		t.Helper()
		b.rows = nil
		operationtest.WriteFiles(t, dir, map[string]string{configName: moduleOf(address, more)})
		return b.ask(ToolDiff, `{"repo":"mine"}`)
	}
	link := "file://" + filepath.ToSlash(filepath.Join(b.dir, "project", "way"))
	foreign := []string{url, filepath.Join(b.dir, "secret"), "../secret", "secret", link, "https://git.invalid/x",
		"http://git.invalid/x", "ssh://git@git.invalid/x", "git@git.invalid:x", "git://git.invalid/x"}
	b.door = record.DoorCLI
	for _, address := range foreign {
		if out := plan(address, ""); out.OK || out.Errors[0].Code != SourceNotAllowed ||
			!strings.Contains(out.Errors[0].Message, "not used") {
			t.Errorf("%s: %+v", address, out.Errors)
		} else if address == url && !strings.Contains(out.Errors[0].Message, "claudeops sources allow "+url) {
			t.Errorf("%s", out.Errors[0].Message)
		}
	}
	b.allow(filepath.Join(b.dir, "project"))
	if out := plan(link, ""); out.OK || out.Errors[0].Code != SourceNotAllowed {
		t.Errorf("through a link out of an admitted folder: %+v", out)
	}
	b.door = record.DoorMCP
	if out := plan(url, ""); out.OK || out.Errors[0].Code != SourceNotAllowed {
		t.Errorf("an agent, in an admitted folder: %+v", out)
	}
	if list := b.fetched(); len(list) > 0 {
		t.Errorf("fetched: %v", list)
	}
	b.allow(filepath.Join(b.dir, "project"), url)
	text, _ := json.Marshal(plan(url, ""))
	if !strings.Contains(string(text), "secret of") || len(b.fetched()) != 1 {
		t.Errorf("an admitted source: %s", text)
	}
	if len(b.rows) != 1 || b.rows[0].Action != ToolDiff || b.rows[0].Outcome != record.OutcomeDone ||
		!strings.Contains(b.rows[0].Message, "fetched from "+url) {
		t.Errorf("the audit: %+v", b.rows)
	}
	b.allow(filepath.Join(b.dir, "project")) // and no more
	if out := plan(url, ""); out.OK || out.Errors[0].Code != SourceNotAllowed {
		t.Errorf("what was fetched before is read: %+v", out)
	}
}

// Only the operator's own configuration says where Codex's folder is.
func TestAProjectsConfigurationNamesNoFolderOfCodex(t *testing.T) {
	t.Parallel()
	b := newBench(t, map[string]string{"project/mine/" +
		configName: "version: 1\nprofiles: {default: {}}\ntargets: {codex: {scope: user, options: {codex_home: " +
		"/elsewhere/codex}}}\n"})
	b.door = record.DoorCLI
	if out := b.ask(ToolPlan, `{"repo":"mine"}`); out.OK || out.Errors[0].Code != ConfigInvalid {
		t.Errorf("%+v", out)
	}
}

// What the operator's own configuration names is used; each reading from outside has a row.
func TestEveryFetchIsInTheAudit(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	url, commit := b.private("secret")
	operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/repo/" + configName: moduleOf(url, "")})
	for _, tool := range []string{ToolPlan, ToolDiff, ToolStatus, ToolDoctor} {
		b.rows = nil
		b.mustOK(tool, `{}`)
		if len(b.rows) != 1 || b.rows[0].Message != "fetched from "+url {
			t.Errorf("%s: %+v", tool, b.rows)
		}
	}
	b.rows = nil
	b.mustOK(ToolApply, `{"yes":true}`)
	if len(b.rows) != 1 || !strings.Contains(b.rows[0].Message, "1 change; fetched from "+url) {
		t.Errorf("%+v", b.rows)
	}
	operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/repo/" +
		configName: moduleOf("file://joe:token@/nowhere", "")})
	b.rows = nil
	if out := b.ask(ToolPlan, `{}`); out.OK || len(b.rows) != 1 || b.rows[0].Outcome == record.OutcomeDone ||
		!strings.Contains(b.rows[0].Message, "fetched from file:///nowhere") {
		t.Errorf("a fetch that fails: %+v, %+v", out, b.rows)
	}
	operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/repo/" + configName: moduleOf(url, ", ref: "+commit)})
	b.rows = nil
	if b.mustOK(ToolPlan, `{}`); len(b.rows) != 0 {
		t.Errorf("nothing was fetched: %+v", b.rows)
	}
}

// A commit is a part of paths and of git's arguments: what is none is refused, wherever it stands.
func TestALockFileNamesCommitsAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	url, _ := b.private("secret")
	outside := filepath.Join(b.dir, "written")
	operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/repo/" + configName: moduleOf(url, ""),
		"elsewhere/ask.md": "another folder\n"})
	for _, commit := range []string{"../../../../elsewhere", filepath.Join(b.dir, "elsewhere"), "--output=" + outside,
		"main", "", "abc", strings.Repeat("A", 40)} {
		text, _ := json.Marshal(map[string]any{"version": 1,
			"modules": []any{map[string]any{"id": "p",
				"resolved_source": map[string]any{"git": map[string]any{"url": url, "commit": commit}}}}})
		operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/repo/" + lockName: string(text)})
		out := b.ask(ToolDiff, `{}`)
		if said, _ := json.Marshal(out); out.OK || out.Errors[0].Code != LockfileInvalid ||
			strings.Contains(string(said), "another folder") {
			t.Errorf("%q: %s", commit, said)
		}
	}
	if change.Exists(outside) || len(b.fetched()) > 0 {
		t.Errorf("something was written: %v", b.fetched())
	}
}
