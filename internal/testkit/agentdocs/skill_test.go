package agentdocs

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
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
	edited, err := textedit.Apply(read(t, path), file.Edits, nil)
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

const pluginSkillFile = "plugins/claudeops/skills/propose-change/SKILL.md"

// pluginServer is the name that Claude Code gives to the plugin's MCP server, and pluginTools what the names of its
// tools begin with.
const (
	pluginServer = "plugin:claudeops:claudeops"
	pluginTools  = "mcp__plugin_claudeops_claudeops__"
)

// The plugin's skill is that of sessions, but for what somebody has who has the plugin alone: other names, and no
// prompt of a tier.
func TestThePluginsSkillIsThatOfSessionsInItsOwnWords(t *testing.T) {
	t.Parallel()
	ours := strings.NewReplacer(
		"mcp__"+serverName+"__", pluginTools, `"server": "`+serverName+`"`, `"server": "`+pluginServer+`"`,
		"The MCP server `claudeops` has three tools. Your tier's prompt says whether and when you may propose;",
		"The plugin's MCP server has three tools. Its instructions say whether you may propose, and for which files;",
		"What each code asks for is in the table of your tier's prompt. The ones",
		"The text of each says the next step. The codes",
	).Replace(oneLine(read(t, skillFile)))
	text := oneLine(read(t, pluginSkillFile))
	if text != ours {
		t.Error("the plugin's skill is not that of .claude: change both")
	}
	if strings.Contains(text, "tier's prompt") {
		t.Error("the plugin's skill names a tier's prompt, which a person's agent does not have")
	}
	for _, tool := range regexp.MustCompile(`mcp__[A-Za-z0-9_-]+`).FindAllString(text, -1) {
		if short, is := strings.CutPrefix(tool, pluginTools); !is || !slices.Contains(toolNames(), short) {
			t.Errorf("the plugin has no tool %s", tool)
		}
	}
	for _, want := range []string{`"revises"`, `"reply"`, `"replies"`, "claudeops://", "ReadMcpResourceTool",
		pluginServer} {
		if !strings.Contains(text, want) {
			t.Errorf("the plugin's skill does not know %s", want)
		}
	}
}

// commandsOf are the commands that a text tells its reader to run: in fenced blocks of a shell, and in code spans of
// prose. What stands indented is an example of a text that somebody wrote.
func commandsOf(text string) (out []string) {
	for _, language := range []string{"sh", "bash", "console"} {
		for _, block := range fenced(text, language) {
			out = append(out, strings.Split(strings.TrimSpace(block), "\n")...)
		}
	}
	prose := regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(text, "")
	program := regexp.MustCompile(`^[a-z][a-z0-9_.-]* [^:]`) // and not a field, as `dry_run: true` is
	for _, paragraph := range strings.Split(regexp.MustCompile(`(?m)^ {4,}.*$`).ReplaceAllString(prose, ""), "\n\n") {
		for i, span := range strings.Split(paragraph, "`") {
			if i%2 == 1 && program.MatchString(span) {
				out = append(out, strings.Join(strings.Fields(span), " "))
			}
		}
	}
	return out
}

// permitted reports whether a rule such as df * lets a command run.
func permitted(command string) bool {
	return slices.ContainsFunc(reading(), func(rule string) bool {
		begin, open := strings.CutSuffix(rule, " *")
		return command == begin || open && strings.HasPrefix(command, begin+" ")
	})
}

// A session with the permissions that we recommend can do all that prompts and skills tell it to do.
func TestPromptsAndSkillsNeedNoCommandThatIsRefused(t *testing.T) {
	t.Parallel()
	for _, name := range append(prompts(), skillFile, scriptsSkillFile, pluginSkillFile) {
		for _, command := range commandsOf(read(t, name)) {
			if !permitted(command) {
				t.Errorf("%s has its reader run %q, which the permissions of docs/guides/sessions.md refuse", name, command)
			}
		}
	}
	text := "Ask `git rev-parse HEAD`; `dry_run: true`, `df -h /`.\n\n    `dig x`\n\n```sh\nuptime\ncat a b\n```\n"
	if got := commandsOf(text); !slices.Equal(got, []string{"uptime", "cat a b", "git rev-parse HEAD", "df -h /"}) {
		t.Errorf("read are the commands %q", got)
	}
	for command, want := range map[string]bool{"git rev-parse HEAD": false, "df": true, "df -i": true, "dfx -i": false,
		"docker system df": true, "docker system df -v": false} {
		if permitted(command) != want {
			t.Errorf("%s: permitted %t", command, !want)
		}
	}
}
