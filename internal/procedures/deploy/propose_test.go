package deploy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// proposing is a bench whose configuration is a clone, and which keeps what is proposed.
func proposing(t *testing.T, files map[string]string) (*bench, *[]Proposal) {
	t.Helper()
	b := newBench(t, files)
	var got []Proposal
	b.propose = func(_ context.Context, call operation.Call, p Proposal) (Proposed, []string, error) {
		if call.ID != "" && call.ID != "id-1" {
			t.Errorf("the call has the id %q", call.ID)
		}
		got = append(got, p)
		return Proposed{Repository: p.Home.Owner + "/" + p.Home.Name, Number: 7, Branch: "b", Title: p.Title,
			Files: []string{}}, nil, nil
	}
	b.git("init", "--quiet", "--initial-branch=live")
	b.git("remote", "add", "origin", "https://git.example.org/joe/procedures.git")
	b.git("config", "branch.live.merge", "refs/heads/main")
	b.mustOK(ToolApply, `{"yes":true}`)
	return b, &got
}

func (b *bench) git(args ...string) {
	b.Helper()
	git(b, filepath.Join(b.dir, "agentpack", "repo"), args...)
}

// change writes a file of the project or the user; "" removes it.
func (b *bench) change(name, text string) {
	b.Helper()
	full, err := filepath.Join(b.dir, filepath.FromSlash(name)), error(nil)
	if text == "" {
		err = os.Remove(full)
	} else {
		err = os.WriteFile(full, []byte(text), 0o600)
	}
	must.Do(b, err)
}

// inShort is a proposal's repository and files.
func inShort(p Proposal) (lines []string) {
	lines = append(lines, fmt.Sprintf("%s/%s %s %s %s", p.Home.Owner, p.Home.Name, p.Home.CloneURL, p.Home.Base,
		p.ChangeType))
	for _, f := range p.Files {
		lines = append(lines, fmt.Sprintf("%s %s %q %s", f.Action, f.Path, f.Content, f.BaseSHA))
	}
	return lines
}

const head = "joe/procedures https://git.example.org/joe/procedures main "

func TestDriftIsProposedToWhereItComesFrom(t *testing.T) {
	t.Parallel()
	skill, more := "---\nname: look\ndescription: Look\n---\n", "---\nname: look\ndescription: Look well\n---\n"
	marked := "<!-- agentpack:module=instructions:a -->\n# Rules of this machine\n<!-- /agentpack -->\n\n---\n\n<!-- " +
		"agentpack:module=instructions:b -->\n# More\nand %s\n<!-- /agentpack -->"
	for name, c := range map[string]struct {
		changed   map[string]string
		arguments string
		want      []string
	}{
		"a skill, changed in one target": {
			map[string]string{"project/.claude/skills/look/SKILL.md": more}, `{}`,
			[]string{head + "skill", fmt.Sprintf("update modules/look/SKILL.md %q %s", more, blobName(skill))},
		},
		"a skill, changed alike in two": {
			map[string]string{"project/.claude/skills/look/SKILL.md": more, "project/.codex/skills/look/SKILL.md": more}, `{}`,
			[]string{head + "skill", fmt.Sprintf("update modules/look/SKILL.md %q %s", more, blobName(skill))},
		},
		"the part of a module": {
			map[string]string{"project/AGENTS.md": fmt.Sprintf(marked, "even more")},
			`{"title":"Say more","why":"It was seen."}`,
			[]string{head + "fix", `update modules/b/AGENTS.md "# More\nand even more\n" ` + blobName("# More\nand more\n")},
		},
		"below a header": {
			map[string]string{"project/.cursor/rules/" + fsKey("instructions:b") +
				".mdc": "---\ndescription: \"agentpack: instructions:b\"\nglobs: []\nalwaysApply: true\n---\n\nNew.\n"}, `{}`,
			[]string{head + "fix", `update modules/b/AGENTS.md "New.\n" ` + blobName("# More\nand more\n")},
		},
		"what an overlay gives": {
			map[string]string{"project/.claude/skills/look/here.md": "there\n"}, `{}`,
			[]string{head + "skill", `update overlays/machines/box/` + fsKey("skill:look") + `/here.md "there\n" ` +
				blobName("here\n")},
		},
		"one of several, by name": {
			map[string]string{"project/.claude/skills/look/SKILL.md": more,
				"project/.claude/commands/fix.md": "---\ndescription: Fix\n---\nFix it well.\n"},
			`{"paths":[".claude/commands/fix.md"]}`,
			[]string{head + "fix", `update modules/fix.md "---\ndescription: Fix\n---\nFix it well.\n" ` +
				blobName("---\ndescription: Fix\n---\nFix it.\n")},
		},
		"a new file of a skill, by name": {
			map[string]string{"project/.codex/skills/look/new.md": "new\n"}, `{"paths":[".codex/skills/look/new.md"]}`,
			[]string{head + "skill", `create modules/look/new.md "new\n" `},
		},
		"a file that somebody has removed, by name": {
			map[string]string{"project/.codex/skills/look/plain.md": ""}, `{"paths":[".codex/skills/look/plain.md"]}`,
			[]string{head + "skill", `delete modules/look/plain.md "" ` + blobName("plain\n")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := layered()
			files["agentpack/repo/modules/look/plain.md"] = "plain\n"
			b, got := proposing(t, files)
			for file, text := range c.changed {
				b.change(file, text)
			}
			before := b.tree()
			out := b.mustOK(NamePropose, c.arguments)
			if len(*got) != 1 {
				t.Fatalf("%d proposals", len(*got))
			}
			if diff := cmp.Diff(c.want, inShort((*got)[0])); diff != "" || out["number"] != 7.0 {
				t.Errorf("%v (-want +got):\n%s", out, diff)
			}
			b.unchanged("proposing has changed files", before)
			if len(b.rows) != 1 {
				t.Errorf("%+v: the use case records what it judges, and nobody else", b.rows)
			}
		})
	}
}

