package agentdocs

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textedit"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/procedures/scripts"
)

const scriptsSkillFile = ".claude/skills/run-scripts/SKILL.md"

const skillFile = ".claude/skills/propose-change/SKILL.md"

func TestSkillHasTheFrontmatterThatClaudeCodeReads(t *testing.T) {
	t.Parallel()
	for _, file := range []string{skillFile, scriptsSkillFile} {
		text, opened := strings.CutPrefix(read(t, file), "---\n")
		front, _, closed := strings.Cut(text, "\n---\n")
		if !opened || !closed {
			t.Fatalf("%s: no frontmatter between two lines of ---", file)
		}
		var meta struct {
			Name        string `yaml:"name"`
			Description string `yaml:"description"`
		}
		if err := strictYAML(front, &meta); err != nil {
			t.Fatal(err)
		}
		if meta.Name != path.Base(path.Dir(file)) {
			t.Errorf("the name is %q, want the folder's", meta.Name)
		}
		// Lengths: agentskills.io/specification.
		if meta.Description == "" || len(meta.Description) > 1024 {
			t.Errorf("%s: the description has %d bytes, want 1 to 1024", file, len(meta.Description))
		}
	}
}

// The skill of scripts shows an answer as they give it, with every field and no other.
func TestSkillShowsWhatAScriptAnswers(t *testing.T) {
	t.Parallel()
	blocks := fenced(read(t, scriptsSkillFile), "json")
	var answer scripts.Result
	if len(blocks) != 1 || json.Unmarshal([]byte(blocks[0]), &answer) != nil {
		t.Fatalf("the skill shows %d answers", len(blocks))
	}
	again, err := json.Marshal(answer)
	if err != nil || string(again) != strings.NewReplacer("\": ", "\":", ", \"",
		",\"").Replace(strings.TrimSpace(blocks[0])) {
		t.Errorf("shown is %s, an answer is %s", blocks[0], again)
	}
}

// example is the union of what the skill shows: calls, answers and refusals.
type example struct {
	Owner      string                 `json:"repo_owner"`
	Name       string                 `json:"repo_name"`
	Title      string                 `json:"title"`
	Body       string                 `json:"body"`
	ChangeType gitprovider.ChangeType `json:"change_type"`
	Files      []json.RawMessage      `json:"files"`
	Branch     string                 `json:"branch"`
	Lines      []struct {
		Path           string
		Added, Removed int
	} `json:"lines"`
	Error *fault.Wire `json:"error"`
}

// skillExamples returns the skill's JSON blocks: the one create_pr call, its answer, the refusals, and all calls.
func skillExamples(t *testing.T) (create, opened example, refusals []fault.Wire, calls []example) {
	t.Helper()
	for _, block := range fenced(read(t, skillFile), "json") {
		var e example
		if err := json.Unmarshal([]byte(block), &e); err != nil {
			t.Fatalf("%v in the example\n%s", err, block)
		}
		if e.Owner != "" {
			calls = append(calls, e)
		}
		switch {
		case e.Error != nil:
			refusals = append(refusals, *e.Error)
		case e.Owner != "" && e.Title != "":
			create = e
		case e.Branch != "":
			opened = e
		}
	}
	if create.Title == "" || opened.Branch == "" || len(refusals) == 0 {
		t.Fatal("the skill must show a create_pr call, its answer and a refusal")
	}
	return create, opened, refusals, calls
}

func TestSkillsExampleWouldPassTheGates(t *testing.T) {
	t.Parallel()
	create, opened, _, calls := skillExamples(t)
	for _, call := range calls {
		if _, problems := gitprovider.NewRepoRef(call.Owner, call.Name, ""); problems != nil {
			t.Errorf("the repository of an example: %v", problems)
		}
	}
	files := make([]gitprovider.FileChange, len(create.Files))
	for i, raw := range create.Files {
		if err := json.Unmarshal(raw, &files[i]); err != nil {
			t.Fatal(err)
		}
		files[i].Content = editedExample(t, files[i].Path, raw)
		if counts := textedit.Compare(read(t, files[i].Path),
			files[i].Content); files[i].Action != gitprovider.ActionUpdate || len(opened.Lines) != 1 ||
			opened.Lines[0].Path != files[i].Path || opened.Lines[0].Added != counts.Added ||
			opened.Lines[0].Removed != counts.Removed {
			t.Errorf("file %d of the example: %+v, and the answer says %+v", i, counts, opened.Lines)
		}
	}
	rules := gitprovider.Rules{
		Tier: gitprovider.TierInvestigate, Limits: gitprovider.DefaultTierLimits(), Scope: gitprovider.DefaultScope(),
	}
	if _, violations := gitprovider.NewChangeSet(rules, files); violations != nil {
		t.Errorf("the example would be refused: %+v", violations)
	}
	if len([]rune(create.Title)) > 72 || !create.ChangeType.Valid() {
		t.Errorf("title %q or change type %q would be refused", create.Title, create.ChangeType)
	}
	if branch, err := gitprovider.BranchName(create.ChangeType, create.Title); err != nil || branch != opened.Branch {
		t.Errorf("the answer shows the branch %s, it would be %s (%v)", opened.Branch, branch, err)
	}
	if got := headings(create.Body, "## "); "## "+strings.Join(got, "\n## ") != strings.Join(bodySections(), "\n") {
		t.Errorf("the example's body has the sections %q", got)
	}
}

// editedExample makes the edits of an example on the file that it names, which is one of this repository.
func editedExample(t *testing.T, path string, raw []byte) string {
	t.Helper()
	var file struct{ Edits []textedit.Edit }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	edited, err := textedit.Apply(read(t, path), file.Edits)
	if err != nil || len(file.Edits) == 0 {
		t.Errorf("%d edits of %s: %v", len(file.Edits), path, err)
	}
	return edited
}

func TestSkillsRefusalsAreLikeTheRealOnes(t *testing.T) {
	t.Parallel()
	_, _, refusals, _ := skillExamples(t)
	for _, refusal := range refusals {
		if !refusal.Code.Known() || refusal.Retryable != refusal.Code.Retryable() || refusal.RequestID == "" {
			t.Errorf("%s: unknown, wrongly retryable, or without a request id", refusal.Code)
		}
		for _, v := range refusal.Violations {
			if v.Code != fault.ScopeDenied {
				continue
			}
			verdict := gitprovider.DefaultScope().Check(v.Path)
			if verdict.Allowed || verdict.Rule != v.Rule || verdict.Reason.Message != v.Message {
				t.Errorf("%s: the example says %q by %q, the scope %+v", v.Path, v.Message, v.Rule, verdict.Reason)
			}
		}
	}
}

// strictYAML decodes one document and refuses keys that out has no field for.
func strictYAML(text string, out any) error {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	decoder.KnownFields(true)
	return decoder.Decode(out)
}
