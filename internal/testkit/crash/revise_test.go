//go:build linux

package crash

import (
	"fmt"
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
	return reviewedIn(t, worldReviewed(t))
}

// reviewedIn finds the branch and the commit of #1 in a world in which it is the only one.
func reviewedIn(t *testing.T, w *world) *reviewed {
	t.Helper()
	for branch, head := range w.branches(t) {
		return &reviewed{w, branch, head}
	}
	t.Fatal("there is no branch")
	return nil
}

func worldReviewed(t *testing.T) *world {
	t.Helper()
	return worldAfter(t, "changes requested", true, newWorld, func(t *testing.T, w *world) { w.requestChanges(t) })
}

// requestChanges opens #1 and asks for changes.
func (w *world) requestChanges(t *testing.T, more ...string) {
	t.Helper()
	first := newInodes()
	if a := w.asked(t, first); !a.opened() {
		t.Fatalf("not opened: %+v", a)
	}
	w.assertOne(t, 1, first)
	w.run(t, append([]string{"review", "request-changes", "1", "--repo", repoKey, "--comment", "Say how."}, more...)...)
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
	_, reviews := w.first(t)
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
	for i, step := range revisionSteps() {
		for j, then := range []struct {
			name string
			run  func(*testing.T, *killedRevision)
		}{
			{"the same is asked for again", func(t *testing.T, k *killedRevision) { k.sameAgain(t) }},
			{"another revision is asked for", func(t *testing.T, k *killedRevision) { k.another(t) }},
			{"pr resume runs", func(t *testing.T, k *killedRevision) {
				k.run(t, "pr", "resume")
				k.assertResumed(t)
				k.sameAgain(t)
			}},
			{"the same is asked for by several at once", func(t *testing.T, k *killedRevision) { k.sameAtOnce(t) }},
		} {
			if !isTried(i, j) {
				continue
			}
			t.Run("killed when "+step.step+", then "+then.name, func(t *testing.T) {
				t.Parallel()
				k := killedRevisionAt(t, step)
				k.assertLeft(t)
				began := time.Now()
				then.run(t, k)
				if took := time.Since(began); took > atOnce {
					t.Errorf("the recovery took %v: somebody waited for the dead", took)
				}
				k.assertRevised(t, k.request)
				k.assertWhole(t)
			})
		}
	}
}

// killedRevisionAt is a world in which the first process that revises #1 was killed at the step.
func killedRevisionAt(t *testing.T, step revisionStep) *killedRevision {
	t.Helper()
	k := &killedRevision{revisionStep: step, request: newRevision("Watch inodes, and how", "# Inodes\n\ndf -i\n")}
	w := worldAfter(t, "revision killed when "+step.step, sharesKilled, worldReviewed, func(t *testing.T, w *world) {
		w.doom(t, doomed{Step: step.step, Request: k.request})
	})
	k.reviewed = reviewedIn(t, w)
	made := k.commits(t)
	k.head = made[len(made)-1]
	return k
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
	revised := 0
	for _, a := range k.askedAtOnce(t, k.request, several) {
		if a.revised() {
			revised++
		}
		if a.Number != 1 {
			t.Errorf("want #1: %+v", a)
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

// rivals is the number of processes that revise one pull request at once.
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

// One review is answered by one revision, whichever process was first.
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
			w.setPolicy(t, policyText+c.rules)
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
	all := w.serveMany(t, rivals)
	for round := range most {
		requests, given := make([]request, rivals), make([]answer, rivals)
		var wg sync.WaitGroup
		for i, s := range all {
			r := newCheck(fmt.Sprintf("Watch inodes %d of %d", i, round), fmt.Sprintf("checks/own-%d-%d.md", round, i),
				fmt.Sprintf("# Own %d\n", i))
			r.Revises, requests[i] = 1, r
			wg.Go(func() {
				var err error
				if given[i], err = s.create(r); err != nil {
					t.Errorf("server %d: %v", i, err)
				}
			})
		}
		wg.Wait()
		refused := 0
		for i, a := range given {
			switch {
			case a.revised():
				made = append(made, requests[i])
			case a.Error.Code == code:
				refused++
			case a.Error.Code != "conflict":
				t.Errorf("want #1, revised, or a refusal: %+v", a)
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

// worldQuestioned is a world in which #1 is open and a person has asked about a line.
func worldQuestioned(t *testing.T) *world {
	t.Helper()
	return worldAfter(t, "a question asked", true, newWorld, func(t *testing.T, w *world) {
		w.requestChanges(t, "--line", "checks/inodes.md:1:Why?")
	})
}

// newAnswer answers what was asked about #1.
func newAnswer() request {
	return request{
		Owner: repoOwner, Name: repoName, Title: "x", Body: "x", ChangeType: "check", Revises: 1, Files: []file{},
		Reply: "It counts files.", Replies: []reply{{"1.1", "Because they end."}},
	}
}

// assertAnswered holds that both answers are there, once, that nothing else has changed, and that the records say so
// once.
func (w *reviewed) assertAnswered(t *testing.T) {
	t.Helper()
	w.assertNothingReserved(t)
	_, reviews := w.first(t)
	var all []string
	for _, r := range reviews {
		all = append(all, r.Body)
		for _, c := range r.Comments {
			all = append(all, c.Body)
		}
	}
	text := strings.Join(all, "\n---\n")
	for _, one := range []string{"It counts files.", "Because they end."} {
		if n := strings.Count(text, one); n != 1 {
			t.Errorf("%q is there %d times:\n%s", one, n, text)
		}
	}
	if commits := w.commits(t); len(commits) != 1 || commits[0] != w.head {
		t.Errorf("the branch has the commits %v", commits)
	}
	isRevised := func(a record.RecordedAttempt) bool { return a.Outcome == record.OutcomeRevised }
	if revised := w.count(t, isRevised); revised != 1 {
		t.Errorf("the audit says %d times that it was answered", revised)
	}
}

func TestKillAtEveryStepOfAnAnswer(t *testing.T) {
	for _, step := range []string{"reserved", "answering", "answered", "recorded"} {
		for name, then := range map[string]func(*testing.T, *reviewed, request){
			"the same is asked for again": func(t *testing.T, w *reviewed, r request) {
				if a := w.asked(t, r); a.Number != 1 || !a.Revised {
					t.Errorf("again: %+v", a)
				}
			},
			"pr resume runs": func(t *testing.T, w *reviewed, r request) {
				w.run(t, "pr", "resume")
				if a := w.asked(t, r); a.Number != 1 || a.Replies != 2 {
					t.Errorf("again: %+v", a)
				}
			},
			"the same is asked for by several at once": func(t *testing.T, w *reviewed, r request) {
				for _, a := range w.askedAtOnce(t, r, 4) {
					if a.Number != 1 {
						t.Errorf("again: %+v", a)
					}
				}
			},
		} {
			t.Run("killed when "+step+", then "+name, func(t *testing.T) {
				t.Parallel()
				r := newAnswer()
				w := reviewedIn(t, worldAfter(t, "answer killed when "+step, sharesKilled, worldQuestioned,
					func(t *testing.T, w *world) { w.doom(t, doomed{Step: step, Request: r}) }))
				then(t, w, r)
				w.assertAnswered(t)
				w.assertWhole(t)
			})
		}
	}
}
