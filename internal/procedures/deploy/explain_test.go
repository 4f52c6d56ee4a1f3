package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/fileset"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// layered is a configuration whose skill has a file of each kind of layer, and two modules in one file.
func layered() map[string]string {
	files := life()
	files["agentpack/repo/"+
		configName] += "  - {id: \"instructions:b\", type: instructions, tags: [base], source: {local_path: {path: " +
		"modules/b}}}\n"
	files["agentpack/repo/modules/b/AGENTS.md"] = "# More\nand more\n"
	files["agentpack/repo/modules/look/steps.md"] = "one\ntwo\nthree\n"
	key := fsKey("skill:look")
	files["agentpack/repo/overlays/"+key+"/.agentpack/overlay.json"] = `{"overlay_kind":"patch"}`
	files["agentpack/repo/overlays/"+key+
		"/.agentpack/patches/steps.md.patch"] = "--- a/steps.md\n+++ b/steps.md\n@@ -1,3 +1,4 @@\n one\n+one and a half\n " +
		"two\n three\n"
	files["agentpack/repo/overlays/machines/box/"+key+"/here.md"] = "here\n"
	files["agentpack/repo/overlays/machines/box/"+fsKey("instructions:a")+"/AGENTS.md"] = "# Rules of this machine\n"
	return files
}

func TestExplainSaysWhichModuleAndOverlayGiveALine(t *testing.T) {
	t.Parallel()
	b := newBench(t, layered())
	b.mustOK(ToolApply, `{"yes":true}`)
	for name, c := range map[string]struct{ arguments, want string }{
		"a line of a module among several": {`{"path":"AGENTS.md","line":9}`,
			"codex instructions:b AGENTS.md 8-9: upstream source modules/b/AGENTS.md:2*"},
		"an overlay in place of the source": {
			`{"path":"AGENTS.md","line":2}`,
			"codex instructions:a AGENTS.md 2-2: upstream source modules/a/AGENTS.md; machine replaces overlays/machines/box/" +
				fsKey("instructions:a") + "/AGENTS.md:1*",
		},
		"a line of a patch": {
			`{"path":".codex/skills/look/steps.md","line":2}`,
			"codex skill:look steps.md 1-4: upstream source modules/look/steps.md; global patches overlays/" +
				fsKey("skill:look") + "/.agentpack/patches/steps.md.patch*",
		},
		"a line beside the patch": {
			`{"path":".codex/skills/look/steps.md","line":3}`,
			"codex skill:look steps.md 1-4: upstream source modules/look/steps.md:2*; global patches overlays/" +
				fsKey("skill:look") + "/.agentpack/patches/steps.md.patch",
		},
		"a file that an overlay adds": {
			`{"path":".claude/skills/look/here.md"}`, "claude_code skill:look here.md 1-1: machine adds overlays/machines/box/" +
				fsKey("skill:look") + "/here.md*",
		},
		"a module that is one file": {`{"path":"` + b.dir + `/project/.claude/commands/fix.md"}`,
			"claude_code command:fix fix.md 1-4: upstream source modules/fix.md*"},
		"a header that the target wants": {
			`{"path":".cursor/rules/` + fsKey("instructions:b") + `.mdc","line":8}`,
			"cursor instructions:b AGENTS.md 7-8: upstream source modules/b/AGENTS.md:2*",
		},
		"a file of the user": {`{"path":"~/.codex/AGENTS.md","line":9}`,
			"codex instructions:b AGENTS.md 8-9: upstream source modules/b/AGENTS.md:2*"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := explained(t, b.mustOK(NameExplain, c.arguments)); got != c.want {
				t.Error(cmp.Diff(c.want, got))
			}
		})
	}
	for arguments, want := range map[string]string{
		`{"path":"README.md"}`: "no module gives", `{"path":"AGENTS.md","line":4}`: "between the parts",
		`{"path":"AGENTS.md","line":400}`: "beyond the file's end",
		`{"path":"../../etc/passwd"}`:     "no module gives",
	} {
		if out := b.ask(NameExplain, arguments); out.OK || out.Errors[0].Code != FileUnknown ||
			!strings.Contains(out.Errors[0].Message, want) {
			t.Errorf("%s: %+v", arguments, out.Errors)
		}
	}
	must.Do(t, os.WriteFile(filepath.Join(b.dir, "project", "AGENTS.md"), []byte("mine\n"), 0o600))
	drifted := b.mustOK(NameExplain, `{"path":"AGENTS.md"}`)["files"].([]any)[0].(map[string]any)
	if drifted["drift"] != "modified" || len(drifted["parts"].([]any)) != 2 {
		t.Errorf("%v", drifted)
	}
}

// explained is the answer in lines.
func explained(t *testing.T, data map[string]any) string {
	t.Helper()
	text, err := json.Marshal(data)
	var of ExplainData
	if err == nil {
		err = json.Unmarshal(text, &of)
	}
	must.Do(t, err)
	return inLines(of)
}

