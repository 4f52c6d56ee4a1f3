package web_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	"github.com/claudeops/claudeops/internal/procedures/packages"
	engine "github.com/claudeops/claudeops/internal/system/change"
)

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
	w.page(at+"/deployment", 200).has("Nothing is known of this machine", "a module cannot be had")
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
	if text := w.page(at, 200).text; !strings.Contains(text, "Show what a deployment would change") || len(f.asked) != 0 {
		t.Errorf("the page of the pull request, asked %v: %s", f.asked, text)
	}
	w.page(at+"/deployment", 200).has("create 1 file, update 1 and delete 0", "replace: 1", "adopt",
		"also without this pull request", "<b>new</b>", "a <i>warning</i>")
	if len(f.asked) != 1 || f.asked[0].Owner != "joe" || f.asked[0].Commit == "" {
		t.Errorf("%+v", f.asked)
	}
	f.err = fault.New(fault.UpstreamError, "the commit cannot be had")
	w.page(at+"/deployment", 200).has("Nothing is known of this machine", "the commit cannot be had")
	f.err, f.shown = nil, deploy.Preview{}
	w.page(at+"/deployment", 200).has("Nothing on this machine")
	for _, target := range []string{"/pulls/fake/joe/infra/99/deployment", "/pulls/fake/joe/infra/x/deployment"} {
		w.page(target, 404)
	}
	f.overview.Plan = &engine.Plan{}
	if text := w.page("/deployments", 200).text; strings.Contains(text, "waits for you") {
		t.Errorf("nothing waits: %s", text)
	}
	f.waiting = &deploy.DueMerge{Provider: "fake", Owner: "joe", Name: "infra", Number: 1, Title: "<i>Fix</i>",
		Why: "files are there", Code: "E_X", Adopt: []string{"/x"}}
	w.page("/deployments", 200).has("A merge waits for you", "#1 <i>Fix</i>", "E_X files are there",
		"deploy apply --yes --adopt")
	w.page("/", 200).has("#1 of joe/infra is merged and not deployed", "files are there")
	w = newWorld(t, nil)
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	if text := w.page(at, 200).text; strings.Contains(text, "on this machine") {
		t.Errorf("without the toolset: %s", text)
	}
	w.page(at+"/deployment", 404)
}
