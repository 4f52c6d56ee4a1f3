package web_test

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/procedures/packages"
	"github.com/claudeops/claudeops/internal/records/record"
	engine "github.com/claudeops/claudeops/internal/system/fileset"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// deployments is a service over folders of the test.
type deployments struct{ *deploy.Service }

func (d *deployments) PlanRollback(ctx context.Context, id string) (*engine.Plan, error) {
	p, err := d.Service.PlanRollback(ctx, id)
	if err != nil {
		return nil, deploy.Failure(err)
	}
	return p, nil
}

// deployedWorld has deployed two commands, one after the other, and the first has drifted.
func deployedWorld(t *testing.T) (w *world, root string, first string) {
	t.Helper()
	const header = "---\ndescription: d\n---\n"
	dir := operationtest.WriteFiles(t, t.TempDir(), map[string]string{
		"project/.keep": "", "home/.keep": "", "agentpack/repo/a.md": header + "one\n", "agentpack/repo/b.md": header,
		"agentpack/repo/agentpack.yaml": "version: 1\nprofiles: {default: {include_tags: [x]}, first: {include_modules: " +
			"[a]}}\ntargets: {claude_code: {}}\nmodules:\n" +
			"- {id: a, type: command, tags: [x], source: {local_path: {path: a.md}}}\n- {id: b, type: command, tags: [x], " +
			"source: {local_path: {path: b.md}}}\n",
	})
	git, err := exec.LookPath("git")
	must.Do(t, err)
	service := deploy.NewService(deploy.Settings{
		Home: filepath.Join(dir, "agentpack"), UserHome: filepath.Join(dir, "home"), Folder: filepath.Join(dir, "project"),
		Git: deploy.GitCommand{Path: git, Env: []string{"PATH=" + os.Getenv("PATH")}}, Now: time.Now,
	})
	for _, profile := range []string{"first", "default"} {
		_, done, err := service.Apply(t.Context(), deploy.Request{Profile: profile}, engine.Approval{}, false)
		must.Do(t, err)
		if first == "" {
			first = done.ID
		}
	}
	operationtest.WriteFiles(t, dir, map[string]string{"project/.claude/commands/a.md": header + "<b>drifted</b>\n"})
	w = newWorld(t, func(w *world) {
		w.web.Toolsets.Pages.Deployments = &deployments{service}
		acts := deploy.Acts{Kernel: w.kernel, Service: func() *deploy.Service { return service },
			Audit: func() operation.Audit { return w.store.Ledger }}
		w.web.Acts = append(w.web.Acts, acts.Operations()...)
		tools := deploy.Toolset("1", w.kernel, func() *deploy.Service { return service }, w.drafted)
		w.web.Toolsets.Pages.Propose = operation.Named(tools.Operations, deploy.NamePropose)
	})
	w.page("/deployments", 200).has("Rolling back needs the scope operate")
	w.signedIn()
	return w, filepath.Join(dir, "project", ".claude", "commands"), first
}

// drafted stands for create_pr's use case: it opens #7, or refuses what says so.
func (w *world) drafted(_ context.Context, call operation.Call, p deploy.Proposal) (deploy.Proposed, []string, error) {
	if p.Title == "refuse" {
		return deploy.Proposed{}, nil, fault.New(fault.ScopeDenied, "not this file")
	}
	w.asked = append(w.asked, call.Caller.String()+": "+p.Title+"; "+p.Files[0].Path+"; "+p.Files[0].Content)
	return deploy.Proposed{Repository: p.Home.Owner + "/" + p.Home.Name, Number: 7, Provider: "local", Title: p.Title},
		nil, nil
}

func TestDriftIsProposedOnThePage(t *testing.T) {
	t.Parallel()
	w, root, _ := deployedWorld(t)
	file := filepath.Join(root, "a.md")
	repo := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(root))), "agentpack", "repo")
	for _, args := range [][]string{{"init", "-q"}, {"remote", "add", "origin", "https://git.example.org/joe/rules.git"}} {
		must.Do(t, exec.Command("git", append([]string{"-C", repo}, args...)...).Run())
	}
	w.page("/deployments", 200).has("Propose as a pull request")
	form := url.Values{"path": {file}, "title": {"Better"}, "why": {"seen"}}
	w.leads(w.submit("/deployments/propose", form), "/pulls/local/joe/rules/7")
	if len(w.asked) != 1 || !strings.HasSuffix(w.asked[0], ": Better; a.md; ---\ndescription: d\n---\n<b>drifted</b>\n") {
		t.Errorf("%q", w.asked)
	}
	for name, c := range map[string]struct {
		form   url.Values
		status int
	}{
		"no file":       {url.Values{"title": {""}, "why": {""}}, 400},
		"no field":      {url.Values{"path": {file}}, 400},
		"another file":  {url.Values{"path": {filepath.Join(root, "b.md")}, "title": {""}, "why": {""}}, 409},
		"a refusal":     {url.Values{"path": {file}, "title": {"refuse"}, "why": {""}}, 403},
		"a long title":  {url.Values{"path": {file}, "title": {strings.Repeat("x", 73)}, "why": {""}}, 400},
		"a path beside": {url.Values{"path": {"/etc/passwd"}, "title": {""}, "why": {""}}, 409},
	} {
		if a := w.submit("/deployments/propose", c.form); a.StatusCode != c.status {
			t.Errorf("%s: %d, want %d: %s", name, a.StatusCode, c.status, a.body)
		}
	}
	if len(w.asked) != 1 {
		t.Errorf("%q", w.asked)
	}
}

