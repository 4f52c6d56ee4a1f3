package prflow

import (
	"context"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// judge asks the gates of a phase in their order. In the first two phases it asks all of them; after that the first
// that denies ends it, and its denial is the error. same is the answer if this change is proposed already.
func (c *creation) judge(ctx context.Context, p phase) (same *sameChange, err error) {
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
	return c.judge(ctx, phasePulls)
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
