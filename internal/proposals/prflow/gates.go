package prflow

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// gates lists them in their order. Whatever walks through the gates walks through this list: the pipeline, the verdicts
// in answers and records, the filters of the dashboard and docs/explain/gates.md.
func gates() []gate {
	return []gate{
		argumentsGate(), tierGate(), scopeGate(), baseTreeGate(), contentGate(), pauseGate(), repositoryGate(),
		factsGate(), revisionGate(),
		duplicateGate(), cooldownGate(), auditGate(), capsGate(),
	}
}

// Gates returns the names of the gates in their order.
func Gates() []record.Gate {
	var out []record.Gate
	for _, g := range gates() {
		out = append(out, g.Name)
	}
	return out
}

// gate is one rule that a proposal has to pass. Judge takes the request and what was read, and writes nothing; an error
// says that it could not be judged, and then nothing is proposed.
type gate struct {
	Name  record.Gate
	Phase phase
	Asks  string // what it looks at, for people; docs/explain/gates.md has it
	Judge func(ctx context.Context, on rules, r *createRequest, e *evidence) (ruling, error)
}

// phase says what a gate needs to have been read. The phases follow one another.
type phase string

const (
	// judged together with the next phase: a refusal lists all violations
	phaseRequest    phase = "the request alone"
	phaseRepository phase = "a snapshot of the base branch"     // likewise
	phasePulls      phase = "the open and closed pull requests" // one by one: the first that denies is the answer
	phaseReserve    phase = "the transaction that reserves"     // in a dry run, what is recorded now
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

// runGates asks the gates of a phase in their order. In the first two phases it asks all of them; after that the first
// that denies ends it, and its denial is the error. same is the answer if this change is proposed already.
func (c *creation) runGates(ctx context.Context, p phase) (same *sameChange, err error) {
	for _, g := range gates() {
		if g.Phase == p {
			delete(c.verdicts, g.Name)
		}
	}
	for _, g := range gates() {
		if g.Phase != p {
			continue
		}
		r, err := g.Judge(ctx, c.rules, &c.request, &c.evidence)
		if err != nil {
			return nil, err
		}
		if r.skipped {
			continue
		}
		r.violations = c.withoutSecrets(ctx, r.violations)
		if c.verdicts.denied(record.GateContent) { // a warning may repeat what the content is refused for
			r.warnings = nil
		}
		c.verdicts[g.Name] = r
		switch {
		case r.denial != nil:
			return nil, r.denial
		case r.same != nil:
			return r.same, nil
		}
	}
	return nil, nil
}

// withoutSecrets replaces violations that quote what looks like a secret, such as the name of an unknown argument:
// violations are returned, logged and recorded.
func (c *creation) withoutSecrets(ctx context.Context, violations []fault.Violation) []fault.Violation {
	for i, v := range violations {
		if c.looksSecret(ctx, v.Path+"\n"+v.Message+"\n"+v.Suggestion) {
			violations[i] = fault.Violation{Code: v.Code, Rule: v.Rule, Message: Withheld,
				Suggestion: "leave secrets out of names"}
		}
	}
	return violations
}

// looksSecret reports whether a short text holds what looks like a secret, or cannot be searched.
func (c *creation) looksSecret(ctx context.Context, text string) bool {
	found, err := c.rules.secrets.Secrets(ctx, "names", text)
	return err != nil && ctx.Err() == nil || len(found) > 0
}

// judgePullsAgain reads the pull requests of the repository once more and asks the gates that are about them. What a
// revision is judged by (its branch, what people have said, who has made it) is not read again, so that it keeps the
// position that it was read at: a revision that was made since is found when the files are reserved.
func (c *creation) judgePullsAgain(ctx context.Context) (*sameChange, error) {
	seen := c.evidence.seen
	if err := c.evidence.readPullsAgain(ctx, c.closedSince()); err != nil {
		return nil, err
	}
	if c.evidence.revision != nil {
		c.evidence.seen = seen
	}
	return c.runGates(ctx, phasePulls)
}

func (c *creation) closedSince() time.Time {
	return c.request.started.Add(-c.rules.Policy.Limits.Cooldown)
}

// denyDuplicate refuses in the name of the duplicate gate, for a pull request that it could not see yet.
func (c *creation) denyDuplicate(number int, url, title string, paths []string) error {
	e := duplicateOf(number, url, title, c.request.overlap(paths))
	if len(e.Existing.Paths) == 0 { // it has not the files, so it has the texts
		e = duplicateText(number, url, title, paths, c.request.paths())
	}
	c.verdicts[record.GateDuplicate] = deny(e)
	return e
}

// argumentsGate denies what is malformed. Reading the request finds that; see newRequest.
func argumentsGate() gate {
	return gate{
		Name: record.GateArguments, Phase: phaseRequest,
		Asks: "shape, lengths, known values, sections that the policy requires",
		Judge: func(_ context.Context, _ rules, r *createRequest, _ *evidence) (ruling, error) {
			return ruling{violations: r.malformed}, nil
		},
	}
}

// tierGate denies what the configured tier may not do; gitprovider.NewChangeSet has the rule.
func tierGate() gate {
	return gate{
		Name: record.GateTier, Phase: phaseRequest,
		Asks: "whether the configured tier may propose, and as many files",
		Judge: func(_ context.Context, on rules, r *createRequest, _ *evidence) (ruling, error) {
			out := ruling{skipped: len(r.asked.Files) == 0, detail: "tier " + on.Tier.String()}
			out.violations = r.excludedFor(func(c fault.Code) bool { return c == fault.TierDenied })
			if r.asked.repliesOnly() {
				out.skipped, out.violations = false, gitprovider.ValidateTier(on.Policy.Tiers, on.Tier, 0)
			}
			return out, nil
		},
	}
}

// noPath stands for an empty path in a violation.
const noPath = `""`

// scopeGate denies paths that are outside of the policy's scope or not in canonical form; gitprovider.NewChangeSet has
// the rule.
func scopeGate() gate {
	return gate{
		Name: record.GateScope, Phase: phaseRequest,
		Asks: "whether each path is canonical and in the scope",
		Judge: func(_ context.Context, _ rules, r *createRequest, _ *evidence) (ruling, error) {
			out := ruling{skipped: len(r.asked.Files) == 0}
			for _, v := range r.excludedFor(func(c fault.Code) bool { return c != fault.TierDenied }) {
				if v.Path != noPath { // the gate of the arguments has said so
					out.violations = append(out.violations, v)
				}
			}
			return out, nil
		},
	}
}

// pauseGate denies every proposal while people have paused everything, or the repository. Each claim asks again, in its
// transaction.
func pauseGate() gate {
	return gate{
		Name: record.GatePause, Phase: phaseRequest,
		Asks: "whether a person has paused everything, or the repository",
		Judge: func(ctx context.Context, on rules, r *createRequest, _ *evidence) (ruling, error) {
			if on.pauses == nil {
				return ruling{detail: "nothing is paused"}, nil
			}
			// creation.attempt records the denial, as it does that of a claim
			return ruling{detail: "nothing is paused"}, on.pauses.Paused(ctx, r.asked.RepoOwner, r.asked.RepoName)
		},
	}
}

// auditGate denies every proposal while the heads of the audit cannot be exported, where the policy requires that they
// are (audit.require_sink). It asks before anything is written: the row of the proposal itself is exported after it.
func auditGate() gate {
	return gate{
		Name: record.GateAudit, Phase: phasePulls,
		Asks: "whether the audit was exported, where the policy requires it",
		Judge: func(ctx context.Context, on rules, _ *createRequest, _ *evidence) (ruling, error) {
			switch {
			case !on.Policy.Server.RequireSink:
				return ruling{detail: "the policy requires no sink"}, nil
			case on.exported == nil:
				return deny(fault.New(fault.Misconfigured,
					"the policy requires a sink for the audit (audit.require_sink), and there is none")), nil
			}
			if err := on.exported(ctx); err != nil {
				if ctx.Err() != nil {
					return ruling{}, err
				}
				denial := *fault.From(err)
				denial.Message = "nothing is proposed, since the policy requires that the audit is exported " +
					"(audit.require_sink): " + denial.Message
				return deny(&denial), nil
			}
			return ruling{detail: "all of it was exported"}, nil
		},
	}
}
