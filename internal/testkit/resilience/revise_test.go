package resilience

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
)

// revised is a world in which #1 was opened and its owner has asked for changes.
type revised struct {
	*world
	branch, head string
}

func newRevised(t *testing.T, k kind) *revised {
	t.Helper()
	return openedAndReviewed(t, newWorld(t, k))
}

// openedAndReviewed is newRevised in a world that is there.
func openedAndReviewed(t *testing.T, w *world) *revised {
	t.Helper()
	first, err := w.create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := &revised{world: w, branch: first.Branch, head: first.Commit}
	w.pass(time.Minute)
	w.askForChanges(first.Number)
	w.pass(time.Minute)
	if s, is := w.forge.(*fakegitea.Server); is {
		s.Configure(w.repo, func(set *fakegitea.Settings) { set.Delays.LateHead = 2 }) // as its lists do after a push
	}
	w.forge.Faults().Forget()
	return r
}

// askForChanges has somebody who may write ask for changes of the pull request.
func (w *world) askForChanges(number int) {
	w.t.Helper()
	if real, is := w.forge.(outside); is {
		real.AskForChanges(w.repo, number)
		return
	}
	w.forge.Host().World(w.t, w.repo, nil).Review(number, w.repo.Owner, gitprovider.ReviewChangesRequested, "Say how.")
}

// seen returns people's view of #1.
func (r *revised) seen() (out seen) {
	r.t.Helper()
	if real, is := r.forge.(outside); is {
		return real.Seen(r.repo, 1, r.branch)
	}
	r.forge.Host().Locked(func() {
		repo := r.forge.Host().Repo(r.repo)
		pr, tip := repo.PR(1), repo.Branches[r.branch]
		out = seen{tip: tip, title: pr.Title, body: pr.Body, parents: repo.Commits[tip].Parents,
			inodes: repo.Commits[tip].Files["checks/inodes.md"].Content}
		for _, c := range pr.Comments {
			if strings.HasPrefix(c.Body, gitprovider.AnswerOpening) {
				out.answers++
			}
		}
	})
	return out
}

func (r *revised) request() []byte {
	return r.arguments(map[string]any{
		"title": "Check inodes, and how", "body": "As ann asked.", "revises": 1,
		"files": []any{editOf("checks/inodes.md", "", "# Inodes\n", "# Inodes\n\ndf -i\n")},
	})
}

func (r *revised) revise(ctx context.Context) (prflow.CreateResult, error) {
	return r.createOf(ctx, r.service(), r.request())
}

// assertOnce demands one commit after the former head, one pull request, one answer at most, and, if all is settled,
// exactly one.
func (r *revised) assertOnce(when string, settled bool) {
	r.t.Helper()
	if branches, open := r.state(); len(branches) != 1 || !slices.Equal(open, []int{1}) {
		r.t.Errorf("%s: branches %v, open pull requests %v", when, branches, open)
	}
	now := r.seen()
	if now.tip != r.head && (!slices.Equal(now.parents, []string{r.head}) || now.inodes != "# Inodes\n\ndf -i\n") {
		r.t.Errorf("%s: the tip follows %v and holds %q", when, now.parents, now.inodes)
	}
	isNew := now.title == "Check inodes, and how" && strings.HasPrefix(now.body, "As ann asked.")
	if now.answers > 1 || settled && (now.answers != 1 || now.tip == r.head || !isNew) {
		r.t.Errorf("%s: %d answers, revised %t, title %q, body %q", when, now.answers, now.tip != r.head, now.title, now.body)
	}
}

// settleLeft settles what was left, once nothing can arrive late any more.
func (w *world) settleLeft(ctx context.Context) {
	w.t.Helper()
	w.pass(time.Hour)
	if _, err := w.service().Resume(ctx); err != nil {
		w.t.Fatal(err)
	}
}

