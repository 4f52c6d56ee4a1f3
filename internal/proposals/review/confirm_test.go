package review

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/facts"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// branchHost has one pull request whose branch stands at head. It keeps the heads that were approved and merged, and
// refuses others as the real one does.
type branchHost struct {
	Host
	head   string
	writes []string // paths of its change
	done   []string
}

func (h *branchHost) Show(_ context.Context, _ gitprovider.RepoRef, number int) (local.Detail, error) {
	if number != 7 {
		return local.Detail{}, fault.New(fault.NotFound, "there is no pull request %d", number)
	}
	return local.Detail{Status: gitprovider.Status{PullRequest: gitprovider.PullRequest{Number: 7, HeadCommit: h.head,
		Branch: "b"}}}, nil
}

func (h *branchHost) Approve(_ context.Context, _ gitprovider.RepoRef, _ int, n local.Note) error {
	if n.Head != "" && n.Head != h.head {
		return fault.New(fault.Conflict, "it has moved since")
	}
	h.done = append(h.done, n.Head)
	return nil
}

func (h *branchHost) Merge(ctx context.Context, ref gitprovider.RepoRef, number int, n local.MergeNote) (local.Merged,
	error) {
	if err := n.Writes(h.writes); err != nil {
		return local.Merged{}, err
	}
	return local.Merged{}, h.Approve(ctx, ref, number, n.Note)
}

// TestWhatIsConfirmedIsWhatPasses decides about a pull request whose newest change was read at commit "read" and
// deletes, while its branch stands at "now", under a policy that has deletion and data going out confirmed.
func TestWhatIsConfirmedIsWhatPasses(t *testing.T) {
	ask := map[facts.Class]policy.FactRule{facts.Destroy: policy.AcknowledgeFact, facts.Outbound: policy.AcknowledgeFact}
	refused, moved := fault.InvalidArgument, fault.Conflict
	for name, c := range map[string]struct {
		read, now, head string // commits: that the record has facts of, of the branch, and that the person names
		confirmed       string
		known           string // "" for facts; "unread" for a record without, "unknown" for no record
		meanwhile       string // where the branch is once the facts were judged
		code            fault.Code
		says            string
	}{
		"of the commit that was read":            {"a", "a", "a", "destroy", "", "", "", ""},
		"of no commit":                           {"a", "a", "", "destroy", "", "", refused, "none is named"},
		"of another class":                       {"a", "a", "a", "outbound", "", "", refused, "deletes"},
		"of nothing":                             {"a", "a", "a", "", "", "", refused, "deletes"},
		"before a revision that was read":        {"b", "b", "a", "destroy", "", "", moved, "has moved"},
		"while a revision comes":                 {"a", "a", "a", "destroy", "", "b", moved, "has moved"},
		"of a revision that is not read yet":     {"a", "b", "b", "destroy", "", "", refused, "sends data out"},
		"of all that an unread revision may do":  {"a", "b", "b", "destroy,outbound", "", "", "", ""},
		"of a change that was never read":        {"a", "a", "a", "", "unread", "", refused, "did not read"},
		"of all that an unread change may do":    {"a", "a", "a", "outbound,destroy", "unread", "", "", ""},
		"of a pull request without a record":     {"", "a", "a", "destroy", "unknown", "", refused, "sends data out"},
		"of one without a record, and no commit": {"", "a", "", "destroy,outbound", "unknown", "", refused, "none is named"},
	} {
		for _, verb := range []string{"approve", "merge"} {
			t.Run(verb+", "+name, func(t *testing.T) {
				h, k := &branchHost{head: c.now}, &kept{}
				p := policy.Default()
				p.Facts.Classes = ask
				s := serviceAt(h, k, p, func() (record.Proposal, bool) {
					out := record.Proposal{Tier: 2, Progress: record.Progress{Commit: c.read},
						Facts: facts.Reading{Counts: map[facts.Class]int{facts.Destroy: 1}}}
					switch c.known {
					case "unread":
						out.Facts = facts.Reading{}
					case "unknown":
						out = record.Proposal{}
					}
					if c.meanwhile != "" {
						h.head = c.meanwhile
					}
					return out, c.known != "unknown"
				})
				_, err := s.Do(t.Context(), Request{Provider: "local", Owner: "joe", Name: "infra", Number: 7, Verb: verb,
					Head: c.head, Acknowledged: policy.SplitClasses(c.confirmed), Force: true,
					By: operation.Caller{Actor: record.Actor{Door: record.DoorREST, Client: "ann"}}})
				if (err == nil) != (c.code == "") || err != nil && (fault.CodeOf(err) != c.code ||
					!strings.Contains(err.Error(), c.says)) {
					t.Fatalf("%v, want %q and %q", err, c.code, c.says)
				}
				if len(h.done) != map[bool]int{true: 1}[err == nil] || len(k.rows) != 1 || k.rows[0].Code != c.code {
					t.Errorf("done at %q, rows %+v", h.done, k.rows)
				}
			})
		}
	}
}