func TestLineBeforeFindsWhereALineStood(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before, after string
		want          []int // by the lines of after; 0 for one that the edit made
	}{
		{"a\nb\nc\n", "a\nb\nc\n", []int{1, 2, 3}},
		{"a\nb\nc\n", "x\na\nb\nc\n", []int{0, 1, 2, 3}},
		{"a\nb\nc\n", "a\nc\n", []int{1, 3}},
		{"a\nb\nc\n", "a\nB\nc\nd\n", []int{1, 0, 3, 0}},
		{"a\nb", "a\nx\nb", []int{1, 0, 2}},
		{"a\nb\nc\nd\n", "c\nd\nx", []int{3, 4, 0}},
		{"", "a\n", []int{0}},
	} {
		for i, want := range c.want {
			at, kept := lineBefore(c.before, c.after, i+1)
			if at != want || kept != (want > 0) {
				t.Errorf("%q to %q, line %d: %d, %t; want %d", c.before, c.after, i+1, at, kept, want)
			}
		}
	}
}

// inLines has a line for each part, in which * marks what decides.
func inLines(d ExplainData) string {
	var lines []string
	for _, f := range d.Files {
		for _, p := range f.Parts {
			var layers []string
			for _, l := range p.Layers {
				text := l.Level + " " + l.How + " " + l.File
				if l.Line > 0 {
					text += ":" + strconv.Itoa(l.Line)
				}
				if l.Gives {
					text += "*"
				}
				layers = append(layers, text)
			}
			lines = append(lines, fmt.Sprintf("%s %s %s %d-%d: %s", f.Target, p.Module, p.File, p.First, p.Last,
				strings.Join(layers, "; ")))
		}
	}
	return strings.Join(lines, "\n")
}

// forge is a bench whose configuration is a checkout of the repository joe/procedures.
type forge struct {
	*bench
	remote  string // its address
	work    string // another checkout, where changes are made
	ahead   string // the commit that the remote repository has and the configuration lacks; "" if there is none
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
	return newForgeAhead(t, nil)
}

// newForgeAhead is a forge whose remote repository has, if there are files, a commit with them that the checkout lacks.
func newForgeAhead(t *testing.T, files map[string]string) *forge {
	t.Helper()
	f := emptyForge(t)
	seed := forgeSeeds.of(t, files)
	at := func(name, text string) string {
		if strings.HasSuffix(name, "/.git/config") {
			return strings.ReplaceAll(text, seed.dir, f.dir)
		}
		return text
	}
	for name, text := range seed.files {
		operationtest.WriteFiles(t, f.dir, map[string]string{name: at(name, text)})
	}
	git(t, f.repo(), "update-index", "-q", "--refresh") // as after a clone
	f.ahead = seed.ahead
	return f
}

func emptyForge(t *testing.T) *forge {
	t.Helper()
	f := &forge{bench: newBench(t, nil)}
	f.remote, f.work = filepath.Join(f.dir, "forge", "joe", "procedures.git"), filepath.Join(f.dir, "work")
	operationtest.WriteFiles(t, f.dir, map[string]string{"forge/joe/.keep": "", "agentpack/.keep": ""})
	f.service = NewService(f.settings)
	return f
}

// seedsOfForges are the files of forges as git makes them, each made once: that takes longer than what is tested.
type seedsOfForges struct {
	mu   sync.Mutex
	made map[string]forgeSeed // by what the remote repository has that the checkout lacks
}

type forgeSeed struct {
	dir   string // where it was made
	files map[string]string
	ahead string
}

var forgeSeeds = seedsOfForges{made: map[string]forgeSeed{}}

func (s *seedsOfForges) of(t *testing.T, files map[string]string) forgeSeed {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	key := fmt.Sprint(files)
	if _, is := s.made[key]; !is {
		s.made[key] = makeForge(t, files)
	}
	return s.made[key]
}

func makeForge(t *testing.T, files map[string]string) forgeSeed {
	t.Helper()
	f := emptyForge(t)
	git(t, f.dir, "init", "-q", "--bare", "-b", "main", f.remote)
	git(t, f.dir, "clone", "-q", f.remote, f.work)
	f.commit("main", map[string]string{configName: proceduresConfig,
		"modules/fix.md": "---\ndescription: Fix\n---\nFix it.\n"})
	git(t, f.dir, "clone", "-q", f.remote, f.repo())
	seed := forgeSeed{dir: f.dir}
	if len(files) > 0 {
		seed.ahead = f.commit("main", files)
	}
	seed.files = f.tree()
	return seed
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
	t.Parallel()
	f := newForge(t)
	apply(t, f.service, fileset.Approval{})
	operationtest.WriteFiles(t, f.dir, map[string]string{"project/AGENTS.md": "a person's\n"})
	head := f.commit("proposal", map[string]string{
		"modules/fix.md": "---\ndescription: Fix\n---\nFix it well.\n", "modules/rules/AGENTS.md": "# Rules\n",
		configName: proceduresConfig +
			"  - {id: rules, type: instructions, tags: [base], source: {local_path: {path: modules/rules}}}\n",
	})
	before := f.tree("project")
	p, err := f.preview(head)
	if err != nil || !p.Concerned || p.Plan.Summary() != (fileset.Summary{Update: 2}) || p.Adopts != 1 ||
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
	must.Do(t, os.Remove(filepath.Join(f.dir, "project", ".claude", "commands", "fix.md")))
	same, err := f.preview(git(t, f.work, "rev-parse", "origin/main"))
	if err != nil || len(same.Plan.Changes) != 1 || len(same.Pending) != 1 {
		t.Errorf("what is missing already: %+v, %v", same, err)
	}
}

