package prflow

import (
	"context"
	"fmt"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// revisionGate denies a commit to a pull request that is not ours, that people have pushed to or approved, that has no
// request for a revision, or that was revised too often.
func revisionGate() gate {
	return gate{
		Name: record.GateRevision, Phase: phaseRepository,
		Asks: "of a request with revises: whether that pull request is open, ours by mark and head, and reviewed or " +
			"commented since, and was not " +
			"revised too often",
		Judge: judgeRevision,
	}
}

func judgeRevision(_ context.Context, on rules, r *request, e *evidence) (ruling, error) {
	rev := e.revision
	switch {
	case r.asked.Revises == 0:
		return ruling{detail: "opens a pull request of its own"}, nil
	case rev == nil:
		return ruling{skipped: true}, nil
	case rev.why != nil:
		return ruling{violations: []fault.Violation{*rev.why}}, nil
	case rev.head == nil && rev.same == nil: // it could not be read
		return ruling{skipped: true}, nil
	case rev.same != nil:
		return ruling{detail: fmt.Sprintf("the head of #%d is this very revision", rev.pr.Number)}, nil
	}
	out := ruling{detail: fmt.Sprintf("revision %d of %d of #%d", rev.made+1, on.Policy.Revisions.Max, rev.pr.Number)}
	if rev.asks != nil {
		out.detail += ", after the review of " + plainName(rev.asks.Author)
	} else if len(rev.red) > 0 {
		out.detail += ", since checks failed: " + namesOf(rev.red)
	}
	if r.asked.answers() {
		out.violations = judgeReplies(r, rev)
	}
	if r.asked.repliesOnly() {
		out.detail += ", without a commit"
		return out, nil
	}
	if len(rev.net) == 0 {
		out.violations = append(out.violations, fault.Violation{
			Code: fault.NoChange, Path: "revises", Rule: "nothing-left",
			Message:    fmt.Sprintf("#%d would change nothing any more", rev.pr.Number),
			Suggestion: "report that it can be closed",
		})
	}
	for _, f := range rev.also {
		if f.Content == nil && f.Action == "update" {
			out.violations = append(out.violations, fault.Violation{
				Code: fault.ContentDenied, Path: f.Path, Rule: "file-size", Final: true,
				Message:    fmt.Sprintf("%s, which #%d brings, is too large to be judged again", quote(f.Path), rev.pr.Number),
				Suggestion: "report what should change, for a person",
			})
		}
	}
	return out, nil
}
