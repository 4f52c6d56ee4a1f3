package deploy

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/system/change"
)

// What git or a file system takes for .git would be obeyed by the git of whoever works in the target.
func TestAModuleHasNothingThatGitTakesForItsOwnFolder(t *testing.T) {
	for _, name := range []string{".GIT", ".git.", ".git ", "GIT~1", "gi7d29~4", ".g\u200cit", "a\u202eb"} {
		for _, at := range []string{"modules/look/", "modules/look/deep/", "overlays/"} {
			b := newBench(t, life())
			if at == "overlays/" {
				at += fsKey("skill:look") + "/"
			}
			operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/repo/" + at + name + "/config": "[core]\n"})
			s := NewService(b.settings)
			for range 2 { // the second time with what is remembered
				if _, err := s.Plan(t.Context(), Request{}); codeOf(err) != ConfigInvalid ||
					!strings.Contains(err.Error(), "git's own folder") && !strings.Contains(err.Error(), "cannot be seen") {
					t.Errorf("%s%+q: %v", at, name, err)
				}
			}
			if _, _, err := s.Apply(t.Context(), Request{}, change.Approval{}, false); codeOf(err) != ConfigInvalid {
				t.Errorf("%s%+q was deployed: %v", at, name, err)
			}
		}
	}
}

func TestACheckoutsOwnGitFolderIsLeftOut(t *testing.T) {
	b := newBench(t, life())
	operationtest.WriteFiles(t, b.dir, map[string]string{"agentpack/repo/modules/look/.git/config": "[core]\n",
		"agentpack/repo/modules/look/.gitignore": "x\n"})
	b.mustOK(ToolApply, `{"yes":true}`)
	for name := range b.tree("project") {
		if strings.Contains(name, "/.git/") {
			t.Errorf("%s was deployed", name)
		}
	}
}
