package prflow

import (
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// ruling is the verdict of a gate on one request. The zero value passes.
type ruling struct {
	skipped    bool              // there was nothing to judge
	detail     string            // why it passes, for people
	violations []fault.Violation // why it denies
	// likewise, of a gate that says more than violations can: when to try again, which pull request
	denial   *fault.Error
	warnings []string              // what it lets pass and a person should know before merging
	notes    []string              // what the caller should know; the record does not have it
	withhold bool                  // the request's title or paths may hold a secret, so that no record may repeat them
	wanted   *record.RefusedChange // what was asked for, as far as no secret is in it; of the gate of the content
	same     *sameChange           // the answer: this change is proposed already
}

// deny returns a ruling with the error.
func deny(e *fault.Error) ruling {
	return ruling{denial: e, violations: []fault.Violation{{Code: e.Code, Message: e.Message}}}
}

// verdicts holds the ruling of each gate that was asked.
type verdicts map[record.Gate]ruling

func (v verdicts) denied(gate record.Gate) bool { return len(v[gate].violations) > 0 }

// violations lists what the gates found, in the order of the gates.
func (v verdicts) violations() []fault.Violation {
	var out []fault.Violation
	for _, gate := range Gates() {
		out = append(out, v[gate].violations...)
	}
	return out
}

// warnings lists what the gates let pass and a person should know before merging, in the order of the gates.
func (v verdicts) warnings() (out []string) {
	for _, gate := range Gates() {
		out = append(out, v[gate].warnings...)
	}
	return out
}

// all lists every gate once, those that could not be asked as skipped.
func (v verdicts) all() []record.Verdict {
	var out []record.Verdict
	for _, gate := range Gates() {
		r, judged := v[gate]
		verdict := record.Verdict{Gate: gate, Ruling: record.Pass, Detail: r.detail, Warnings: r.warnings}
		for _, violation := range r.violations {
			violation.Present = nil // a file's text is for the answer alone
			verdict.Violations = append(verdict.Violations, violation)
		}
		switch {
		case !judged:
			verdict.Ruling = record.Skipped
		case len(r.violations) > 0:
			verdict.Ruling = record.Deny
		}
		out = append(out, verdict)
	}
	return out
}

// sameChange is an open pull request that holds the very change that is asked for.
type sameChange struct {
	pr gitprovider.PullRequest
	// left is a proposal of the change that is still to be settled, if there is one: that which became the pull request,
	// or one whose own may be open beside it.
	left *record.Proposal
}
