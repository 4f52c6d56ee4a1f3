//go:build linux

package crash

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// rivals is how many processes revise one pull request at once.
const rivals = 8

func TestOfManyProcessesThatMakeTheSameRevisionOneDoes(t *testing.T) {
	w := newReviewed(t)
	r := newRevision("Watch inodes, and how", "# Inodes\n\ndf -i\n")
	var children []*child
	for range rivals {
		children = append(children, w.propose(t, r))
	}
	revised := 0
	for i, a := range waitForAll(t, children) {
		if a.revised() {
			revised++
		}
		if a.Number != 1 || a.Error.Code != "" || !a.Revised {
			t.Errorf("want #1: %+v\n%s", a, &children[i].err)
		}
	}
	if revised != 1 {
		t.Errorf("%d say that they made the revision", revised)
	}
	w.assertRevised(t, r)
	w.assertOutcomes(t, 1, 0)
	w.assertWhole(t)
}

// One review is answered by one revision, whoever was the first.
func TestOfManyProcessesThatMakeDifferentRevisionsOneDoes(t *testing.T) {
	w := newReviewed(t)
	var all []request
	var children []*child
	for i := range rivals {
		r := newRevision(fmt.Sprint("Watch inodes, way ", i), fmt.Sprintf("# Inodes, way %d\n", i))
		all, children = append(all, r), append(children, w.propose(t, r))
	}
	var winners []request
	for i, a := range waitForAll(t, children) {
		switch {
		case a.revised() && a.Number == 1:
			winners = append(winners, all[i])
		case a.Error.Code != "duplicate_pr" && a.Error.Code != "conflict":
			t.Errorf("want #1, revised, or a refusal: %+v\n%s", a, &children[i].err)
		}
	}
	if len(winners) != 1 {
		t.Fatalf("%d made a revision", len(winners))
	}
	w.assertRevised(t, winners[0])
	w.assertOutcomes(t, 1, 0)
	w.assertWhole(t)
}

// Under a policy that lets revisions come without a review, many processes add a file each, until a limit is reached:
// every commit that was answered is there, one after the other, and there is none beyond the limit.
func TestManyProcessesThatReviseAtOncePassNoLimitAndLoseNoCommit(t *testing.T) {
	for code, c := range map[string]struct {
		rules     string
		revisions int
	}{
		// a second one would be within the limit of files
		"limit_reached": {"revise: always\nmax_revisions: 1\n", 1},
		"tier_denied":   {"revise: always\ntiers: {2: {max_files: 3}}\n", 2}, // the first one has one file
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w := newReviewed(t)
			if err := os.WriteFile(w.at("policy.yaml"), []byte(policyText+c.rules), 0o600); err != nil {
				t.Fatal(err)
			}
			w.assertChain(t, w.reviseUntil(t, code), c.revisions)
			w.assertWhole(t)
		})
	}
}

// reviseUntil lets rivals revise at once, again and again until all of them are refused with the code, and returns the
// revisions that were made.
func (w *reviewed) reviseUntil(t *testing.T, code string) (made []request) {
	t.Helper()
	const most = 10
	for round := range most {
		var all []request
		var children []*child
		for i := range rivals {
			r := newCheck(fmt.Sprintf("Watch inodes %d of %d", i, round), fmt.Sprintf("checks/own-%d-%d.md", round, i),
				fmt.Sprintf("# Own %d\n", i))
			r.Revises = 1
			all, children = append(all, r), append(children, w.propose(t, r))
		}
		refused := 0
		for i, a := range waitForAll(t, children) {
			switch {
			case a.revised():
				made = append(made, all[i])
			case a.Error.Code == code:
				refused++
			case a.Error.Code != "conflict":
				t.Errorf("want #1, revised, or a refusal: %+v\n%s", a, &children[i].err)
			}
		}
		if refused == rivals {
			return made
		}
	}
	t.Fatalf("%d revisions after %d rounds, and not all of %d were refused with %s", len(made), most, rivals, code)
	return nil
}

// assertChain holds that the branch has as many revisions, one after the other, that they are those which were made,
// and that they are recorded and answered.
func (w *reviewed) assertChain(t *testing.T, made []request, revisions int) {
	t.Helper()
	w.assertNothingReserved(t)
	commits, recorded := w.commits(t), w.revisions(t)
	slices.Reverse(recorded)
	if len(made) != revisions || len(commits) != revisions+1 || commits[revisions] != w.head ||
		!slices.Equal(recorded, commits[:revisions]) {
		t.Errorf("%d revisions were answered; commits %v after %s, recorded %v", len(made), commits, w.head, recorded)
	}
	if answers := w.answers(t); len(answers) != revisions {
		t.Errorf("the answers are %q", answers)
	}
	for _, r := range made {
		if got := w.git(t, "", "show", w.branch+":"+r.Files[0].Path); got != r.Files[0].Content {
			t.Errorf("%s holds %q", r.Files[0].Path, got)
		}
	}
	all := w.pulls(t, "")
	last := strings.TrimSpace(w.git(t, "", "log", "-1", "--format=%s", w.branch))
	if len(all) != 1 || all[0].Title != last || !strings.Contains(all[0].Body, fmt.Sprintf("Revision %d of", revisions)) {
		t.Errorf("the last commit is %q; the pull requests are %+v", last, all)
	}
	w.assertOutcomes(t, revisions, 0)
}
