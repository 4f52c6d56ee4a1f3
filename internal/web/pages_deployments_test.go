package web_test

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/procedures/deploy"
	engine "github.com/claudeops/claudeops/internal/system/change"
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
	dir := t.TempDir()
	files := func(files map[string]string) {
		for name, text := range files {
			name = filepath.Join(dir, name)
			if os.MkdirAll(filepath.Dir(name), 0o755) != nil || os.WriteFile(name, []byte(text), 0o644) != nil {
				t.Fatal(name)
			}
		}
	}
	const header = "---\ndescription: d\n---\n"
	files(map[string]string{
		"project/.keep": "", "home/.keep": "", "agentpack/repo/a.md": header + "one\n", "agentpack/repo/b.md": header,
		"agentpack/repo/agentpack.yaml": "version: 1\nprofiles: {default: {include_tags: [x]}, first: {include_modules: [a]}}\ntargets: {claude_code: {}}\nmodules:\n" +
			"- {id: a, type: command, tags: [x], source: {local_path: {path: a.md}}}\n- {id: b, type: command, tags: [x], source: {local_path: {path: b.md}}}\n",
	})
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	service := deploy.NewService(deploy.Settings{
		Home: filepath.Join(dir, "agentpack"), UserHome: filepath.Join(dir, "home"), Folder: filepath.Join(dir, "project"), Git: deploy.GitCommand{Path: git, Env: []string{"PATH=" + os.Getenv("PATH")}}, Now: time.Now,
	})
	for _, profile := range []string{"first", "default"} {
		_, done, err := service.Apply(t.Context(), deploy.Request{Profile: profile}, engine.Approval{}, false)
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = done.ID
		}
	}
	files(map[string]string{"project/.claude/commands/a.md": header + "<b>drifted</b>\n"})
	w = newWorld(t, func(w *world) {
		w.web.Toolsets.Pages.Deployments = &deployments{service}
		acts := deploy.Acts{Kernel: w.kernel, Service: func() *deploy.Service { return service }, Audit: func() operation.Audit { return w.store.Ledger }}
		w.web.Acts = append(w.web.Acts, acts.Operations()...)
	})
	w.page("/deployments", 200).has("Rolling back needs the scope operate")
	w.signedIn()
	return w, filepath.Join(dir, "project", ".claude", "commands"), first
}

func TestThePageOfDeploymentsShowsTargetsDriftAndSnapshots(t *testing.T) {
	w, _, first := deployedWorld(t)
	text := w.page("/deployments", 200).text
	for _, part := range []string{"update 1 and delete 0 files", "files that are not as they were deployed: 1", "Changed here", "<b>drifted</b>", "one", first, "current", "Roll back"} {
		if !strings.Contains(text, part) {
			t.Errorf("the page lacks %q: %s", part, text)
		}
	}
}

// The page of a rollback shows what it would change; the form on it does just that, once the box is ticked.
func TestARollbackOnThePageIsPlannedConfirmedAndRecorded(t *testing.T) {
	w, root, first := deployedWorld(t)
	page := w.page("/deployments/rollback?to="+first, 200)
	for _, part := range []string{"update 1 and delete 1 files", "a.md", "b.md", "was not there then", "<b>drifted</b>"} {
		if !strings.Contains(page.text, part) {
			t.Errorf("the plan lacks %q: %s", part, page.text)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "b.md")); err != nil {
		t.Errorf("looking has changed something: %v", err)
	}
	w.page("/deployments/rollback?to=1", 404)
	plan := regexp.MustCompile(`name="plan" value="([0-9a-f]{64})"`).FindStringSubmatch(string(w.get("/deployments/rollback?to="+first, browser).body))
	if plan == nil {
		t.Fatalf("no form: %s", page.text)
	}
	good := func() url.Values { return url.Values{"to": {first}, "yes": {"true"}, "plan": {plan[1]}} }
	for name, change := range map[string]func(url.Values){
		"no box": func(v url.Values) { v.Del("yes") }, "no snapshot": func(v url.Values) { v.Del("to") }, "two": func(v url.Values) { v.Add("to", first) },
		"another snapshot": func(v url.Values) { v.Set("to", "1") }, "no plan": func(v url.Values) { v.Del("plan") },
		"another plan": func(v url.Values) { v.Set("plan", strings.Repeat("0", 64)) },
	} {
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
	if a := w.submit("/deployments/rollback", good()); a.StatusCode != 303 {
		t.Errorf("%d", a.StatusCode)
	}
	if _, err := os.Stat(filepath.Join(root, "b.md")); err == nil {
		t.Error("the rollback has not removed b.md")
	}
	if text := w.page("/deployments?done=rollback", 200).text; !strings.Contains(text, "rollback to "+first) || strings.Contains(text, "drifted") {
		t.Errorf("%s", text)
	}
}

func TestWithoutTheToolsetThereAreNoDeployments(t *testing.T) {
	newWorld(t, nil).page("/deployments", 404)
}
