//go:build e2e && linux

package e2e

import (
	"encoding/json"
	"slices"
	"testing"
)

// proposal is the arguments of create_pr, as a client writes them.
type proposal struct {
	Owner      string       `json:"repo_owner"`
	Name       string       `json:"repo_name"`
	Title      string       `json:"title"`
	Body       string       `json:"body"`
	ChangeType string       `json:"change_type"`
	Files      []fileChange `json:"files"`
	Preview    string       `json:"preview,omitempty"`
}

type fileChange struct {
	Path    string `json:"path"`
	Action  string `json:"action"`
	Content string `json:"content"`
}

// quieterDisk is a proposal that tier 2 may make.
func quieterDisk() proposal {
	return proposal{
		Owner: "demo", Name: "home-cluster", Title: "Warn about disks at 85 %", ChangeType: "check",
		Preview: "full",
		Body:    "Observed: a disk filled overnight.\nWhy: 90 % leaves too little time.",
		Files: []fileChange{
			{"checks/disk.md", "update", "# Disk\n\nWarn at 85 %, alarm at <95 % & rising.\n"},
			{"checks/inodes.md", "create", "# Inodes\n\nWarn at 80 %.\n"},
		},
	}
}

// quieterDiskBranch is the branch of quieterDisk (design §4, Providers).
const quieterDiskBranch = "claude-ops/check/warn-about-disks-at-85"

// outOfScope is a proposal with two files that no tier may touch.
func outOfScope() proposal {
	p := quieterDisk()
	p.Files = append(p.Files,
		fileChange{"CLAUDE.md", "create", "Obey.\n"}, fileChange{"deploy/app.yaml", "create", "a: b\n"})
	return p
}

func (p proposal) paths() []string {
	var out []string
	for _, f := range p.Files {
		out = append(out, f.Path)
	}
	slices.Sort(out)
	return out
}

// ofRepository and ofFirstPR are the arguments of list_prs and get_pr_status.
func ofRepository() map[string]any {
	return map[string]any{"repo_owner": "demo", "repo_name": "home-cluster"}
}

func ofFirstPR() map[string]any {
	args := ofRepository()
	args["pr_number"] = 1
	return args
}

// answer is the structured content of the three tools, and of a refusal.
type answer struct {
	Number  int      `json:"number"`
	URL     string   `json:"url"`
	Branch  string   `json:"branch"`
	Commit  string   `json:"commit"`
	Files   []string `json:"files"`
	Reused  bool     `json:"reused"`
	DryRun  bool     `json:"dry_run"`
	Preview struct {
		Base string `json:"base"`
		Diff string `json:"diff"`
	} `json:"preview"`

	PRs []struct {
		Number int      `json:"number"`
		Title  string   `json:"title"`
		Branch string   `json:"branch"`
		Files  []string `json:"files"`
	} `json:"prs"`

	Title     string `json:"title"`
	State     string `json:"state"`
	Untrusted string `json:"untrusted"`

	Error struct {
		Code       string      `json:"code"`
		Message    string      `json:"message"`
		RequestID  string      `json:"request_id"`
		Violations []violation `json:"violations"`
	} `json:"error"`
}

type violation struct {
	Code       string `json:"code"`
	Path       string `json:"path"`
	Rule       string `json:"rule"`
	Suggestion string `json:"suggestion"`
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("not the JSON that was expected: %v\n%s", err, text)
	}
	return v
}

func encode(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The assertions below hold for an answer whichever client brought it.

func assertOpened(t *testing.T, a answer, p proposal) {
	t.Helper()
	if a.Number != 1 || a.URL == "" || a.Commit == "" || a.Branch != quieterDiskBranch || a.Reused || a.DryRun {
		t.Errorf("not a pull request that was just opened: %+v", a)
	}
	if files := slices.Sorted(slices.Values(a.Files)); !slices.Equal(files, p.paths()) {
		t.Errorf("files of the answer are %v, want %v", files, p.paths())
	}
}

func assertReused(t *testing.T, a answer) {
	t.Helper()
	if a.Number != 1 || !a.Reused || a.Branch != quieterDiskBranch {
		t.Errorf("not the pull request that exists: %+v", a)
	}
}

func assertListed(t *testing.T, a answer, p proposal) {
	t.Helper()
	if len(a.PRs) != 1 || a.PRs[0].Number != 1 || a.PRs[0].Title != p.Title || a.PRs[0].Branch != quieterDiskBranch ||
		!slices.Equal(a.PRs[0].Files, p.paths()) {
		t.Errorf("not the list of the one open pull request: %+v", a.PRs)
	}
	if a.Untrusted == "" {
		t.Error("the list does not mark its titles as untrusted")
	}
}

func assertOpen(t *testing.T, a answer, p proposal) {
	t.Helper()
	if a.Number != 1 || a.State != "open" || a.Title != p.Title || a.Untrusted == "" {
		t.Errorf("not the status of the open pull request: %+v", a)
	}
}

// assertScopeDenied holds that a refusal of outOfScope names both files and no other.
func assertScopeDenied(t *testing.T, a answer) {
	t.Helper()
	if a.Error.Code != "scope_denied" || a.Error.RequestID == "" {
		t.Errorf("not a scope refusal: %+v", a.Error)
	}
	var paths []string
	for _, v := range a.Error.Violations {
		paths = append(paths, v.Path)
	}
	slices.Sort(paths)
	if want := []string{"CLAUDE.md", "deploy/app.yaml"}; !slices.Equal(paths, want) {
		t.Errorf("the refusal names %v, want %v", paths, want)
	}
}
