//go:build linux

package crash

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// reviewed is a world in which #1 is open and a person has asked for changes.
type reviewed struct {
	*world
	branch, head string
}

func newReviewed(t *testing.T) *reviewed {
	t.Helper()
	w := newWorld(t)
	first := newCheck("Watch inodes", "checks/inodes.md", "# Inodes\n")
	if a := w.asked(t, first); !a.opened() {
		t.Fatalf("not opened: %+v", a)
	}
	pr := w.assertOne(t, 1, first)
	w.run(t, "review", "request-changes", "1", "--repo", repoKey, "--comment", "Say how.", "--as", "ann")
	return &reviewed{w, pr.Branch, pr.HeadCommit}
}

// newRevision is a revision of #1.
func newRevision(title, content string) request {
	r := newCheck(title, "checks/inodes.md", content)
	r.Body, r.Revises, r.Files[0].Action = "As ann asked: "+title, 1, "update"
	return r
}

// commits lists what is on the branch beside main, newest first.
func (w *reviewed) commits(t *testing.T) []string {
	t.Helper()
	return strings.Fields(w.git(t, "", "log", "--format=%H", "main.."+w.branch))
}

// assertRevised holds that #1 is the only pull request, that its branch has exactly one commit after the former head,
// with the content of the revision, and that there are its title, its body and one answer.
func (w *reviewed) assertRevised(t *testing.T, r request) {
	t.Helper()
	w.assertNothingReserved(t)
	all, branches, commits := w.pulls(t, ""), w.branches(t), w.commits(t)
	if len(all) != 1 || len(branches) != 1 || len(commits) != 2 || commits[1] != w.head ||
		commits[0] != branches[w.branch] {
		t.Fatalf("pull requests %v, branches %v, commits %v after %s", all, branches, commits, w.head)
	}
	if got := w.git(t, "", "show", w.branch+":"+r.Files[0].Path); got != r.Files[0].Content {
		t.Errorf("the branch holds %q", got)
	}
	pr := all[0]
	if pr.Title != r.Title || !strings.HasPrefix(pr.Body, r.Body) || !strings.Contains(pr.Body, "Revision 1 of") ||
		!slices.Contains(pr.Labels, gitprovider.LabelOurs) {
		t.Errorf("#1 has the title %q, the labels %v and the body %q", pr.Title, pr.Labels, pr.Body)
	}
	if answers := w.answers(t); len(answers) != 1 ||
		!strings.HasPrefix(answers[0], gitprovider.AnswerOpening+commits[0][:7]) {
		t.Errorf("the answers are %q", answers)
	}
	if made := w.revisions(t); !slices.Equal(made, commits[:1]) {
		t.Errorf("the records have the revisions %v, the branch %v", made, commits[:1])
	}
}

