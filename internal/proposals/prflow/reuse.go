package prflow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// reuse answers with the pull request that already holds the very same change, after it has completed what that one
// lacks.
func (c *creation) reuse(ctx context.Context, same sameChange) (CreateResult, error) {
	if same.left != nil && !c.rules.DryRun {
		var err error
		if same, err = c.settleSame(ctx, same); err != nil {
			return CreateResult{}, err
		}
	}
	if err := c.admitted(ctx); err != nil {
		return CreateResult{}, err
	}
	if !c.rules.DryRun {
		release, err := c.rules.claimWrite(ctx, c.evidence.snapshot.Repo)
		if err != nil {
			return CreateResult{}, err
		}
		defer release()
	}
	pr := same.pr
	row := c.auditRow(record.OutcomeReused, nil)
	row.PRNumber, row.PRURL, row.Branch = pr.Number, pr.URL, pr.Branch
	if err := c.recordRow(ctx, row, nil); err != nil {
		return CreateResult{}, err
	}
	if !c.rules.DryRun {
		ctx, cancel := context.WithTimeout(ctx, writeTimeout)
		defer cancel()
		c.call.Progress("completing the pull request that there is")
		setup := c.setup()
		c.warnings = append(c.warnings, sideBySide(c.log,
			func() string { return setup.label(ctx, pr) },
			func() string { return setup.askAgain(ctx, pr) },
			func() string { return c.mendBody(ctx, pr) },
			func() string { return mendRevision(ctx, c, pr) },
			func() string { return replying{c}.mendReplies(ctx, pr) },
		)...)
	}
	c.warnings = append(c.warnings, untaken(c, pr)...)
	r := c.result(pr)
	r.Reused, r.DryRun = true, c.rules.DryRun
	return r, nil
}

// untaken says that a pull request which was there keeps its own title and body where the call has others.
func untaken(c *creation, pr gitprovider.PullRequest) []string {
	if c.evidence.revision != nil || pr.CreatedAt.IsZero() { // the one has them set, and of the other nothing was read
		return nil
	}
	var kept []string
	if strings.TrimPrefix(pr.Title, draftTitle) != strings.TrimPrefix(c.draft.title, draftTitle) {
		kept = append(kept, "title")
	}
	// otherwise it is repaired, or was rewritten
	if markForm().MatchString(pr.Body) && plainLines(AgentText(pr.Body)) != plainLines(AgentText(c.draft.body)) {
		kept = append(kept, "body")
	}
	if len(kept) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("#%d has the same files and keeps its own %s; those of this call were not taken",
		pr.Number, strings.Join(kept, " and "))}
}

// mendRevision sets title and body of a revision that was made, where the forge had refused them; it warns again if it
// does so again.
func mendRevision(ctx context.Context, c *creation, pr gitprovider.PullRequest) (warning string) {
	editor, can := c.evidence.resolution.Provider.(gitprovider.Editor)
	if c.evidence.revision == nil || !can || c.evidence.marks[pr.Number].Digest == c.draft.digest {
		return ""
	}
	made, err := replying{c}.madeRevision(ctx, pr)
	if err == nil && (made == nil || replying{c}.isOlderText(pr, *made)) { // or somebody works on it
		return ""
	}
	if err == nil {
		_, err = editor.SetText(ctx, c.evidence.snapshot.Repo, pr.Number, revisedTitle(pr.Title, made.Title), made.Body)
	}
	if err == nil {
		return ""
	}
	c.log.warn("text not set", err, "pr", pr.Number)
	return textNotSet + c.log.redactedMessage(err)
}

// madeRevision returns the record of the same revision as it was made; nil if it is not there, or if somebody works on
// it.
func (c replying) madeRevision(ctx context.Context, pr gitprovider.PullRequest) (*record.Proposal, error) {
	proposals, err := c.service.History.ByDigest(ctx, c.draft.digest)
	at := slices.IndexFunc(proposals, func(p record.Proposal) bool {
		return p.State == record.StateOpened && p.Revises == pr.Number && p.Commit == pr.HeadCommit && p.Body != ""
	})
	if err != nil || at < 0 {
		return nil, err
	}
	return &proposals[at], nil
}

// isOlderText reports whether the pull request has the text of a later revision than the recorded one.
func (c replying) isOlderText(pr gitprovider.PullRequest, made record.Proposal) bool {
	marks, err := c.evidence.settler.marksOf(c.evidence.resolution.Provider.Name(), c.evidence.snapshot.Repo)
	if err != nil {
		return false
	}
	m, _ := marks.firstSigned(gitprovider.PullRequest{Body: made.Body, Branch: pr.Branch, RepoID: pr.RepoID})
	return c.evidence.marks[pr.Number].Revision > m.Revision
}

