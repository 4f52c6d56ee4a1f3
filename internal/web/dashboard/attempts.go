package dashboard

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/records"
)

// attempt is a row of the audit as pages show it.
type attempt struct {
	record.RecordedAttempt
	Seen record.PullRecord // what was last seen of the pull request that it is about; zero if that is not known
}

// attemptsOf are attempts with what was last seen of the pull requests that they are about.
func attemptsOf(ctx context.Context, pulls records.Pulls, rows []record.RecordedAttempt) (out []attempt, err error) {
	seen, err := records.PullsOf(ctx, pulls, rows)
	for _, r := range rows {
		out = append(out, attempt{r, seen[r.PullKey()]})
	}
	return out, err
}

// Key implements pages.Part. The hash of a row is one of all that the audit has of it.
func (a attempt) Key() any {
	if a.Hash == "" {
		return nil
	}
	return [3]string{a.Hash, a.Word().Text, a.Because()}
}

// Moment implements pages.Part.
func (a attempt) Moment() time.Time { return a.Time }

// Link is the address of the proposal, without the base.
func (a attempt) Link() string { return proposalPath(a.RequestID) }

// SessionLink is the address of the agent's session that it was made in, without the base.
func (a attempt) SessionLink() string { return sessionPath(a.Session) }

// IsProposal reports whether there is a proposal to look at.
func (a attempt) IsProposal() bool { return slices.Contains(record.ProposalActions(), a.Action) }

// Repository is owner/name, or "".
func (a attempt) Repository() string {
	if a.Owner+a.Repo == "" {
		return ""
	}
	return a.Owner + "/" + a.Repo
}

// Took is how long it took.
func (a attempt) Took() time.Duration { return a.Duration.Round(time.Millisecond) }

// Pull points to the pull request; nil for none.
func (a attempt) Pull() *pullLink {
	return pullLinkOf(a.PullKey(), a.PRURL, a.Seen.State)
}

// Gates are those that refused.
func (a attempt) Gates() (out []record.Gate) {
	for _, v := range a.Verdicts {
		if v.Ruling == record.Deny && !slices.Contains(out, v.Gate) {
			out = append(out, v.Gate)
		}
	}
	return out
}

// Warnings are what the gates let pass and a person should know before merging.
func (a attempt) Warnings() (out []string) {
	for _, v := range a.Verdicts {
		out = append(out, v.Warnings...)
	}
	return out
}

// pullLink points to a pull request.
type pullLink struct {
	Number int
	Page   string // address of our page, without the base; "" if there is none
	URL    string // http(s) address at the provider, or ""
	State  record.PullState
}

// pullLinkOf points to a pull request; nil for none. A repository's name that no provider can have leads nowhere.
func pullLinkOf(key record.PullKey, address string, state record.PullState) *pullLink {
	if key.Number < 1 {
		return nil
	}
	p := &pullLink{Number: key.Number, URL: pages.WebAddress(address), State: state}
	parts := []string{key.Provider, key.Owner, key.Repo}
	if !slices.ContainsFunc(parts, func(part string) bool { return gitprovider.CheckRepoPart(part) != nil }) {
		p.Page = "/pulls/" + strings.Join(append(parts, strconv.Itoa(key.Number)), "/")
	}
	return p
}

func proposalPath(id string) string { return "/proposals/" + url.PathEscape(id) }
