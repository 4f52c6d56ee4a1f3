package github

import (
	"context"
	"fmt"
	"slices"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

// rollup is GitHub's sum of everything that CI reported on a commit.
type rollup struct {
	State    string
	Contexts *struct {
		PageInfo pageInfo
		Nodes    []*contextNode
	}
}

// contextNode is a check run or a commit status.
type contextNode struct {
	Name, Status, Conclusion string // of a check run
	Context, State           string // of a commit status
}

// rollupSelection selects one page of the checks on the head commit; after names a variable, "" asks for the first.
func rollupSelection(after string) string {
	if after != "" {
		after = ", after: $" + after
	}
	return fmt.Sprintf(rollupFields, after)
}

// failing gives the context's name if it failed. Neutral and skipped runs did not.
func (n *contextNode) failing() (string, bool) {
	switch n.Conclusion {
	case "FAILURE", "TIMED_OUT", "CANCELLED", "ACTION_REQUIRED", "STARTUP_FAILURE", "STALE":
		return n.Name, true
	}
	return n.Context, n.State == "FAILURE" || n.State == "ERROR"
}

func (n *statusNode) rollup() *rollup {
	if n.Commits == nil || len(n.Commits.Nodes) == 0 {
		return nil
	}
	return n.Commits.Nodes[0].Commit.StatusCheckRollup
}

// checks reads all pages of what CI reported.
func (p *Provider) checks(ctx context.Context, repo gitprovider.RepoRef, number int, n *statusNode) (gitprovider.Checks,
	error) {
	at := n.rollup()
	if at == nil {
		return gitprovider.Checks{State: gitprovider.ChecksNone}, nil
	}
	out := gitprovider.Checks{State: checksState(at.State)}
	for at != nil && at.Contexts != nil {
		for _, c := range at.Contexts.Nodes {
			if c == nil { // one that the token may not see
				continue
			}
			if name, failed := c.failing(); failed {
				out.Failing = append(out.Failing, name)
			}
		}
		if !at.Contexts.PageInfo.HasNextPage {
			break
		}
		next, err := p.askPull(ctx, repo, number, rollupSelection("after"),
			map[string]string{"after": at.Contexts.PageInfo.EndCursor}, "")
		if err != nil {
			return gitprovider.Checks{}, err
		}
		at = next.rollup()
	}
	slices.Sort(out.Failing)
	out.Failing = slices.Compact(out.Failing)
	if len(out.Failing) > 0 {
		out.State = gitprovider.ChecksFailure
	}
	return out, nil
}

func checksState(s string) gitprovider.ChecksState {
	switch s {
	case "SUCCESS":
		return gitprovider.ChecksSuccess
	case "FAILURE", "ERROR":
		return gitprovider.ChecksFailure
	}
	return gitprovider.ChecksPending // PENDING and EXPECTED
}
