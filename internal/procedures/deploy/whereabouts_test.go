package deploy

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/system/change"
)

func TestWhereIsSaysWhatTheTargetsHaveOfAProposal(t *testing.T) {
	b, _ := proposing(t, layered())
	proposed := map[string]string{
		"modules/look/SKILL.md": change.Hash([]byte("---\nname: look\ndescription: Look well\n---\n")),
		"modules/b/AGENTS.md":   change.Hash([]byte("# More\nand more\n")),
		"README.md":             change.Hash([]byte("x")),
	}
	where := func(owner string) (out []string) {
		t.Helper()
		list, err := NewService(b.settings).WhereIs(t.Context(), "gitea", owner, "procedures", proposed)
		if err != nil {
			t.Fatal(err)
		}
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
	if diff := cmp.Diff(want, where("joe")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := where("ann"); len(got) != 0 {
		t.Errorf("another repository: %v", got)
	}
}