// finish makes the identical call, and has what was left settled.
func (r *revised) finish(ctx context.Context) {
	r.t.Helper()
	again, err := r.revise(ctx)
	if err != nil || again.Number != 1 {
		r.t.Fatalf("the identical call: %+v, %v (%v)", again, err, fault.From(err))
	}
	r.assertOnce("after the identical call", false)
	r.settleLeft(ctx)
	r.assertRecords()
	r.assertNoToken()
}

// reviseSequence returns the requests of an undisturbed revision.
func reviseSequence(t *testing.T, k kind) sequence {
	t.Helper()
	r := newRevised(t, k)
	before := len(r.forge.Faults().Requests())
	if result, err := r.revise(t.Context()); err != nil || !result.Revised {
		t.Fatalf("%+v, %v", result, err)
	}
	r.assertOnce("undisturbed", true)
	r.assertRecords()
	return sequenceOf(r.forge.Faults().Requests()[before:])
}

// A revision reads the branch and the discussion besides, and writes text and answer in the place of a pull request.
func TestARevisionCostsFewRequests(t *testing.T) {
	most := map[string]int{"github": 7, "gitea": 14}
	for _, k := range kinds() {
		if n := len(reviseSequence(t, k)); n > most[k.name] {
			t.Errorf("%s: %d requests, at most %d", k.name, n, most[k.name])
		} else {
			t.Logf("%s: %d requests", k.name, n)
		}
	}
}

// The fault table for revisions.
func TestWhateverGoesWrongTheIdenticalCallEndsInOneCommitAndOneAnswer(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.title(), func(t *testing.T) {
			t.Parallel()
			elsewhere := other(t)
			undisturbed := reviseSequence(t, k)
			for n := 1; n <= len(undisturbed); n++ {
				for i, tr := range troubles(elsewhere) {
					if !k.meets(undisturbed, n, tr, i, k.triesAgain) {
						continue
					}
					t.Run(fmt.Sprintf("%s at request %d", tr.name, n), func(t *testing.T) {
						t.Parallel()
						r := newRevised(t, k)
						r.plan(tr, n)
						first, err := r.revise(t.Context())
						if code := fault.CodeOf(err); err != nil && !slices.Contains(append(tr.codes, fault.DuplicatePR), code) {
							t.Errorf("the code is %s (%v; %v), want one of %v", code, err, fault.From(err).Cause, tr.codes)
						}
						r.assertOnce("after the trouble", false)
						r.forge.Faults().Forget()
						r.finish(context.WithoutCancel(t.Context()))
						definite := err == nil && len(first.Warnings) > 0 // text or answer was refused for good
						r.assertOnce("at the end", !definite)
					})
				}
			}
		})
	}
}

// What a request does late, after its caller has given up and the identical call has gone on, makes no second commit.
func TestACommitThatArrivesAfterTheIdenticalCallIsRefused(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.title(), func(t *testing.T) {
			r := newRevised(t, k)
			result, err := r.revise(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			// The very same commit once more, on the head that was read before: what a late request would do.
			provider, ok := k.connect(t, r.forge, transport.Options{Log: slog.New(slog.DiscardHandler)}).(gitprovider.Reviser)
			if !ok {
				t.Fatal("no reviser")
			}
			path, _ := gitprovider.ParsePath("checks/inodes.md")
			set := providertest.ChangeSet(t, providertest.Update("checks/inodes.md", "# Inodes\n\ndf -i\n"))
			blob := gitprovider.BlobID([]byte("# Inodes\n"), r.head)
			_, err = provider.Append(t.Context(), gitprovider.CommitRequest{
				Snapshot: &gitprovider.Snapshot{
					Repo: r.repo, Base: r.branch, BaseCommit: r.head,
					Tree: gitprovider.Tree{"checks": {Kind: gitprovider.KindDir},
						path.String(): {Kind: gitprovider.KindFile, ID: blob}},
				},
				Branch: r.branch, Changes: set, Message: "late",
			})
			if fault.CodeOf(err) != fault.Conflict {
				t.Errorf("a late commit: %v, want a conflict", err)
			}
			r.assertOnce("at the end", true)
			if result.Number != 1 {
				t.Errorf("%+v", result)
			}
		})
	}
}