func TestAProposalSaysWhatItIsAbout(t *testing.T) {
	t.Parallel()
	b, got := proposing(t, layered())
	b.change("user/.codex/skills/look/SKILL.md", "---\nname: look\ndescription: Look well\n---\n")
	b.mustOK(NamePropose, `{"why":"Seen | today."}`)
	p := (*got)[0]
	if p.Title != "Take over what was changed in skill:look" || !strings.HasPrefix(p.Body, "Seen | today.\n\n") ||
		!strings.Contains(p.Body, "| `modules/look/SKILL.md` | `skill:look` | `codex: ~/.codex/skills/look/SKILL.md` |") ||
		strings.Contains(p.Body, b.dir) {
		t.Errorf("%q\n%s", p.Title, p.Body)
	}
}

func TestWhatCannotBeProposedIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	marked := "<!-- agentpack:module=instructions:a -->\n# Rules of this machine\n<!-- /agentpack -->\n"
	for name, c := range map[string]struct {
		changed   map[string]string
		arguments string
		reason    string
	}{
		"no drift":                  {nil, `{}`, "no_drift"},
		"a file without drift":      {nil, `{"paths":["AGENTS.md"]}`, "no_drift"},
		"only what has to be named": {map[string]string{"project/.claude/commands/fix.md": ""}, `{}`, "no_drift"},
		"a patched file":            {map[string]string{"project/.codex/skills/look/steps.md": "x\n"}, `{}`, "patched"},
		"outside of the parts":      {map[string]string{"project/AGENTS.md": "mine\n"}, `{}`, "outside_of_modules"},
		"a part that is gone":       {map[string]string{"project/AGENTS.md": marked}, `{}`, "outside_of_modules"},
		"two changes of one file": {map[string]string{"project/.claude/skills/look/here.md": "1\n",
			"project/.codex/skills/look/here.md": "2\n"}, `{}`, "two_changes"},
		"a skill that is none any more": {map[string]string{"project/.claude/skills/look/SKILL.md": "x\n"}, `{}`,
			"module_invalid"},
		"a command that would go": {map[string]string{"project/.claude/commands/fix.md": ""},
			`{"paths":[".claude/commands/fix.md"]}`, "module_invalid"},
		"no text": {map[string]string{"project/.claude/skills/look/here.md": "\xff\n"}, `{}`,
			"no_text"},
		"an extra file of nobody's": {map[string]string{"project/.claude/commands/new.md": "x\n"},
			`{"paths":[".claude/commands/new.md"]}`, "no_module"},
		"instructions of several modules": {map[string]string{"project/AGENTS.md": ""}, `{"paths":["AGENTS.md"]}`,
			"several_modules"},
	} {
		t.Run(name, func(t *testing.T) {
			b, got := proposing(t, layered())
			for file, text := range c.changed {
				b.change(file, text)
			}
			out := b.ask(NamePropose, c.arguments)
			if out.OK || out.Errors[0].Code != NothingToPropose || out.Errors[0].Details["reason_code"] != c.reason ||
				len(*got) != 0 {
				t.Errorf("%+v", out.Errors)
			}
			if last := b.rows[len(b.rows)-1]; last.Action != NamePropose || last.Code != fault.NoChange {
				t.Errorf("%+v", last)
			}
		})
	}
}