func TestThePageOfDeploymentsShowsTargetsDriftAndSnapshots(t *testing.T) {
	t.Parallel()
	w, _, first := deployedWorld(t)
	w.page("/deployments", 200).has("create 0 files, update 1 and delete 0", "files that are not as they were deployed: 1",
		"Changed here", "<b>drifted</b>", "one", first, "current", "Roll back")
}

// The page of a rollback shows what it would change; the form on it does just that, once the box is ticked.
func TestARollbackOnThePageIsPlannedConfirmedAndRecorded(t *testing.T) {
	t.Parallel()
	w, root, first := deployedWorld(t)
	page := w.page("/deployments/rollback?to="+first, 200)
	page.has("create 0 files, update 1 and delete 1", "a.md", "b.md", "was not there then", "<b>drifted</b>")
	if _, err := os.Stat(filepath.Join(root, "b.md")); err != nil {
		t.Errorf("looking has changed something: %v", err)
	}
	w.page("/deployments/rollback?to=1", 404)
	good := func() url.Values { return url.Values{"to": {first}, "yes": {"true"}, "plan": page.fields()["plan"]} }
	for name, change := range map[string]func(url.Values){
		"no box": func(v url.Values) { v.Del("yes") }, "no snapshot": func(v url.Values) { v.Del("to") },
		"two":              func(v url.Values) { v.Add("to", first) },
		"another snapshot": func(v url.Values) { v.Set("to", "1") }, "no plan": func(v url.Values) { v.Del("plan") },
		"another plan": func(v url.Values) { v.Set("plan", strings.Repeat("0", 64)) },
	} {
		w.advance(time.Minute) // what is repeated within it has no row of its own
		form, before := good(), len(w.attempts())
		change(form)
		if a := w.submit("/deployments/rollback", form); a.StatusCode < 400 {
			t.Errorf("%s: %d", name, a.StatusCode)
		}
		if rows := w.attempts(); len(rows) != before+1 {
			t.Errorf("%s: %d rows", name, len(rows)-before)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "b.md")); err != nil {
		t.Errorf("a refused rollback has changed something: %v", err)
	}
	w.status(w.submit("/deployments/rollback", good()), 303)
	if _, err := os.Stat(filepath.Join(root, "b.md")); err == nil {
		t.Error("the rollback has not removed b.md")
	}
	done := w.page("/deployments?done=rollback", 200)
	done.has("rollback to " + first)
	done.lacks("drifted")
}

// A person may have to roll back just while everything is paused; agents cannot meanwhile.
func TestAPersonRollsBackWhileAllIsPaused(t *testing.T) {
	t.Parallel()
	w, root, first := deployedWorld(t)
	if _, err := w.store.Pauses().Pause(t.Context(), record.Pause{By: "ann", Why: "the storage is moved"}, false,
		record.Attempt{RequestID: "pause", Action: "pause", Outcome: record.OutcomeDone}); err != nil {
		t.Fatal(err)
	}
	w.page("/deployments", 200).has("Everything is paused by ann")
	plan := w.page("/deployments/rollback?to="+first, 200).fields()["plan"]
	w.status(w.submit("/deployments/rollback", url.Values{"to": {first}, "yes": {"true"}, "plan": plan}), 303)
	if _, err := os.Stat(filepath.Join(root, "b.md")); err == nil {
		t.Error("the rollback has not removed b.md")
	}
}

// forecast stands for a machine that deploys from joe/infra.
type forecast struct {
	shown    deploy.Preview
	err      error
	asked    []deploy.Candidate
	waiting  *deploy.DueMerge
	overview deploy.Overview
	hashes   map[string]string // that WhereIs was asked for
}

func (f *forecast) WhereIs(_ context.Context, _, _, _ string, hashes map[string]string) ([]deploy.Whereabouts, error) {
	f.hashes = hashes
	return []deploy.Whereabouts{
		{File: "checks/inodes.md", Target: deploy.Codex, Path: "/home/prompts/inodes.md", Has: deploy.AsProposed},
		{File: "checks/inodes.md", Target: deploy.ClaudeCode, Path: "/home/<b>.md", Has: deploy.ChangedInPlace},
	}, f.err
}

// shelves stands for packages of which one has what is asked for.
type shelves struct {
	*packages.Browser
	hash string
}