// settleSame settles the proposal that became the pull request. If it was the second one on its files and is withdrawn,
// the gates run again. What cannot be settled now is settled by Resume or the next request for these files.
func (c *creation) settleSame(ctx context.Context, same sameChange) (sameChange, error) {
	if err := c.evidence.settler.settleProposal(ctx, *same.left); err != nil {
		c.log.warn("proposal of the same change not settled", err, "left", same.left.ID)
		return same, nil
	}
	now, err := c.service.History.Proposal(ctx, same.left.ID)
	if err != nil || now.State != record.StateFailed {
		return same, err
	}
	again, err := c.judgePullsAgain(ctx)
	switch {
	case err != nil:
		return same, err
	case again == nil:
		return same, fault.New(fault.Conflict,
			"#%d, which held the same change, was withdrawn, and the one that it was withdrawn "+
				"for is not open any more; make the identical call again", same.pr.Number)
	}
	return *again, nil
}

// mendBody puts our body back, with footer and mark, where it was lost on the way. A body that somebody has rewritten
// stays as it is.
func (c *creation) mendBody(ctx context.Context, pr gitprovider.PullRequest) (warning string) {
	seen := !pr.CreatedAt.IsZero() // otherwise it has not been read, as after a lost race
	editor, can := c.evidence.resolution.Provider.(gitprovider.Editor)
	if !can || !seen || !strings.HasPrefix(pr.Branch, gitprovider.BranchPrefix) || markForm().MatchString(pr.Body) {
		return ""
	}
	bodies, err := c.bodiesOf(ctx, pr)
	if err == nil {
		at := slices.IndexFunc(bodies, func(body string) bool { return isRestOf(pr.Body, body) })
		if at < 0 {
			return fmt.Sprintf("the body of #%d was rewritten and lacks the mark of Claude Ops; it was left as it is", pr.Number)
		}
		_, err = editor.SetText(ctx, c.evidence.snapshot.Repo, pr.Number, "", bodies[at])
	}
	if err != nil {
		c.log.warn("body not mended", err, "pr", pr.Number)
		return fmt.Sprintf("the body of #%d lacks the mark of Claude Ops, which could not be put back: %s", pr.Number,
			c.log.redactedMessage(err))
	}
	return ""
}

// bodiesOf lists what the pull request's body may have been: as recorded, and as this request would make it for that
// branch.
func (c *creation) bodiesOf(ctx context.Context, pr gitprovider.PullRequest) ([]string, error) {
	proposals, err := c.service.History.ByDigest(ctx, c.draft.digest)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range proposals {
		if p.PRNumber == pr.Number && p.Branch == pr.Branch && p.Body != "" {
			out = append(out, p.Body)
		}
	}
	anew, err := c.draftFor(pr.Branch)
	return append(out, anew.body), err
}

// isRestOf reports whether a body is a remainder of ours: its beginning, or all of the agent's text with a damaged
// footer.
func isRestOf(have, ours string) bool {
	have, ours = plainLines(have), plainLines(ours)
	if strings.Contains(have, strings.TrimSpace(footerOpening)) {
		return plainLines(AgentText(have)) == plainLines(AgentText(ours))
	}
	return strings.HasPrefix(ours, have)
}

// plainLines returns a text without what hosts change about it: line ends, and space around it.
func plainLines(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }

// mendReplies posts the answers of a revision that was made, where the forge had refused them; it warns again if it
// does so again.
func (c replying) mendReplies(ctx context.Context, pr gitprovider.PullRequest) (warning string) {
	if c.evidence.revision == nil || !c.request.asked.answers() || pr.CreatedAt.IsZero() { // of the last nothing was read
		return ""
	}
	made, err := c.madeRevision(ctx, pr)
	if made == nil {
		if err != nil {
			c.log.warn("the same revision not looked for", err, "pr", pr.Number)
		}
		return ""
	}
	a := answersOf(c.evidence.resolution.Provider, *made, pr)
	left, err := a.findMissing(ctx)
	if err == nil && !left.none() {
		left, err = a.post(ctx, left)
	}
	c.draft.posted = a.posted(left)
	if err == nil {
		return ""
	}
	c.log.warn("review not answered", err, "pr", pr.Number)
	return a.notPosted(left, c.log.redactedMessage(err))
}