func TestAProposalIsAboutOneRepository(t *testing.T) {
	t.Parallel()
	files := life()
	b, _ := proposing(t, files)
	b.change("agentpack/repo/"+configName, strings.Replace(files["agentpack/repo/"+configName],
		"source: {local_path: {path: modules/fix.md}}", `source: {git: {url: "`+b.dir+`/far", ref: main, subdir: fix.md}}`,
		1))
	b.afar("Fix it from afar.")
	b.mustOK(ToolApply, `{"yes":true}`)
	b.change("project/.claude/commands/fix.md", "---\ndescription: Fix\n---\nFix it here.\n")
	b.change("project/AGENTS.md", "# Other rules\n")
	out := b.ask(NamePropose, `{}`)
	if out.OK || out.Errors[0].Details["reason_code"] != "several_repositories" ||
		!strings.Contains(out.Errors[0].Message, filepath.Base(b.dir)+
			"/far: claude_code: .claude/commands/fix.md; joe/procedures: codex: AGENTS.md") {
		t.Errorf("%+v", out.Errors)
	}
	b2 := b.mustOK(NamePropose, `{"paths":[".claude/commands/fix.md"]}`)
	if b2["repository"] != filepath.Base(b.dir)+"/far" {
		t.Errorf("%v", b2)
	}
}

func TestTheOperatorsWordNamesTheRepository(t *testing.T) {
	t.Parallel()
	b, got := proposing(t, life())
	b.change("project/AGENTS.md", "# Other rules\n")
	b.git("remote", "remove", "origin")
	if out := b.ask(NamePropose, `{}`); out.OK || out.Errors[0].Code != CheckoutNotReady {
		t.Errorf("no remote: %+v", out.Errors)
	}
	b.settings.Repos = []string{"gitea:ann/rules"}
	b.mustOK(NamePropose, `{}`)
	if home := (*got)[0].Home; home != (Home{Owner: "ann", Name: "rules", Provider: "gitea"}) {
		t.Errorf("%+v", home)
	}
}

func TestTheUseCasesRefusalKeepsItsCode(t *testing.T) {
	t.Parallel()
	b, _ := proposing(t, life())
	b.change("project/AGENTS.md", "# Other rules\n")
	b.propose = func(context.Context, operation.Call, Proposal) (Proposed, []string, error) {
		return Proposed{}, nil,
			fault.Refusal([]fault.Violation{{Code: fault.ScopeDenied, Path: "modules/a/AGENTS.md", Message: "no"}})
	}
	rows := len(b.rows)
	out := b.ask(NamePropose, `{}`)
	if out.OK || out.Errors[0].Code != ProposalRefused ||
		out.Errors[0].Details["reason_code"] != string(fault.ScopeDenied) || out.Errors[0].Details["violations"] == nil {
		t.Errorf("%+v", out.Errors)
	}
	if len(b.rows) != rows {
		t.Errorf("recorded twice: %+v", b.rows[rows:])
	}
}

func TestProposingNeedsItsScope(t *testing.T) {
	t.Parallel()
	b, got := proposing(t, life())
	b.change("project/AGENTS.md", "# Other rules\n")
	o := operation.Named(b.toolset().Operations, NamePropose)
	_, err := o.Handle(t.Context(), operation.Call{Ceiling: operation.UncappedTier, Scopes: access.Scopes{access.Operate},
		Arguments: []byte(`{}`)})
	if fault.CodeOf(err) != fault.Forbidden || len(*got) != 0 {
		t.Errorf("%v", err)
	}
}
