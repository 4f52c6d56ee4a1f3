package prflow

import (
	"fmt"
	"slices"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/policy"
	"github.com/claudeops/claudeops/internal/record"
)

// maxForeignWarnings bounds the pull requests of others that one answer names.
const maxForeignWarnings = 5

// foreignOverlaps lists the open pull requests of others that change one of the files, newest first.
func (c *creation) foreignOverlaps() []gitprovider.PullRequest {
	var out []gitprovider.PullRequest
	for _, pr := range slices.Backward(c.snapshot.Foreign) {
		if len(c.overlap(pr.Paths)) > 0 {
			out = append(out, pr)
		}
	}
	return out
}

// warnOfForeign says in the answer which pull requests of people, or from forks, change the same files: whoever reviews ours
// has both to merge. What an earlier look has said is replaced.
func (c *creation) warnOfForeign() {
	before := c.foreignWarnings
	c.foreignWarnings = c.warningsOfForeign()
	c.warnings = slices.DeleteFunc(c.warnings, func(w string) bool { return slices.Contains(before, w) })
	c.warnings = append(c.warnings, c.foreignWarnings...)
}

func (c *creation) warningsOfForeign() (out []string) {
	overlaps := c.foreignOverlaps()
	for _, pr := range overlaps[:min(len(overlaps), maxForeignWarnings)] {
		out = append(out, fmt.Sprintf("#%d%s also changes %s (%s)", pr.Number, byAuthor(pr),
			listed(c.overlap(pr.Paths)), pr.URL))
	}
	if more := len(overlaps) - maxForeignWarnings; more > 0 {
		out = append(out, fmt.Sprintf("%d further pull requests of others change these files", more))
	}
	if unread := c.snapshot.ForeignUnread; unread > 0 {
		out = append(out, fmt.Sprintf(
			"%d open pull requests of others were not read in full; they may change the same files", unread))
	}
	return out
}

// byAuthor is " by ann", or "" if the host does not say.
func byAuthor(pr gitprovider.PullRequest) string {
	if pr.Author == "" {
		return ""
	}
	return " by " + clean(pr.Author, maxName)
}

// foreignDuplicate refuses a change of a file that a pull request of somebody else changes, if the policy wants that.
func (c *creation) foreignDuplicate() error {
	if c.Policy.Duplicates != policy.DuplicatesAny {
		return nil
	}
	overlaps := c.foreignOverlaps()
	if len(overlaps) == 0 {
		return nil
	}
	pr := overlaps[0]
	overlap := c.overlap(pr.Paths)
	e := fault.New(fault.DuplicatePR, "the open pull request #%d%s (%s) already changes %s, and the policy lets no two change "+
		"the same file (duplicates: any); wait for its review, or propose other files", pr.Number, byAuthor(pr), pr.URL,
		listed(overlap))
	e.Existing = &fault.ExistingPR{Number: pr.Number, URL: pr.URL, Title: clean(pr.Title, maxTitle), Paths: overlap}
	return c.deny(record.GateDuplicate, e)
}
