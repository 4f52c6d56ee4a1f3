package prflow_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

// mustReuse makes the identical call and fails the test unless it answers with the pull request.
func (b *bench) mustReuse(raw []byte, number int) prflow.CreateResult {
	b.Helper()
	result, err := b.create(raw)
	if err != nil || !result.Reused || result.Number != number {
		b.Fatalf("got %+v, %v; want #%d reused", result, err, number)
	}
	return result
}

func TestReusePutsLabelsBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.mustOpen(createRequest(nil))
	b.fake.People.Unlabel(infra, first.Number)
	if again := b.mustReuse(createRequest(nil), first.Number); len(again.Warnings) > 0 {
		t.Errorf("warnings %q", again.Warnings)
	}
	status, err := b.fake.Status(context.Background(), infra, first.Number)
	if err != nil || !slices.Equal(status.Labels, []string{"claude-ops", "automated"}) {
		t.Errorf("labels %q, %v", status.Labels, err)
	}
	t.Run("and says when it cannot", func(t *testing.T) {
		b.fake.People.Unlabel(infra, first.Number)
		b.fake.Script.FailBefore(forgetest.MethodLabel, fault.New(fault.RepoNotAllowed, "no scope for labels"))
		again := b.mustReuse(createRequest(nil), first.Number)
		if len(again.Warnings) != 1 || !strings.Contains(again.Warnings[0], "no scope for labels") {
			t.Errorf("warnings %q", again.Warnings)
		}
	})
	t.Run("not in a dry run", func(t *testing.T) {
		b.fake.People.Unlabel(infra, first.Number)
		b.options.Authority.DryRun = true
		b.fake.Script.ForgetCalls()
		b.mustReuse(createRequest(nil), first.Number)
		if b.fake.Script.Writes() > 0 {
			t.Errorf("calls %v", b.fake.Script.Calls())
		}
	})
}

func TestALabelWhoseAnswerWasLostIsLookedAtBeforeAWarning(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.mustOpen(createRequest(nil))
	b.fake.People.Unlabel(infra, first.Number)
	b.fake.Script.FailAfter(forgetest.MethodLabel)
	if again := b.mustReuse(createRequest(nil), first.Number); len(again.Warnings) > 0 {
		t.Errorf("warnings %q", again.Warnings)
	}
	b.fake.People.Unlabel(infra, first.Number)
	b.fake.Script.FailBefore(forgetest.MethodLabel, fault.New(fault.UpstreamError, "the connection dropped"))
	if again := b.mustReuse(createRequest(nil), first.Number); len(again.Warnings) != 1 {
		t.Errorf("warnings %q", again.Warnings)
	}
}

// crowd is a provider that knows reviewers and assignees, and what came of asking them.
type crowd struct {
	*forgetest.Fake
	have  *gitprovider.Details
	asked *[]string
	fails *error // of the next call; it acts all the same
}

func (a crowd) Details(ctx context.Context, ref gitprovider.RepoRef, number int) (gitprovider.Details, error) {
	out, err := a.Fake.Details(ctx, ref, number)
	out.Requested, out.Assignees, out.Reviewed = a.have.Requested, a.have.Assignees, a.have.Reviewed
	return out, err
}

func (a crowd) Assign(_ context.Context, _ gitprovider.RepoRef, number int, reviewers, assignees []string) error {
	*a.asked = append(*a.asked, fmt.Sprint(number, reviewers, assignees))
	a.have.Requested = append(a.have.Requested, reviewers...)
	a.have.Assignees = append(a.have.Assignees, assignees...)
	err := *a.fails
	*a.fails = nil
	return err
}

// newCrowd is a bench whose policy names some of a crowd.
func newCrowd(t *testing.T) (*bench, crowd) {
	t.Helper()
	b := newBench(t)
	b.options.Authority.Policy = mustPolicy(t, "pull_requests: {reviewers: [Ann, bob, acme/ops], assignees: [joe]}")
	people := crowd{b.fake, &gitprovider.Details{}, &[]string{}, new(error)}
	b.through(people)
	return b, people
}

