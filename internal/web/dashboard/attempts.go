package dashboard

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/records"
)

// attemptRows makes the rows of listings of attempts.
type attemptRows struct {
	env   handler.Env
	pulls records.Pulls
}

// of makes the rows of a listing, with what was last seen of the pull requests that they are about.
func (h *attemptRows) of(ctx context.Context, attempts []record.RecordedAttempt) ([]pages.Attempt, error) {
	seen, err := records.PullsOf(ctx, h.pulls, attempts)
	if err != nil {
		return nil, err
	}
	var out []pages.Attempt
	for _, r := range attempts {
		row := h.row(r)
		if row.Pull != nil {
			row.Pull.State = string(seen[r.PullKey()].State)
		}
		out = append(out, row)
	}
	return out, nil
}

// row is a row of a listing.
func (h *attemptRows) row(r record.RecordedAttempt) pages.Attempt {
	row := pages.Attempt{
		Link: "/proposals/" + url.PathEscape(r.RequestID), ID: r.RequestID, Title: h.env.Line(r.Title), Repo: h.env.Line(r.Owner + "/" + r.Repo),
		Outcome: string(r.Outcome), Code: string(r.Code), Caller: h.env.Line(r.Caller), Door: string(r.Door),
		At: pages.WhenOf(r.Time, h.env.Now()), Paths: pages.ListOf(r.Paths, h.env.Line),
		Pull: pullOf(r.Provider, r.Owner, r.Repo, r.PRNumber, r.PRURL),
	}
	if row.Title == "" {
		row.Title = "(no title)"
	}
	if row.Repo == "/" {
		row.Repo = "(no repository)"
	}
	for _, v := range r.Verdicts {
		for _, warning := range v.Warnings {
			row.Warnings = append(row.Warnings, h.env.Message(warning))
		}
		if gate := string(v.Gate); v.Ruling == record.Deny && !slices.Contains(row.Gates, gate) {
			row.Gates = append(row.Gates, gate)
		}
	}
	return row
}

// pullOf points to a pull request; nil for none. A repository's name that no provider can have leads nowhere.
func pullOf(provider, owner, name string, number int, address string) *pages.Pull {
	if number < 1 {
		return nil
	}
	p := &pages.Pull{Number: number, URL: pages.WebAddress(address)}
	parts := []string{provider, owner, name}
	if !slices.ContainsFunc(parts, func(part string) bool { return gitprovider.CheckRepoPart(part) != nil }) {
		p.Page = "/pulls/" + strings.Join(append(parts, strconv.Itoa(number)), "/")
	}
	return p
}
