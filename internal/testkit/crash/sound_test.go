//go:build linux

package crash

import (
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// assertSettled checks the invariants when no process works and everything that was left has been settled: nothing is
// reserved, every open pull request has its branch, and there is no other branch.
func (w *world) assertSettled(t *testing.T) {
	t.Helper()
	w.assertNothingReserved(t)
	branches := w.branches(t)
	for _, pr := range w.pulls(t, gitprovider.StateOpen) {
		if tip := branches[pr.Branch]; tip != pr.HeadCommit {
			t.Errorf("#%d is open with head %s, but its branch %s is at %q", pr.Number, pr.HeadCommit, pr.Branch, tip)
		}
		delete(branches, pr.Branch)
	}
	if len(branches) > 0 {
		t.Errorf("branches without an open pull request: %v", branches)
	}
}

// assertNothingReserved holds that no proposal waits to be settled.
func (w *world) assertNothingReserved(t *testing.T) {
	t.Helper()
	left, err := w.store(t).History.Unfinished(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range left {
		t.Errorf("the proposal %s on %s is still %s", p.ID, p.Branch, p.State)
	}
}

// assertOne holds that exactly one open pull request changes the path, that it is the one with the number, and that it
// is whole: one commit on top of main that changes exactly its files, to exactly the contents of the request, with the
// request's title and the labels.
func (w *world) assertOne(t *testing.T, number int, r request) gitprovider.PullRequest {
	t.Helper()
	var found []gitprovider.PullRequest
	for _, pr := range w.pulls(t, gitprovider.StateOpen) {
		if slices.Contains(pr.Paths, r.Files[0].Path) {
			found = append(found, pr)
		}
	}
	if len(found) != 1 || found[0].Number != number {
		t.Fatalf("open pull requests on %s: %v, want only #%d", r.Files[0].Path, found, number)
	}
	pr := found[0]
	if pr.Title != r.Title || !slices.Contains(pr.Labels, gitprovider.LabelOurs) || !strings.HasPrefix(pr.Body, r.Body) {
		t.Errorf("#%d is not what was asked for: title %q, labels %v, body %q", number, pr.Title, pr.Labels, pr.Body)
	}
	w.assertCommit(t, pr, r)
	return pr
}

// assertCommit holds that the branch of a pull request has one commit of its own, which adds exactly the files of the
// request, with exactly their contents.
func (w *world) assertCommit(t *testing.T, pr gitprovider.PullRequest, r request) {
	t.Helper()
	want := []string{pr.HeadCommit, ""}
	for _, f := range r.Files {
		blob := gitprovider.BlobID([]byte(f.Content), pr.HeadCommit)
		want = append(want, ":000000 100644 "+strings.Repeat("0", len(blob))+" "+blob+" A\t"+f.Path)
	}
	slices.Sort(want[2:])
	log := w.git(t, "", "log", "--format=%H", "--raw", "--no-abbrev", "--no-renames", "main.."+pr.Branch)
	got := strings.Split(strings.TrimSuffix(log, "\n"), "\n")
	if len(got) > 2 {
		slices.Sort(got[2:])
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s holds\n%s\nwant\n%s", pr.Branch, log, strings.Join(want, "\n"))
	}
}

// assertWhole is the thorough look at the end: the audit verifies and has one row for the opening of each pull request,
// git finds the repository sound, and no lock is left in it.
func (w *world) assertWhole(t *testing.T) {
	t.Helper()
	w.run(t, "audit", "verify")
	openings := map[int]int{}
	for _, a := range w.attempts(t) {
		if a.Outcome == record.OutcomeOpened {
			openings[a.PRNumber]++
		}
	}
	all := w.pulls(t, "")
	for _, pr := range all {
		if openings[pr.Number] != 1 {
			t.Errorf("#%d was opened once, and has %d rows of the audit that say so", pr.Number, openings[pr.Number])
		}
	}
	if len(openings) != len(all) {
		t.Errorf("the audit speaks of %d pull requests, there are %d", len(openings), len(all))
	}
	w.git(t, "", "fsck", "--full", "--strict", "--no-dangling", "--no-progress")
	if left := w.lockFiles(t); len(left) > 0 {
		t.Errorf("locks of git were left: %v", left)
	}
}
