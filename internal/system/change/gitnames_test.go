package change

import (
	"testing"
)

func TestNoOwnerWantsAFileThatGitTakesForItsOwn(t *testing.T) {
	for _, rel := range []string{".git/config", ".GIT/config", "a/GIT~1/config", "a/.g\u200dit", "a\u202eb"} {
		d := NewDesired("x", "repo", t.TempDir(), Codex)
		if err := d.Add(Codex, d.Project, rel, TreeFile{Content: Bytes(nil)}, "m"); codeOf(err) != ConfigInvalid {
			t.Errorf("%+q: %v", rel, err)
		}
	}
}
