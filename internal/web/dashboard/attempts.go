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
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/records"
)

// attempt is a row of the audit as pages show it.
type attempt struct {
	record.RecordedAttempt
	Seen  record.PullRecord // what was last seen of the pull request that it is about; zero if that is not known
	about records.About
}

// attemptsOf adds to attempts the facts beside them.
func attemptsOf(ctx context.Context, pulls records.Pulls, sessions records.Sessions,
	rows []record.RecordedAttempt) (out []attempt, err error) {
	about, err := records.AboutOf(ctx, pulls, sessions, rows)
	for _, r := range rows {
		out = append(out, attempt{r, about.Pull(r), about})
	}
	return out, err
}

// Key implements pages.Part. The hash of a row is one of all that the audit has of it.
func (a attempt) Key() any {
	if a.Hash == "" {
		return nil
	}
	return [6]string{a.Hash, a.Word().Text, a.Because(), a.Seen.Title, string(a.Ran()), a.Session}
}

// Ran returns the state of the session that it started; "" for none.
func (a attempt) Ran() sessions.State { return a.about.Session(a.RecordedAttempt) }

// Did returns the row as a sentence, with its link.
func (a attempt) Did() did {
	return did{Act: a.about.Act(a.RecordedAttempt), Link: a.Leads()}
}

// did is an act with the page of what it is about, without the base.
type did struct {
	record.Act
	Link string
}

// Key implements pages.Part: it is the whole.
func (d did) Key() any { return d }

// Moment returns no time.
func (did) Moment() time.Time { return time.Time{} }

// Leads returns the address of what it is about, without the base: the change, the session or, where there is nothing
// else, the row itself.
func (a attempt) Leads() string {
	link := a.Pull()
	switch {
	case a.Started() != "":
		return sessionPath(a.Started())
	case link != nil && link.Page != "" && (!a.IsProposal() || a.Opens()):
		return link.Page
	case a.IsProposal():
		return a.Link()
	}
	return auditRowPath(a.Seq)
}

// Opens reports whether it opened its pull request, or added to it.
func (a attempt) Opens() bool {
	return a.Outcome == record.OutcomeOpened || a.Outcome == record.OutcomeRevised
}

// Moment implements pages.Part.
func (a attempt) Moment() time.Time { return a.Time }

// Link returns the address of the proposal, without the base.
func (a attempt) Link() string { return proposalPath(a.RequestID) }

// SessionLink returns the address of the agent's session that it was made in, without the base.
func (a attempt) SessionLink() string { return sessionPath(a.Session) }

// IsProposal reports whether there is a proposal to look at.
func (a attempt) IsProposal() bool { return slices.Contains(record.ProposalActions(), a.Action) }

// Took returns its duration.
func (a attempt) Took() time.Duration { return a.Duration.Round(time.Millisecond) }

// Pull points to the pull request; nil for none.
func (a attempt) Pull() *pullLink {
	return pullLinkOf(a.PullKey(), a.PRURL, a.Seen.State)
}

// Gates returns the gates that refused.
func (a attempt) Gates() (out []record.Gate) {
	for _, v := range a.Verdicts {
		if v.Ruling == record.Deny && !slices.Contains(out, v.Gate) {
			out = append(out, v.Gate)
		}
	}
	return out
}

// Warnings returns what the gates let pass and a person should know before merging.
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
