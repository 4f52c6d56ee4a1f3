//go:build unix

package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// place makes a folder with a file in it, whose parents no other user may write; the parents of t.TempDir are in /tmp,
// which is sticky.
func place(t *testing.T) (folder, file string) {
	t.Helper()
	dir := t.TempDir()
	chmod(t, filepath.Dir(dir), 0o755) // as folders of services are
	chmod(t, dir, 0o755)
	folder = filepath.Join(dir, "state")
	file = filepath.Join(folder, "mark.key")
	must.Do(t, os.Mkdir(folder, 0o700))
	must.Do(t, os.WriteFile(file, []byte("x"), 0o600))
	return folder, file
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	must.Do(t, os.Chmod(path, mode))
}

func TestWhatAnotherUserCouldChange(t *testing.T) {
	const stranger = 54321 // owns nothing here
	member := files.ModeUser{Known: true, UID: stranger, Groups: []int{os.Getgid()}}
	outsider := files.ModeUser{Known: true, UID: stranger, Groups: []int{stranger}}
	owner := files.ModeUser{Known: true, UID: os.Getuid(), Groups: []int{stranger}}
	for name, test := range map[string]struct {
		user         files.ModeUser
		folder, file os.FileMode
		secret       bool
		at, says     string // the name of what is wrong, and why; "" for nothing
	}{
		"ours alone": {outsider, 0o700, 0o600, true, "", ""},
		"everybody may read what is not a secret": {outsider, 0o755, 0o644, false, "", ""},
		"everybody may read a secret":             {outsider, 0o755, 0o644, true, "mark.key", "can be read by everybody"},
		"the group may read a secret":             {member, 0o755, 0o640, true, "mark.key", "can be read by group"},
		"another group may read a secret":         {outsider, 0o755, 0o640, true, "", ""},
		"everybody may write the file": {outsider, 0o755, 0o646, false, "mark.key",
			"can be written by everybody"},
		"the group may write the file":               {member, 0o755, 0o664, false, "mark.key", "can be written by group"},
		"another group may write the file":           {outsider, 0o755, 0o664, false, "", ""},
		"everybody may write the folder":             {outsider, 0o757, 0o600, false, "state", "chmod o-w"},
		"the group may write the folder":             {member, 0o775, 0o600, false, "state", "chmod g-w"},
		"everybody may write a sticky folder":        {outsider, 0o777 | os.ModeSticky, 0o600, false, "", ""},
		"the user owns it":                           {owner, 0o700, 0o400, false, "", "belongs to user"},
		"the group may write it in a folder of ours": {member, 0o700, 0o664, false, "", ""},
		"everybody may, in a folder of ours":         {outsider, 0o700, 0o666, true, "", ""},
		"no user is known, in a folder of ours":      {files.ModeUser{}, 0o700, 0o666, true, "", ""},
		"no user is known, a umask of 002":           {files.ModeUser{}, 0o775, 0o664, false, "", ""},
		"no user is known, everybody may write": {files.ModeUser{}, 0o777, 0o600, false, "state",
			"can be written by everybody"},
		"no user is known, everybody may read it": {files.ModeUser{}, 0o755, 0o644, true, "mark.key",
			"can be read by everybody"},
	} {
		t.Run(name, func(t *testing.T) {
			folder, file := place(t)
			chmod(t, file, test.file)
			chmod(t, folder, test.folder)
			got := files.FindModeProblems(test.user, []files.ModeSubject{{What: "the key", Path: file, Secret: test.secret}})
			if test.says == "" {
				if len(got) != 0 {
					t.Errorf("got %v", got)
				}
				return
			}
			if len(got) != 1 || !strings.Contains(got[0].String(), test.says) || test.at != "" &&
				filepath.Base(got[0].Path) != test.at ||
				!strings.HasPrefix(got[0].String(), "the key: ") {
				t.Errorf("got %v, want %s: %s", got, test.at, test.says)
			}
		})
	}
}

func TestWhatIsInAFolderAndBehindALink(t *testing.T) {
	anybody := files.ModeUser{Known: true, UID: 54321}
	folder, file := place(t)
	chmod(t, folder, 0o755)
	chmod(t, file, 0o666)
	if got := files.FindModeProblems(anybody, []files.ModeSubject{{What: "prompts", Path: folder,
		Tree: true}}); len(got) != 1 ||
		got[0].Path != file {
		t.Errorf("in the folder: %v", got)
	}
	if got := files.FindModeProblems(anybody, []files.ModeSubject{{What: "prompts", Path: folder}}); len(got) != 0 {
		t.Errorf("the folder alone: %v", got)
	}
	link := filepath.Join(t.TempDir(), "policy.yaml")
	must.Do(t, os.Symlink(file, link))
	if got := files.FindModeProblems(anybody, []files.ModeSubject{{What: "the policy", Path: link}}); len(got) != 1 ||
		got[0].Path != file {
		t.Errorf("behind a link: %v", got)
	}
}

func TestWhatDoesNotExistIsAsSafeAsItsFolder(t *testing.T) {
	anybody := files.ModeUser{Known: true, UID: 54321}
	folder, _ := place(t)
	missing := []files.ModeSubject{{What: "the policy", Path: filepath.Join(folder, "policy.yaml")}, {What: "nothing"}}
	if got := files.FindModeProblems(anybody, missing); len(got) != 0 {
		t.Errorf("got %v", got)
	}
	chmod(t, folder, 0o777)
	if got := files.FindModeProblems(anybody, missing); len(got) != 1 || got[0].Path != folder {
		t.Errorf("got %v", got)
	}
}