func TestAPreviewIsAboutTheRepositoriesThatAreDeployed(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
	f := newForge(t)
	module, main := f.repository("forge/ann/skills", map[string]string{"fix.md": "---\ndescription: d\n---\none\n"})
	repo := filepath.Join(f.dir, "agentpack", "repo")
	url := "file://" + filepath.ToSlash(module)
	operationtest.WriteFiles(t, repo,
		map[string]string{configName: "version: 1\nprofiles: {default: {include_tags: [base]}}\ntargets: {claude_code: {}}\n" +
			"modules: [{id: far, type: command, tags: [base], source: {git: {url: '" + url + "', subdir: fix.md}}}]\n"})
	apply(t, f.service, fileset.Approval{})
	git(t, module, "checkout", "-q", "-b", "proposal")
	operationtest.WriteFiles(t, module, map[string]string{"fix.md": "---\ndescription: d\n---\ntwo\n"})
	git(t, module, "commit", "-q", "-am", "x")
	head := git(t, module, "rev-parse", "HEAD")
	git(t, module, "checkout", "-q", "main")
	p, err := f.service.Preview(t.Context(), Candidate{"gitea", "ann", "skills", head})
	if err != nil || !p.Concerned || p.Plan.Summary() != (fileset.Summary{Update: 1}) {
		t.Errorf("%+v, %v", p, err)
	}
	operationtest.WriteFiles(t, repo,
		map[string]string{lockName: `{"version":1,"modules":[{"id":"far","type":"command","resolved_source":{"git":{"url":"` +
			url + `","commit":"` + main + `","subdir":"fix.md"}},"resolved_version":"` + main + `"}]}`})
	p, err = f.service.Preview(t.Context(), Candidate{"gitea", "ann", "skills", head})
	if err != nil || len(p.Plan.Changes) != 0 || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "is pinned") {
		t.Errorf("a locked module: %+v, %v", p, err)
	}
}

func TestAPreviewRefusesWhatIsNotKnown(t *testing.T) {
	t.Parallel()
	f := newForge(t)
	secret, _ := f.repository("secret", map[string]string{"fix.md": "---\ndescription: d\n---\nsecret\n"})
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

func TestWhereIsSaysWhatTheTargetsHaveOfAProposal(t *testing.T) {
	t.Parallel()
	b, _ := proposing(t, layered())
	proposed := map[string]string{
		"modules/look/SKILL.md": fileset.Hash([]byte("---\nname: look\ndescription: Look well\n---\n")),
		"modules/b/AGENTS.md":   fileset.Hash([]byte("# More\nand more\n")),
		"README.md":             fileset.Hash([]byte("x")),
	}
	where := func(owner string) (out []string) {
		t.Helper()
		list, err := NewService(b.settings).WhereIs(t.Context(), "gitea", owner, "procedures", proposed)
		must.Do(t, err)
		for _, w := range list {
			out = append(out, fmt.Sprintf("%s %s %s: %s", w.Target, w.File, w.Path[len(b.dir):], w.Has))
		}
		return out
	}
	b.change("project/.claude/skills/look/SKILL.md", "---\nname: look\ndescription: Look well\n---\n")
	b.change("project/.codex/skills/look/SKILL.md", "mine\n")
	b.change("user/.codex/AGENTS.md", "")
	want := []string{
		"claude_code modules/look/SKILL.md /project/.claude/skills/look/SKILL.md: as proposed",
		"codex modules/look/SKILL.md /project/.codex/skills/look/SKILL.md: changed in place",
		"codex modules/b/AGENTS.md /project/AGENTS.md: as proposed",
		"codex modules/b/AGENTS.md /user/.codex/AGENTS.md: not there",
		"codex modules/look/SKILL.md /user/.codex/skills/look/SKILL.md: another version",
		"cursor modules/b/AGENTS.md /project/.cursor/rules/" + fsKey("instructions:b") + ".mdc: as proposed",
		"vscode modules/b/AGENTS.md /project/.github/copilot-instructions.md: as proposed",
	}
	operationtest.Same(t, "where it is", want, where("joe"))
	if got := where("ann"); len(got) != 0 {
		t.Errorf("another repository: %v", got)
	}
}
