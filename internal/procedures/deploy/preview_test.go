package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/change"
)

// forge is a bench whose configuration is a checkout of the repository joe/procedures.
type forge struct {
	*bench
	remote  string // its address
	work    string // another checkout, where changes are made
	service *Service
}

const proceduresConfig = `version: 1
profiles: {default: {include_tags: [base]}}
targets: {claude_code: {scope: project}, codex: {scope: project}}
modules:
  - {id: "command:fix", type: command, tags: [base], source: {local_path: {path: modules/fix.md}}}
`

func newForge(t *testing.T) *forge {
	t.Helper()
	f := &forge{bench: newBench(t, nil)}
	f.remote, f.work = filepath.Join(f.dir, "forge", "joe", "procedures.git"), filepath.Join(f.dir, "work")
	operationtest.WriteFiles(t, f.dir, map[string]string{"forge/joe/.keep": "", "agentpack/.keep": ""})
	git(t, f.dir, "init", "-q", "--bare", "-b", "main", f.remote)
	git(t, f.dir, "clone", "-q", f.remote, f.work)
	f.commit("main", map[string]string{configName: proceduresConfig,
		"modules/fix.md": "---\ndescription: Fix\n---\nFix it.\n"})
	git(t, f.dir, "clone", "-q", f.remote, filepath.Join(f.dir, "agentpack", "repo"))
	f.service = NewService(f.settings)
	return f
}

// commit puts a commit with the files on a branch of the remote repository.
func (f *forge) commit(branch string, files map[string]string) (id string) {
	f.Helper()
	git(f, f.work, "checkout", "-q", "-B", branch)
	operationtest.WriteFiles(f, f.work, files)
	git(f, f.work, "add", "-A")
	git(f, f.work, "commit", "-q", "-m", "change")
	git(f, f.work, "push", "-q", "-f", "origin", branch)
	return git(f, f.work, "rev-parse", "HEAD")
}

func (f *forge) preview(commit string) (Preview, error) {
	return f.service.Preview(f.Context(), Candidate{"gitea", "joe", "procedures", commit})
}

func TestAPreviewSaysWhatAPullRequestWouldChange(t *testing.T) {
	f := newForge(t)
	if _, _, err := f.service.Apply(t.Context(), Request{}, change.Approval{}, false); err != nil {
		t.Fatal(err)
	}
	operationtest.WriteFiles(t, f.dir, map[string]string{"project/AGENTS.md": "a person's\n"})
	head := f.commit("proposal", map[string]string{
		"modules/fix.md": "---\ndescription: Fix\n---\nFix it well.\n", "modules/rules/AGENTS.md": "# Rules\n",
		configName: proceduresConfig +
			"  - {id: rules, type: instructions, tags: [base], source: {local_path: {path: modules/rules}}}\n",
	})
	before := f.tree("project")
	p, err := f.preview(head)
	if err != nil || !p.Concerned || p.Plan.Summary() != (change.Summary{Update: 2}) || p.Adopts != 1 ||
		len(p.Pending) != 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	if text := *p.Files[0].Unified + *p.Files[1].Unified; !strings.Contains(text, "+Fix it well.") ||
		!strings.Contains(text, "-a person's") {
		t.Errorf("%s", text)
	}
	if after := f.tree("project"); len(after) != len(before) || after["project/AGENTS.md"] != "a person's\n" {
		t.Errorf("a preview has changed something: %v", after)
	}
	if err := os.Remove(filepath.Join(f.dir, "project", ".claude", "commands", "fix.md")); err != nil {
		t.Fatal(err)
	}
	same, err := f.preview(git(t, f.work, "rev-parse", "origin/main"))
	if err != nil || len(same.Plan.Changes) != 1 || len(same.Pending) != 1 {
		t.Errorf("what is missing already: %+v, %v", same, err)
	}
}