// A repository that is renamed stays the same one, under its new name and under its former one.
func TestARenamedRepositoryKeepsItsRevisions(t *testing.T) {
	for _, k := range kinds() {
		for name, former := range map[string]bool{"by its new name": false, "by its former name": true} {
			t.Run(k.title()+" "+name, func(t *testing.T) {
				r := newRevised(t, k)
				renamer, can := r.forge.(interface {
					Rename(ref gitprovider.RepoRef, owner, name string) gitprovider.RepoRef
				})
				if !can {
					t.Fatal("the forge cannot rename")
				}
				was := r.repo
				now := renamer.Rename(was, was.Owner, "renamed")
				if !former {
					r.repo = now
				}
				if got := r.status(1).Revise; got != "yes: revises 1" {
					t.Errorf("status says %q", got)
				}
				result, err := r.revise(t.Context())
				r.repo = now
				if err != nil || !result.Revised {
					t.Fatalf("%+v, %v", result, err)
				}
				r.assertOnce("at the end", true)
			})
		}
	}
}

// questioned is a world in which #1 was opened and its owner has asked about two lines. asked answers both, and the
// review, with a commit or without one.
type questioned struct {
	*world
	head string
}

// texts returns the texts to post.
func texts() []string { return []string{"It counts files.", "Because they end.", "Each hour."} }

func newQuestioned(t *testing.T, w *world, first prflow.CreateResult, commit bool) *questioned {
	t.Helper()
	w.pass(time.Minute)
	on := func(body string) gitprovider.LineComment {
		return gitprovider.LineComment{Path: "checks/inodes.md", Line: 1, Body: body}
	}
	if real, is := w.forge.(outside); is {
		real.AskAboutLines(w.repo, first.Number, on("Why?"), on("How often?"))
	} else {
		w.forge.Host().World(t, w.repo, nil).ReviewLines(first.Number, w.repo.Owner, gitprovider.ReviewChangesRequested,
			"See the lines.",
			on("Why?"), on("How often?"))
	}
	w.pass(time.Minute)
	status := w.status(first.Number)
	if len(status.Reviews) != 1 || len(status.Reviews[0].Comments) != 2 {
		t.Fatalf("%+v", status)
	}
	said, answers := texts(), []any{}
	for i, c := range status.Reviews[0].Comments {
		answers = append(answers, map[string]any{"comment": c.ID, "text": said[i+1]})
	}
	ask := map[string]any{"revises": first.Number, "reply": said[0], "replies": answers}
	if commit {
		ask["title"], ask["body"] = "Check inodes, and how", "As ann asked."
		ask["files"] = []any{editOf("checks/inodes.md", "", "# Inodes\n", "# Inodes\n\ndf -i\n")}
	}
	w.asked = w.arguments(ask)
	w.forge.Faults().Forget()
	return &questioned{w, first.Commit}
}

func newQuestion(t *testing.T, k kind, commit bool) *questioned {
	t.Helper()
	w := newWorld(t, k)
	first, err := w.create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return newQuestioned(t, w, first, commit)
}

func (q *questioned) answer(ctx context.Context) (prflow.CreateResult, error) {
	return q.createOf(ctx, q.service(), q.asked)
}

// posted are all texts that were posted about #1, in whatever form.
func (q *questioned) posted() string {
	if real, is := q.forge.(outside); is {
		return strings.Join(real.Posted(q.repo, 1), "\n---\n")
	}
	var all []string
	q.forge.Host().Locked(func() {
		pr := q.forge.Host().Repo(q.repo).PR(1)
		for _, c := range pr.Comments {
			all = append(all, c.Body)
		}
		for _, r := range pr.Reviews {
			for _, c := range r.Comments {
				all = append(all, c.Body)
			}
		}
	})
	return strings.Join(all, "\n---\n")
}