func TestReuseAsksThoseWhoWereNotAsked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		have gitprovider.Details
		want []string
	}{
		"everybody, if nobody was": {gitprovider.Details{}, []string{"1 [Ann bob acme/ops] [joe]"}},
		"nobody, if all were": {
			gitprovider.Details{Requested: []string{"ann", "bob", "acme/ops"}, Assignees: []string{"joe"}}, nil,
		},
		"none who has reviewed, and then no team": {
			gitprovider.Details{Requested: []string{"bob"}, Reviewed: []string{"ann"}, Assignees: []string{"joe"}}, nil,
		},
		"the reviewers alone, if somebody else is assigned": {
			gitprovider.Details{Requested: []string{"bob"}, Assignees: []string{"carl"}}, []string{"1 [Ann acme/ops] []"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, people := newCrowd(t)
			first := b.mustOpen(createRequest(nil))
			*people.have, *people.asked = c.have, nil
			if again := b.mustReuse(createRequest(nil), first.Number); len(again.Warnings) > 0 ||
				!slices.Equal(*people.asked, c.want) {
				t.Errorf("asked %q, want %q; warnings %q", *people.asked, c.want, again.Warnings)
			}
		})
	}
	t.Run("a lost answer is looked at before a warning", func(t *testing.T) {
		b, people := newCrowd(t)
		*people.fails = fault.New(fault.UpstreamError, "the connection dropped")
		if first := b.mustOpen(createRequest(nil)); len(first.Warnings) > 0 {
			t.Errorf("warnings %q", first.Warnings)
		}
	})
}

func TestReuseMendsABodyThatIsStillOurs(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(body string) string{
		"it is gone":         func(string) string { return "" },
		"the footer is gone": func(body string) string { return body[:strings.Index(body, "\n\n---")] },
		"the mark is gone":   func(body string) string { return body[:strings.Index(body, "<!--")] },
		"it was cut":         func(body string) string { return body[:len(body)-30] },
		"the mark was mangled": func(body string) string {
			return strings.Replace(body, "<!-- claude-ops:v1", "<!-- claude",
				1)
		},
		"as a form sends it": func(body string) string {
			return strings.ReplaceAll(body[:strings.Index(body, "<!--")], "\n", "\r\n")
		},
	} {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, the state folder is lost: %t", name, lost), func(t *testing.T) {
				b := newBench(t)
				first := b.mustOpen(createRequest(nil))
				was := b.body(first.Number)
				b.world().SetBody(first.Number, damage(was))
				if lost {
					b.loseState()
				}
				again := b.mustReuse(createRequest(nil), first.Number)
				now := b.body(first.Number)
				if len(again.Warnings) > 0 || !lost && now != was || !strings.HasPrefix(now, was[:strings.Index(was, "\n\n---")]) {
					t.Errorf("the body is now\n%s\nwarnings %q", now, again.Warnings)
				}
				b.fake.Script.ForgetCalls()
				if b.mustReuse(createRequest(nil), first.Number); b.fake.Script.Writes() > 0 {
					t.Errorf("the mended one was written again: %v", b.fake.Script.Calls())
				}
			})
		}
	}
}

func TestReuseLeavesABodyThatSomebodyHasWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.mustOpen(createRequest(nil))
	for name, body := range map[string]string{
		"another text": "I have taken this over. Ann",
		"ours with something added": strings.Split(b.body(first.Number), "\n\n---")[0] +
			"\n\nP.S.: not before Monday.",
		"something added above the footer": strings.Replace(strings.Split(b.body(first.Number), "<!--")[0], "\n\n---",
			"\n\nP.S.\n\n---", 1),
	} {
		t.Run(name, func(t *testing.T) {
			b.world().SetBody(first.Number, body)
			again := b.mustReuse(createRequest(nil), first.Number)
			if b.body(first.Number) != body {
				t.Errorf("the body was overwritten:\n%s", b.body(first.Number))
			}
			if len(again.Warnings) != 1 || !strings.Contains(again.Warnings[0], "left as it is") {
				t.Errorf("warnings %q", again.Warnings)
			}
		})
	}
	t.Run("with a mark of another installation nothing is said", func(t *testing.T) {
		b := newBench(t)
		first := b.mustOpen(createRequest(nil))
		body := b.body(first.Number)
		b.options.Proof.Key = func() ([]byte, error) { return []byte("another key, of 32 bytes--------"), nil }
		if again := b.mustReuse(createRequest(nil), first.Number); len(again.Warnings) > 0 || b.body(first.Number) != body {
			t.Errorf("warnings %q, body\n%s", again.Warnings, b.body(first.Number))
		}
	})
}

func TestListFindsOursByTheirMarkAndSaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.mustOpen(createRequest(nil))
	b.fake.People.Unlabel(infra, first.Number)
	b.world().Push("claude-ops/fix/other", providertest.File{Path: "checks/o.md", Content: "o"})
	b.world().SetBody(b.world().OpenPR("claude-ops/fix/other", "Copied the mark"), b.body(first.Number))
	result := b.list()
	if len(result.PRs) != 1 || result.PRs[0].Number != first.Number || len(result.Warnings) != 1 ||
		!strings.Contains(result.Warnings[0], fmt.Sprintf("#%d lacks the label", first.Number)) {
		t.Errorf("got %+v", result)
	}
	people, err := prflow.New(b.options).Reader().ListAt(context.Background(), "fake", "joe", "infra")
	if err != nil || len(people) != 1 {
		t.Errorf("people see %+v, %v", people, err)
	}
	b.mustReuse(createRequest(nil), first.Number)
	if result := b.list(); len(result.PRs) != 1 || len(result.Warnings) > 0 {
		t.Errorf("after the identical call: %+v", result)
	}
}

func TestOfTwoPullRequestsWithTheSameChangeTheOlderOneIsReused(t *testing.T) {
	t.Parallel()
	b := newLateBench(t)
	b.meetsARival("# Inodes\n")
	b.fake.Script.FailBefore(forgetest.MethodWithdraw, fault.New(fault.ProviderDisabled, "the token may not do that"))
	if younger := b.mustOpen(createRequest(nil)); younger.Number <= 1 || len(b.open()) != 2 {
		t.Fatalf("#%d, open %v", younger.Number, b.open())
	}
	b.mustReuse(createRequest(nil), 1) // although our record knows the younger one alone
}

func TestWhatWasLeftOfTheSameChangeAndCannotBeSettledIsReusedAllTheSame(t *testing.T) {
	t.Parallel()
	b := newLateBench(t)
	b.fake.Script.FailAfter(forgetest.MethodOpenPullRequest)
	b.fake.Script.FailBefore(forgetest.MethodFindByHead, down())
	if _, err := b.create(createRequest(nil)); err == nil || len(b.open()) != 1 {
		t.Fatalf("%v, open %v", err, b.open())
	}
	b.options.Ledger = noAdoption{b.options.Ledger}
	b.mustReuse(createRequest(nil), b.open()[0])
	b.mustHold(1)
}

type noAdoption struct{ prflow.Ledger }

func (noAdoption) Adopt(context.Context, record.Proposal) (bool, error) {
	return false, fault.New(fault.Internal, "the disk is full")
}

// A request for the same files under another title is answered that the pull request kept its own.
func TestReuseSaysWhatOfTheCallWasNotTaken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(map[string]any)
		says   string
	}{
		"another title": {func(r map[string]any) { r["title"] = "Look at inodes" }, "keeps its own title;"},
		"another body":  {func(r map[string]any) { r["body"] = "## Why\n\nOther words.\n" }, "keeps its own body;"},
		"another title and body": {func(r map[string]any) { r["title"], r["body"] = "Look", "Other words.\n" },
			"keeps its own title and body;"},
		"the same": {nil, ""},
	} {
		b := newBench(t)
		b.mustOpen(createRequest(nil))
		again := b.mustReuse(createRequest(c.change), 1)
		if said := strings.Join(again.Warnings, " "); (c.says == "") != (said == "") || !strings.Contains(said, c.says) {
			t.Errorf("%s: %q", name, again.Warnings)
		}
	}
}