func TestAPreviewIsAboutTheRepositoriesThatAreDeployed(t *testing.T) {
	f := newForge(t)
	for _, row := range []struct {
		repos                 string
		provider, owner, name string
		want                  bool
	}{
		{"", "gitea", "Joe", "Procedures", true}, {"", "github", "joe", "procedures", true},
		{"", "gitea", "joe", "other", false}, {"", "gitea", "ann", "procedures", false},
		{"joe/other", "gitea", "joe", "other", true}, {"joe/other", "gitea", "joe", "procedures", false},
		{"gitea:joe/other", "github", "joe", "other", false},
		{"gitea:joe/other", "gitea", "JOE", "Other", true},
	} {
		f.settings.Repos = nil
		if row.repos != "" {
			f.settings.Repos = []string{row.repos}
		}
		got, err := NewService(f.settings).Concerns(t.Context(), row.provider, row.owner, row.name)
		if got != row.want || err != nil {
			t.Errorf("%+v: %t, %v", row, got, err)
		}
	}
	for address, want := range map[string]bool{
		"https://git.example.org/joe/infra": true, "git@example.org:joe/infra.git": true, "git@example.org:JOE/Infra/": true,
		"/srv/git/joe/infra.git":                  true,
		"https://git.example.org/x/joe/infra.git": true, "https://git.example.org/joe-infra": false, "infra": false,
		"": false, "joe/infra/more": false,
	} {
		if got := sameRepository(address, "joe", "infra"); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
}

func TestAPreviewOfAModuleOfAnotherRepository(t *testing.T) {
	f := newForge(t)
	module := filepath.Join(f.dir, "forge", "ann", "skills")
	operationtest.WriteFiles(t, module, map[string]string{"fix.md": "---\ndescription: d\n---\none\n"})
	git(t, module, "init", "-q", "-b", "main")
	git(t, module, "add", "-A")
	git(t, module, "commit", "-q", "-m", "x")
	repo := filepath.Join(f.dir, "agentpack", "repo")
	url := "file://" + filepath.ToSlash(module)
	operationtest.WriteFiles(t, repo,
		map[string]string{configName: "version: 1\nprofiles: {default: {include_tags: [base]}}\ntargets: {claude_code: {}}\n" +
			"modules: [{id: far, type: command, tags: [base], source: {git: {url: '" + url + "', subdir: fix.md}}}]\n"})
	if _, _, err := f.service.Apply(t.Context(), Request{}, change.Approval{}, false); err != nil {
		t.Fatal(err)
	}
	git(t, module, "checkout", "-q", "-b", "proposal")
	operationtest.WriteFiles(t, module, map[string]string{"fix.md": "---\ndescription: d\n---\ntwo\n"})
	git(t, module, "commit", "-q", "-am", "x")
	head := git(t, module, "rev-parse", "HEAD")
	git(t, module, "checkout", "-q", "main")
	p, err := f.service.Preview(t.Context(), Candidate{"gitea", "ann", "skills", head})
	if err != nil || !p.Concerned || p.Plan.Summary() != (change.Summary{Update: 1}) {
		t.Errorf("%+v, %v", p, err)
	}
	main := git(t, module, "rev-parse", "main")
	operationtest.WriteFiles(t, repo,
		map[string]string{lockName: `{"version":1,"modules":[{"id":"far","type":"command","resolved_source":{"git":{"url":"` +
			url + `","commit":"` + main + `","subdir":"fix.md"}},"resolved_version":"` + main + `"}]}`})
	p, err = f.service.Preview(t.Context(), Candidate{"gitea", "ann", "skills", head})
	if err != nil || len(p.Plan.Changes) != 0 || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "is pinned") {
		t.Errorf("a locked module: %+v, %v", p, err)
	}
}

func TestAPreviewRefusesWhatIsNotKnown(t *testing.T) {
	f := newForge(t)
	secret := filepath.Join(f.dir, "secret")
	operationtest.WriteFiles(t, secret, map[string]string{"fix.md": "---\ndescription: d\n---\nsecret\n"})
	git(t, secret, "init", "-q", "-b", "main")
	git(t, secret, "add", "-A")
	git(t, secret, "commit", "-q", "-m", "x")
	cases := map[string]struct {
		files map[string]string
		code  Code
	}{
		"an address of its own": {map[string]string{configName: proceduresConfig +
			"  - {id: far, type: command, tags: [base], source: {git: {url: '" + secret + "', subdir: fix.md}}}\n"},
			SourceNotAllowed},
		"a folder of Codex": {map[string]string{configName: strings.Replace(proceduresConfig, "codex: {scope: project}",
			"codex: {scope: user, options: {codex_home: /etc/codex}}", 1)}, ConfigInvalid},
		"a broken file":    {map[string]string{configName: "version: ["}, ConfigInvalid},
		"no configuration": {map[string]string{configName: "version: 2\n"}, ConfigUnsupported},
		"a module that is gone": {map[string]string{configName: strings.Replace(proceduresConfig, "fix.md", "gone.md", 1)},
			ConfigInvalid},
	}
	for name, c := range cases {
		head := f.commit("proposal", c.files)
		_, err := f.preview(head)
		if code := codeOfFault(err); code != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, commit := range []string{"", "main", strings.Repeat("0", 40), "--upload-pack=touch " + f.dir + "/run"} {
		if _, err := f.preview(commit); codeOfFault(err) != GitFailed {
			t.Errorf("%q: %v", commit, err)
		}
	}
	entries, err := os.ReadDir(filepath.Join(f.dir, "agentpack", "cache", "git"))
	if err != nil || len(entries) != 1 {
		t.Errorf("something was fetched from elsewhere: %v, %v", entries, err)
	}
}

// codeOfFault is the code of an error in the form that the doors get.
func codeOfFault(err error) Code {
	if err == nil {
		return ""
	}
	return Code(operation.FaultOf(err).Code)
}
