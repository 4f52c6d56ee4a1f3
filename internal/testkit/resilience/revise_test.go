package resilience

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
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
	raw, err := json.Marshal(map[string]any{
		"repo_owner": r.repo.Owner, "repo_name": r.repo.Name, "title": "Check inodes, and how", "body": "As ann asked.",
		"revises": 1,
		"files":   []any{editOf("checks/inodes.md", "", "# Inodes\n", "# Inodes\n\ndf -i\n")},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return raw
}

func (r *revised) revise(ctx context.Context) (prflow.CreateResult, error) {
	result, err := r.service().Create(
		ctx,
		operation.Caller{Actor: record.Actor{Door: record.DoorMCP, Client: "test"}},
		r.request(),
	)
	text, _ := json.Marshal(result)
	r.said = append(r.said, string(text))
	if err != nil {
		r.said = append(r.said, err.Error())
	}
	return result, err
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

// finish makes the identical call, and lets what was left be settled once nothing can arrive late any more.
func (r *revised) finish(ctx context.Context) {
	r.t.Helper()
	again, err := r.revise(ctx)
	if err != nil || again.Number != 1 {
		r.t.Fatalf("the identical call: %+v, %v (%v)", again, err, fault.From(err))
	}
	r.assertOnce("after the identical call", false)
	r.pass(time.Hour)
	if _, err := r.service().Resume(ctx); err != nil {
		r.t.Fatal(err)
	}
	r.assertRecords()
	r.assertNoToken()
}

// reviseSequence returns the number of requests of an undisturbed revision.
func reviseSequence(t *testing.T, k kind) int {
	t.Helper()
	r := newRevised(t, k)
	before := len(r.forge.Faults().Requests())
	if result, err := r.revise(t.Context()); err != nil || !result.Revised {
		t.Fatalf("%+v, %v", result, err)
	}
	r.assertOnce("undisturbed", true)
	r.assertRecords()
	return len(r.forge.Faults().Requests()) - before
}

// A revision reads the branch and the discussion besides, and writes text and answer in the place of a pull request.
func TestARevisionCostsFewRequests(t *testing.T) {
	most := map[string]int{"github": 7, "gitea": 14}
	for _, k := range kinds() {
		if n := reviseSequence(t, k); n > most[k.name] {
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
			for n := 1; n <= reviseSequence(t, k); n++ {
				for i, tr := range troubles(elsewhere) {
					if !k.tries(n, i) {
						continue
					}
					t.Run(fmt.Sprintf("%s at request %d", tr.name, n), func(t *testing.T) {
						t.Parallel()
						r := newRevised(t, k)
						if tr.stays {
							r.forge.Faults().PlanFrom(n, tr.fault)
						} else {
							r.forge.Faults().PlanNth(n, tr.fault)
						}
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
				r.repo = renamer.Rename(was, was.Owner, "renamed")
				asked := r.repo
				if former {
					asked = was
				}
				raw, _ := json.Marshal(map[string]any{"repo_owner": asked.Owner, "repo_name": asked.Name, "pr_number": 1})
				status, err := r.service().Status(
					t.Context(),
					operation.Caller{Actor: record.Actor{Door: record.DoorMCP, Client: "test"}},
					raw,
				)
				if err != nil || status.Revise != "yes: revises 1" {
					t.Errorf("status says %q, %v", status.Revise, err)
				}
				now := r.repo
				r.repo = asked
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
