package resilience

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
)

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
	raw, err := json.Marshal(map[string]any{"repo_owner": w.repo.Owner, "repo_name": w.repo.Name,
		"pr_number": first.Number})
	if err != nil {
		t.Fatal(err)
	}
	status, err := w.service().Status(
		t.Context(),
		operation.Caller{Actor: record.Actor{Door: record.DoorMCP, Client: "test"}},
		raw,
	)
	if err != nil || len(status.Reviews) != 1 || len(status.Reviews[0].Comments) != 2 {
		t.Fatalf("%+v, %v", status, err)
	}
	said, answers := texts(), []any{}
	for i, c := range status.Reviews[0].Comments {
		answers = append(answers, map[string]any{"comment": c.ID, "text": said[i+1]})
	}
	ask := map[string]any{
		"repo_owner": w.repo.Owner, "repo_name": w.repo.Name, "revises": first.Number, "reply": said[0], "replies": answers,
	}
	if commit {
		ask["title"], ask["body"] = "Check inodes, and how", "As ann asked."
		ask["files"] = []any{editOf("checks/inodes.md", "", "# Inodes\n", "# Inodes\n\ndf -i\n")}
	}
	if w.asked, err = json.Marshal(ask); err != nil {
		t.Fatal(err)
	}
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
	result, err := q.service().Create(
		ctx,
		operation.Caller{Actor: record.Actor{Door: record.DoorMCP, Client: "test"}},
		q.asked,
	)
	text, _ := json.Marshal(result)
	q.said = append(q.said, string(text))
	return result, err
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

// finish makes the identical call, and lets what was left be settled once nothing can arrive late any more.
func (q *questioned) finish(ctx context.Context) {
	q.t.Helper()
	if again, err := q.answer(ctx); err != nil || again.Number != 1 {
		q.t.Fatalf("the identical call: %+v, %v (%v)", again, err, fault.From(err))
	}
	q.settleAll(ctx)
}

func (q *questioned) settleAll(ctx context.Context) {
	q.t.Helper()
	q.assertPosted("after the identical call", false)
	q.pass(time.Hour)
	if _, err := q.service().Resume(ctx); err != nil {
		q.t.Fatal(err)
	}
	q.assertPosted("at the end", true)
	q.assertRecords()
	q.assertNoToken()
}

// answerSequence returns the number of requests of undisturbed answers.
func answerSequence(t *testing.T, k kind, commit bool) int {
	t.Helper()
	q := newQuestion(t, k, commit)
	result, err := q.answer(t.Context())
	if err != nil || !result.Revised || result.Replies != 3 || len(result.Warnings) > 0 ||
		(result.Commit == q.head) == commit {
		t.Fatalf("%+v, %v", result, err)
	}
	n := len(q.forge.Faults().Requests())
	q.assertPosted("undisturbed", true)
	return n
}

// goneComment is the code where a forge says that the review, and so its comments, are not there any more.
const goneComment = fault.InvalidArgument

func TestAnswersCostFewRequests(t *testing.T) {
	most := map[string][2]int{"github": {7, 8}, "gitea": {14, 15}}
	for _, k := range kinds() {
		alone, with := answerSequence(t, k, false), answerSequence(t, k, true)
		t.Logf("%s: %d requests without a commit, %d with one", k.title(), alone, with)
		if alone > most[k.name][0] || with > most[k.name][1] {
			t.Errorf("%s: %d and %d requests, at most %v", k.title(), alone, with, most[k.name])
		}
	}
}

// The fault table for answers without a commit, and for those with one from its commit on.
func TestWhateverGoesWrongTheIdenticalCallEndsInEachAnswerOnce(t *testing.T) {
	for _, k := range kinds() {
		for _, commit := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, with a commit: %t", k.title(), commit), func(t *testing.T) {
				t.Parallel()
				elsewhere := other(t)
				last, first := answerSequence(t, k, commit), 1
				if commit { // the requests before are those of TestWhateverGoesWrongTheIdenticalCallEndsInOneCommitAndOneAnswer
					first = last - 4
				}
				for n := first; n <= last; n++ {
					for i, tr := range troubles(elsewhere) {
						if !k.tries(n, i) {
							continue
						}
						t.Run(fmt.Sprintf("%s at request %d", tr.name, n), func(t *testing.T) {
							t.Parallel()
							q := newQuestion(t, k, commit)
							if tr.stays {
								q.forge.Faults().PlanFrom(n, tr.fault)
							} else {
								q.forge.Faults().PlanNth(n, tr.fault)
							}
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
			})
		}
	}
}