// answers lists our answers to reviews.
func (w *reviewed) answers(t *testing.T) (out []string) {
	t.Helper()
	_, reviews, err := w.store(t).LocalPulls.PR(t.Context(), repoKey, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range reviews {
		if strings.HasPrefix(r.Body, gitprovider.AnswerOpening) {
			out = append(out, r.Body)
		}
	}
	return out
}

// revisions lists the commits of the revisions that are recorded as made.
func (w *reviewed) revisions(t *testing.T) (out []string) {
	t.Helper()
	made, err := w.store(t).History.MadeOf(t.Context(), "local", repoOwner, repoName, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range made {
		if p.Revises > 0 {
			out = append(out, p.Commit)
		}
	}
	return out
}

// assertOutcomes holds how often the audit says that a revision was made, by calls that were answered and by
// settlements.
func (w *reviewed) assertOutcomes(t *testing.T, revised, failed int) {
	t.Helper()
	tally := map[record.Outcome]int{}
	for _, a := range w.attempts(t) {
		tally[a.Outcome]++
	}
	if tally[record.OutcomeRevised] != revised || tally[record.OutcomeFailed] != failed {
		t.Errorf("the audit has the outcomes %v, want %d revised and %d failed", tally, revised, failed)
	}
}

// revisionStep is a step of a revision, and what a process that is killed there leaves.
type revisionStep struct {
	step   string
	state  record.ProposalState // of what is left unfinished; "": nothing is
	commit bool
	answer bool
}

func revisionSteps() []revisionStep {
	return []revisionStep{
		{"reserved", record.StateReserved, false, false},
		{"committed", record.StateReserved, true, false},
		{"commit recorded", record.StateCommitted, true, false},
		{"answering", record.StateCommitted, true, false},
		{"answered", record.StateCommitted, true, true},
		{"recorded", "", true, true},
	}
}

// killedRevision is a world in which a process was killed that revised #1.
type killedRevision struct {
	*reviewed
	revisionStep
	request request
}

func TestKillAtEveryStepOfARevision(t *testing.T) {
	for _, step := range revisionSteps() {
		for name, then := range map[string]func(*testing.T, *killedRevision){
			"the same is asked for again": func(t *testing.T, k *killedRevision) { k.sameAgain(t) },
			"pr resume runs": func(t *testing.T, k *killedRevision) {
				k.run(t, "pr", "resume")
				k.assertResumed(t)
				k.sameAgain(t)
			},
			"the same is asked for by several at once": func(t *testing.T, k *killedRevision) { k.sameAtOnce(t) },
			"another revision is asked for":            func(t *testing.T, k *killedRevision) { k.another(t) },
		} {
			t.Run("killed when "+step.step+", then "+name, func(t *testing.T) {
				t.Parallel()
				k := &killedRevision{newReviewed(t), step, newRevision("Watch inodes, and how", "# Inodes\n\ndf -i\n")}
				k.doom(t, doomed{Step: step.step, Request: k.request})
				k.assertLeft(t)
				began := time.Now()
				then(t, k)
				if took := time.Since(began); took > atOnce {
					t.Errorf("the recovery took %v: somebody waited for the dead", took)
				}
				k.assertRevised(t, k.request)
				k.assertWhole(t)
			})
		}
	}
}

// assertLeft holds that the process died where it should.
func (k *killedRevision) assertLeft(t *testing.T) {
	t.Helper()
	left := k.abandoned(t)
	var state record.ProposalState
	if len(left) > 0 {
		state = left[0].State
	}
	commit, answer := len(k.commits(t)) == 2, len(k.answers(t)) == 1
	if len(left) > 1 || state != k.state || commit != k.commit || answer != k.answer {
		t.Fatalf("left: %d proposals %s, commit %t, answer %t; want %+v", len(left), state, commit, answer, k.revisionStep)
	}
}

// assertResumed holds that what was left is finished, or that nothing of it is there.
func (k *killedRevision) assertResumed(t *testing.T) {
	t.Helper()
	if k.commit {
		k.assertRevised(t, k.request)
		return
	}
	k.assertNothingReserved(t)
	if commits, answers := k.commits(t), k.answers(t); !slices.Equal(commits, []string{k.head}) || len(answers) > 0 {
		t.Errorf("the branch has the commits %v, and the answers are %q", commits, answers)
	}
}

func (k *killedRevision) sameAgain(t *testing.T) {
	t.Helper()
	a := k.asked(t, k.request)
	if a.Number != 1 || !a.Revised || a.revised() == k.commit {
		t.Errorf("want #1, revised %t: %+v", !k.commit, a)
	}
	failed := 0
	if !k.commit {
		failed = 1 // the attempt that was killed
	}
	k.assertOutcomes(t, 1, failed)
}

func (k *killedRevision) sameAtOnce(t *testing.T) {
	t.Helper()
	const several = 4
	var children []*child
	for range several {
		children = append(children, k.propose(t, k.request))
	}
	revised := 0
	for i, a := range waitForAll(t, children) {
		if a.revised() {
			revised++
		}
		if a.Number != 1 {
			t.Errorf("want #1: %+v\n%s", a, &children[i].err)
		}
	}
	if want := map[bool]int{false: 1, true: 0}[k.commit]; revised != want {
		t.Errorf("%d of %d made the revision, want %d", revised, several, want)
	}
}

// another asks for another revision: it is made if nothing of the first one is there, and is refused otherwise, since
// the review was answered.
func (k *killedRevision) another(t *testing.T) {
	t.Helper()
	other := newRevision("Watch inodes more closely", "# Inodes, closely\n")
	a := k.asked(t, other)
	if !k.commit {
		if !a.revised() || a.Number != 1 {
			t.Errorf("want #1, revised: %+v", a)
		}
		k.request = other
		return
	}
	if a.Error.Code != "duplicate_pr" && a.Error.Code != "conflict" {
		t.Errorf("want a refusal: %+v", a)
	}
}

// waitForAll waits for servers of propose, and returns their answers.
func waitForAll(t *testing.T, children []*child) (out []answer) {
	t.Helper()
	var wg sync.WaitGroup
	for _, c := range children {
		wg.Go(func() { c.wait(t) })
	}
	wg.Wait()
	for _, c := range children {
		a, _, done := c.said(t)
		if !done {
			t.Errorf("no answer\n%s%s", &c.out, &c.err)
		}
		out = append(out, a)
	}
	return out
}
