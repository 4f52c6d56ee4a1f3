package prflow_test

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// fail has a check of #1's head fail.
func (b *bench) fail() {
	b.Helper()
	b.fake.People.SetChecks(infra, 1, gitprovider.Checks{State: gitprovider.ChecksFailure, Failing: []string{"lint"},
		Details: []gitprovider.FailedCheck{
			{Name: "lint", Summary: "2 errors", Log: strings.Repeat("x", 5000) +
				"\nchecks/inodes.md:1 too short\nGITHUB_TOKEN=ghp_" + "x7Kq2mZp9LwT4vRb8NcY3sDf6HjG1aEu5QoW" + "\n",
				URL: "https://ci.example.org/1"},
		}})
}

func TestFailingChecksAskForARevision(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.onlyReviewed()
	first := b.mustOpen(request(nil))
	if _, err := b.create(revising(nil)); fault.CodeOf(err) != fault.DuplicatePR {
		t.Fatalf("before: %v", err)
	}
	b.fail()
	status := b.statusWith()
	if status.Revise != "yes: revises 1" || status.Checks.Details != nil {
		t.Errorf("%+v", status)
	}
	details := b.statusWith("files").Checks.Details
	if len(details) != 1 || details[0].Summary != "2 errors" || !strings.Contains(details[0].LogEnd, "too short") ||
		len(details[0].LogEnd) > 2100 ||
		strings.Contains(details[0].LogEnd, "ghp_") || details[0].URL != "https://ci.example.org/1" {
		t.Errorf("%+v", details)
	}
	e, _ := b.mustRefuse(request(files(file("checks/inodes.md", "create", "# Inodes another way\n"))), fault.DuplicatePR)
	if !strings.Contains(e.Next, `mend what its checks say ("lint"`) || !strings.Contains(e.Next, "revises: 1") {
		t.Errorf("next is %q", e.Next)
	}
	result, err := b.create(revising(nil))
	if err != nil || !result.Revised {
		t.Fatalf("%+v, %v", result, err)
	}
	if said := b.comments(); len(said) != 1 || !strings.Contains(said[0], "since checks failed") {
		t.Errorf("the comments are %q", said)
	}
	more := revising(func(r map[string]any) {
		r["files"] = []any{map[string]any{"path": "checks/inodes.md", "action": "update", "content": "# Inodes, once more\n"}}
	})
	if _, err = b.create(more); fault.CodeOf(err) != fault.DuplicatePR {
		t.Errorf("nothing is said of the new head: %v", err)
	}
	b.fail()
	b.world().Review(first.Number, "ann", gitprovider.ReviewApproved, "")
	if _, err = b.create(more); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("approved: %v", err)
	}
}

func TestFailingChecksAskForNothingWhereThePolicySaysSo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.onlyReviewed()
	b.mustOpen(request(nil))
	b.fail()
	b.options.Authority.Policy.Revisions.OnChecks = false
	before := b.world().Branches()
	if e, _ := b.mustRefuse(revising(nil), fault.DuplicatePR); !strings.Contains(e.Message, "waits for its review") {
		t.Errorf("%v", e)
	}
	if now := b.world().Branches(); len(now) != len(before) || now[b.pull(1).Branch] != before[b.pull(1).Branch] {
		t.Error("a branch was written")
	}
}

func TestFailingChecksAskAtMostAsOftenAsThePolicyLetsThem(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustOpen(request(nil))
	b.options.Authority.Policy.Revisions.Max = 1
	b.fail()
	if result, err := b.create(revising(nil)); err != nil || !result.Revised {
		t.Fatalf("%+v, %v", result, err)
	}
	b.fail()
	b.mustRefuse(revising(func(r map[string]any) {
		r["files"] = []any{map[string]any{"path": "checks/inodes.md", "action": "update", "content": "# Again\n"}}
	}), fault.LimitReached)
}