// assertPosted demands each text at most once, and, at the end, once.
func (q *questioned) assertPosted(when string, settled bool) {
	q.t.Helper()
	all := q.posted()
	for _, text := range texts() {
		if n := strings.Count(all, text); n > 1 || settled && n != 1 {
			q.t.Errorf("%s: %q was posted %d times:\n%s", when, text, n, all)
		}
	}
}

// finish makes the identical call, and has what was left settled.
func (q *questioned) finish(ctx context.Context) {
	q.t.Helper()
	if again, err := q.answer(ctx); err != nil || again.Number != 1 {
		q.t.Fatalf("the identical call: %+v, %v (%v)", again, err, fault.From(err))
	}
	q.assertPosted("after the identical call", false)
	q.settleLeft(ctx)
	q.assertPosted("at the end", true)
	q.assertRecords()
	q.assertNoToken()
}

// answerSequence returns the requests of undisturbed answers.
func answerSequence(t *testing.T, k kind, commit bool) sequence {
	t.Helper()
	q := newQuestion(t, k, commit)
	result, err := q.answer(t.Context())
	if err != nil || !result.Revised || result.Replies != 3 || len(result.Warnings) > 0 ||
		(result.Commit == q.head) == commit {
		t.Fatalf("%+v, %v", result, err)
	}
	undisturbed := sequenceOf(q.forge.Faults().Requests())
	q.assertPosted("undisturbed", true)
	return undisturbed
}

// goneComment is the code where a forge says that the review, and so its comments, are not there any more.
const goneComment = fault.InvalidArgument

func TestAnswersCostFewRequests(t *testing.T) {
	most := map[string][2]int{"github": {7, 8}, "gitea": {14, 15}}
	for _, k := range kinds() {
		alone, with := len(answerSequence(t, k, false)), len(answerSequence(t, k, true))
		t.Logf("%s: %d requests without a commit, %d with one", k.title(), alone, with)
		if alone > most[k.name][0] || with > most[k.name][1] {
			t.Errorf("%s: %d and %d requests, at most %v", k.title(), alone, with, most[k.name])
		}
	}
}

// The fault table for answers: those without a commit from the request before the first that writes, and those with one
// from its commit on, of which one cell of three is left, since the writes are the same. The requests before are those
// of TestWhateverGoesWrongTheIdenticalCallEndsInOneCommitAndOneAnswer.
func TestWhateverGoesWrongTheIdenticalCallEndsInEachAnswerOnce(t *testing.T) {
	for _, commit := range []bool{false, true} {
		of := prompt()
		if commit {
			of = kinds()
		}
		for _, k := range of {
			t.Run(fmt.Sprintf("%s, with a commit: %t", k.title(), commit), func(t *testing.T) {
				t.Parallel()
				answerInTrouble(t, k, commit)
			})
		}
	}
}

func answerInTrouble(t *testing.T, k kind, commit bool) {
	elsewhere := other(t)
	undisturbed := answerSequence(t, k, commit)
	for n := max(slices.Index(undisturbed, true), 1); n <= len(undisturbed); n++ {
		for i, tr := range troubles(elsewhere) {
			if !k.meets(undisturbed, n, tr, i, k.tries) || commit && (n+i)%3 != 0 {
				continue
			}
			t.Run(fmt.Sprintf("%s at request %d", tr.name, n), func(t *testing.T) {
				t.Parallel()
				q := newQuestion(t, k, commit)
				q.plan(tr, n)
				_, err := q.answer(t.Context())
				if code := fault.CodeOf(err); err != nil &&
					!slices.Contains(append(tr.codes, fault.DuplicatePR, goneComment), code) {
					t.Errorf("the code is %s (%v), want one of %v", code, err, tr.codes)
				}
				q.assertPosted("after the trouble", false)
				q.forge.Faults().Forget()
				q.finish(context.WithoutCancel(t.Context()))
			})
		}
	}
}