// Four eyes forbid what is there. What is not there is not found, so that the audit keeps the two apart.
func TestFourEyesForbidNoInventedNumber(t *testing.T) {
	h, p := &branchHost{head: "a"}, policy.Default()
	p.People.FourEyes = true
	s := serviceAt(h, &kept{}, p, nil)
	s.Starters = func(context.Context, record.PullKey) ([]record.Actor, error) { return nil, nil }
	for number, want := range map[int]fault.Code{7: fault.Forbidden, 8: fault.NotFound} {
		_, err := s.Do(t.Context(), Request{Provider: "local", Owner: "joe", Name: "infra", Number: number, Verb: "merge",
			By: operation.Caller{Actor: record.Actor{Door: record.DoorREST, Client: "ann"}}})
		if fault.CodeOf(err) != want || len(h.done) > 0 {
			t.Errorf("#%d: %v, want %s; done %v", number, err, want, h.done)
		}
	}
}

// The policy may have been narrowed since the pull request was opened.
func TestAMergeWritesNothingThatIsOutOfScopeNow(t *testing.T) {
	narrow := policy.Default()
	var err error
	if narrow.Scope, err = gitprovider.NewScope([]string{"checks/**"}, []string{"checks/old/**"}, ""); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		rules policy.Policy
		paths []string
		says  string // "": it is merged
	}{
		"in the scope":              {policy.Default(), []string{"checks/disk.md", "playbooks/disk.md"}, ""},
		"in the scope of today":     {narrow, []string{"checks/disk.md"}, ""},
		"in what was allowed once":  {narrow, []string{"checks/disk.md", "playbooks/disk.md"}, "playbooks/disk.md"},
		"in what was denied since":  {narrow, []string{"checks/old/disk.md"}, "checks/old/**"},
		"in what was never allowed": {policy.Default(), []string{".github/workflows/a.yml"}, ".github"},
	} {
		h, k := &branchHost{head: "a", writes: c.paths}, &kept{}
		s := serviceAt(h, k, c.rules, func() (record.Proposal, bool) { return record.Proposal{}, false })
		_, err := s.Do(t.Context(), Request{Provider: "local", Owner: "joe", Name: "infra", Number: 7, Verb: "merge",
			Head: "a", Force: true, By: operation.Caller{Actor: record.Actor{Door: record.DoorREST, Client: "ann"}}})
		if c.says == "" && err != nil || c.says != "" && (fault.CodeOf(err) != fault.ScopeDenied ||
			!strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if len(h.done) != map[bool]int{true: 1}[c.says == ""] || len(k.rows) != 1 {
			t.Errorf("%s: done at %q, rows %+v", name, h.done, k.rows)
		}
	}
}

// Where nothing has to be confirmed, no commit has to be named. What passes is then the commit that was read.
func TestWithoutACommitThatWhichWasReadPasses(t *testing.T) {
	h, p := &branchHost{head: "a"}, policy.Default()
	p.Facts.Tiers = map[gitprovider.Tier]map[facts.Class]policy.FactRule{2: {facts.Destroy: policy.AcknowledgeFact}}
	s := serviceAt(h, &kept{}, p, func() (record.Proposal, bool) {
		return record.Proposal{Tier: 2, Progress: record.Progress{Commit: "a"},
			Facts: facts.Reading{Counts: map[facts.Class]int{}}}, true
	})
	approve := Request{Provider: "local", Owner: "joe", Name: "infra", Number: 7, Verb: "approve",
		By: operation.Caller{Actor: record.Actor{Door: record.DoorCLI, Client: "ann"}}}
	if _, err := s.Do(t.Context(), approve); err != nil || len(h.done) != 1 || h.done[0] != "a" {
		t.Errorf("%v, done at %q", err, h.done)
	}
	h.head = "b"
	if _, err := s.Do(t.Context(), approve); fault.CodeOf(err) != fault.Conflict || len(h.done) != 1 {
		t.Errorf("a branch that has moved: %v, done at %q", err, h.done)
	}
}

func serviceAt(h Host, k *kept, p policy.Policy, newest func() (record.Proposal, bool)) *Service {
	return New(Options{Provider: "local", Host: h, Records: k, Notifier: nobody{}, Pulls: known{},
		Kernel: operation.NewKernel(operation.KernelOptions{
			Authority: operation.Authority{Rules: operation.Rules{Policy: p}}, Audit: k,
			Redact: func(s string) string { return s },
			Log:    slog.New(slog.DiscardHandler), Now: time.Now, NewID: func() string { return "id" },
		}),
		NewestChange: func(context.Context, record.PullKey) (record.Proposal, bool, error) {
			made, found := newest()
			return made, found, nil
		},
	})
}

// A tier 2 agent has proposed what a tier 3 agent then revised. At tier 3 nothing has to be confirmed.
func TestTheStrictestTierCountsForARevision(t *testing.T) {
	p := policy.Default()
	p.Facts.Tiers = map[gitprovider.Tier]map[facts.Class]policy.FactRule{2: {facts.Destroy: policy.AcknowledgeFact}}
	for revises, code := range map[int]fault.Code{0: "", 7: fault.InvalidArgument} {
		s := serviceAt(&branchHost{head: "a"}, &kept{}, p, func() (record.Proposal, bool) {
			return record.Proposal{Tier: 3, Revises: revises, Progress: record.Progress{Commit: "a"},
				Facts: facts.Reading{Counts: map[facts.Class]int{facts.Destroy: 1}}}, true
		})
		_, err := s.Do(t.Context(), Request{Provider: "local", Owner: "joe", Name: "infra", Number: 7, Verb: "merge",
			Head: "a", By: operation.Caller{Actor: record.Actor{Door: record.DoorCLI, Client: "ann"}}})
		if (err == nil) != (code == "") || err != nil && fault.CodeOf(err) != code {
			t.Errorf("revises %d: %v, want %q", revises, err, code)
		}
	}
}