func (s shelves) Holding(_ context.Context, hashes []string) ([]packages.Holder, bool, error) {
	if !slices.Contains(hashes, s.hash) {
		return nil, true, nil
	}
	return []packages.Holder{{Name: "@ops/disks", Version: "1.2.0", Registry: "team"},
		{Name: "other", Version: "2.0.0", Installed: true}}, false, nil
}

func TestThePageOfAMergedPullRequestSaysWhereItIs(t *testing.T) {
	t.Parallel()
	f := &forecast{}
	hash := engine.Hash([]byte("# Inodes\n"))
	w := newWorld(t, func(w *world) {
		w.web.Toolsets.Pages.Deployments = f
		w.web.Toolsets.Pages.Packages = shelves{hash: hash}
	})
	w.signedIn()
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	w.fake.World(t, gitprovider.RepoRef{Owner: "joe", Name: "infra"}).Merge(1)
	const at = "/pulls/fake/joe/infra/1"
	w.page(at, 200).has("Where it is now")
	w.page(at+"/deployment", 200).has(
		"Proposed and merged", "checks/inodes.md", "/home/prompts/inodes.md", "as proposed", "/home/<b>.md",
		"changed in place",
		"@ops/disks 1.2.0", "in team", "other 2.0.0", "installed here", "were not looked at",
	)
	if len(f.hashes) != 1 || f.hashes["checks/inodes.md"] != hash {
		t.Errorf("%v", f.hashes)
	}
	f.err = fault.New(fault.UpstreamError, "a module cannot be had")
	w.page(at+"/deployment", 200).has("Nothing is known about this machine", "a module cannot be had")
}

func (f *forecast) Look(context.Context) (deploy.Overview, error) { return f.overview, nil }
func (f *forecast) Snapshots(int) ([]*engine.Snapshot, error)     { return nil, nil }
func (f *forecast) Concerns(_ context.Context, _, owner, _ string) (bool, error) {
	return owner == "joe", nil
}

func (f *forecast) PlanRollback(context.Context, string) (*engine.Plan, error) {
	return &engine.Plan{}, nil
}

func (f *forecast) Waiting() (*deploy.DueMerge, error) { return f.waiting, nil }

func (f *forecast) Preview(_ context.Context, c deploy.Candidate) (deploy.Preview, error) {
	f.asked = append(f.asked, c)
	return f.shown, f.err
}

func TestThePageOfAPullRequestSaysWhatItWouldChangeOnThisMachine(t *testing.T) {
	t.Parallel()
	unified := "--- /dev/null\n+++ b/home/x.md\n@@ -0,0 +1 @@\n+<b>new</b>\n"
	one := engine.Change{Target: deploy.ClaudeCode, Op: engine.Update, Path: "/home/x.md", UpdateKind: "adopt_update",
		Reason: "is there"}
	f := &forecast{shown: deploy.Preview{
		Concerned: true, Adopts: 1,
		Plan: &engine.Plan{Changes: []engine.Change{one, {Target: deploy.Codex, Op: engine.Create, Path: "/home/y.md",
			Reason: "is not there"}}},
		Files:    []deploy.FileDiff{{Path: "/home/x.md", Unified: &unified}},
		Pending:  map[engine.FileKey]bool{{Target: deploy.Codex, Path: "/home/y.md"}: true},
		Warnings: []string{"a <i>warning</i>"},
	}}
	w := newWorld(t, func(w *world) { w.web.Toolsets.Pages.Deployments = f })
	w.signedIn()
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	const at = "/pulls/fake/joe/infra/1"
	w.page(at, 200).has("Show what a deployment would change")
	if len(f.asked) != 0 {
		t.Errorf("the page of the pull request asked for %v", f.asked)
	}
	w.page(at+"/deployment", 200).has("create 1 file, update 1 and delete 0", "replace: 1", "adopt",
		"also without this pull request", "<b>new</b>", "a <i>warning</i>")
	if len(f.asked) != 1 || f.asked[0].Owner != "joe" || f.asked[0].Commit == "" {
		t.Errorf("%+v", f.asked)
	}
	f.err = fault.New(fault.UpstreamError, "the commit cannot be had")
	w.page(at+"/deployment", 200).has("Nothing is known about this machine", "the commit cannot be had")
	f.err, f.shown = nil, deploy.Preview{}
	w.page(at+"/deployment", 200).has("Nothing on this machine")
	for _, target := range []string{"/pulls/fake/joe/infra/99/deployment", "/pulls/fake/joe/infra/x/deployment"} {
		w.page(target, 404)
	}
	f.overview.Plan = &engine.Plan{}
	w.page("/deployments", 200).lacks("waits for you")
	f.waiting = &deploy.DueMerge{Provider: "fake", Owner: "joe", Name: "infra", Number: 1, Title: "<i>Fix</i>",
		Why: "files are there", Code: "E_X", Adopt: []string{"/x"}}
	w.page("/deployments", 200).has("A merge waits for you", "#1 <i>Fix</i>", "E_X files are there",
		"deploy apply --yes --adopt")
	w.page("/", 200).has("#1 of joe/infra is merged and not deployed", "files are there")
}
