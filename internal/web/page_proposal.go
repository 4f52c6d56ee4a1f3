package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// Bounds of a page about one change.
const (
	compareTimeout = 10 * time.Second // for the base branch at the provider
	maxWholeFiles  = 50
	maxWholeFile   = 64 << 10 // bytes of a whole content
	maxWholeInAll  = 1 << 20
)

// viewParams choose how a difference is shown.
type viewParams struct {
	View string `query:"view" enum:"unified,split"`
	Done string `query:"done" enum:"approve,request-changes,comment,merge,close"`
}

func (s *Server) proposalPage(c *call) (answer, error) {
	var q viewParams
	if err := decodeQuery(c, &q); err != nil {
		return answer{}, err
	}
	id := c.PathValue("id")
	rows, err := s.Records.AttemptsOf(c.Context(), id)
	if err != nil {
		return answer{}, err
	}
	view := pages.Proposal{ID: s.words(id)}
	title := "Proposal"
	for _, r := range rows {
		if slices.Contains(record.ProposalActions(), r.Action) {
			view.Attempts = append(view.Attempts, s.attemptDetail(r))
			title = s.words(r.Title)
		}
	}
	p, err := s.Records.Proposal(c.Context(), id)
	switch {
	case err == nil:
		view.Change, title = s.changeView(c, p, q.View == "split"), s.words(p.Title)
		if view.Change.Seen, err = s.seenView(c.Context(), p); err != nil {
			return answer{}, err
		}
		view.CanPromote, view.WhyNot = s.mayPromote(c, p)
	case fault.CodeOf(err) != fault.NotFound:
		return answer{}, err
	case len(view.Attempts) == 0:
		return answer{}, fault.New(fault.NotFound, "there is no proposal with this id")
	}
	if title == "" {
		title = "Proposal without a title"
	}
	view.Page = s.frame(c, title, "/proposals")
	return s.html("proposal", view)
}

func (s *Server) mayPromote(c *call, p record.Proposal) (may bool, whyNot string) {
	switch {
	case p.State != record.StateDryRun:
		return false, ""
	case !p.PrunedAt.IsZero():
		return false, "This was a dry run. It cannot be opened any more: its contents were removed because of their age."
	case s.DryRun:
		return false, "This was a dry run. It cannot be opened here, since the server is in dry run itself (CLAUDEOPS_DRY_RUN)."
	case s.ReadOnly != "":
		return false, "This was a dry run. It cannot be opened here: " + s.words(s.ReadOnly) + "."
	case !c.who.Scopes.Has(access.Review):
		return false, "This was a dry run. Opening it needs the scope review."
	}
	return true, ""
}

func (s *Server) attemptDetail(r record.RecordedAttempt) pages.AttemptDetail {
	d := pages.AttemptDetail{
		Attempt: s.attemptRow(r), Action: r.Action, Message: s.text(r.Message, maxMessage), Tier: r.Tier.String(),
		Base: s.words(r.Base), Branch: s.words(r.Branch), Took: r.Duration.Round(time.Millisecond).String(), Seq: r.Seq,
	}
	if r.Session != "" {
		d.Session = sessionPath(r.Session)
	}
	for _, v := range r.Verdicts {
		verdict := pages.Verdict{Gate: string(v.Gate), Ruling: string(v.Ruling), Detail: s.text(v.Detail, maxMessage)}
		verdict.Violations, verdict.More = s.violationsOf(v.Violations)
		for _, warning := range v.Warnings {
			verdict.Warnings = append(verdict.Warnings, s.text(warning, maxMessage))
		}
		d.Verdicts = append(d.Verdicts, verdict)
	}
	return d
}

func (s *Server) changeView(c *call, p record.Proposal, split bool) *pages.Change {
	here := "/proposals/" + url.PathEscape(p.ID)
	change := &pages.Change{
		State: string(p.State), Abandoned: p.Abandoned, Type: string(p.ChangeType), Title: s.words(p.Title),
		Body: pages.Markdown(s.Redact(prflow.AgentText(p.Body))), Branch: s.words(p.Branch), Base: s.words(p.Base),
		BaseCommit: short(p.BaseCommit), Commit: p.Commit, Digest: p.Digest, At: pages.WhenOf(p.CreatedAt, s.Now()),
		Pull:    pullOf(p.Provider, p.Owner, p.Repo, p.PRNumber, p.PRURL),
		Unified: here + "#files", SideBySide: here + "?view=split#files",
	}
	if !p.PrunedAt.IsZero() {
		change.DiffNote = "Text and contents were removed on " + p.PrunedAt.UTC().Format(time.DateOnly) +
			" because of their age (CLAUDEOPS_RETENTION). What was decided stays on the record."
		for _, f := range p.Files {
			change.Files = append(change.Files, pages.File{Path: s.words(f.Path), Action: string(f.Action), Content: "(removed)"})
		}
		return change
	}
	change.Diff, change.DiffNote = s.compare(c, p, split)
	left := maxWholeInAll
	for i, f := range p.Files {
		if i == maxWholeFiles {
			change.MoreFiles = len(p.Files) - i
			break
		}
		shown := f.Content[:min(len(f.Content), maxWholeFile, left)]
		left -= len(shown)
		change.Files = append(change.Files, pages.File{
			Path: s.words(f.Path), Action: string(f.Action), Content: s.text(shown, len(shown)+1), Cut: len(f.Content) - len(shown),
		})
	}
	return change
}

// compare shows what a proposal changes in its base branch as it is now. The record has the new contents only.
func (s *Server) compare(c *call, p record.Proposal, split bool) (pages.Diff, string) {
	ctx, cancel := context.WithTimeout(c.Context(), compareTimeout)
	defer cancel()
	found, err := s.Reader.Compare(ctx, p)
	if err != nil {
		return pages.Diff{}, "There is no difference to show, since the repository could not be read: " +
			s.text(fault.From(err).Message, maxMessage)
	}
	diff := pages.ParseDiff(s.Redact(found.Diff), split)
	base := s.words(p.Base)
	switch {
	case len(diff.Files) == 0 || found.Diff == "":
		return pages.Diff{}, fmt.Sprintf("The branch %s holds all of this now, so there is no difference any more.", base)
	case found.BaseCommit == p.BaseCommit:
		return diff, fmt.Sprintf("Compared with %s at %s, where the proposal was made.", base, short(found.BaseCommit))
	}
	return diff, fmt.Sprintf("Compared with %s as it is now, at %s. It has moved since the proposal was made at %s.",
		base, short(found.BaseCommit), short(p.BaseCommit))
}

// short is the beginning of an object id.
func short(id string) string { return id[:min(len(id), 12)] }

// promoteByForm is promote for a person at a page, who is led to what became of it.
func (s *Server) promoteByForm(c *call) (answer, error) {
	if _, err := readForm(c); err != nil {
		e := fault.From(err)
		s.flow(c).Reject(c.Context(), caller(c), e.Code, e.Message)
		return answer{}, err
	}
	result, err := s.flow(c).Promote(c.Context(), caller(c), c.PathValue("id"))
	if err != nil {
		return answer{}, err
	}
	return s.goTo("/proposals/" + url.PathEscape(result.RequestID)), nil
}

// goTo leads a browser from a form to a page, given without the base path.
func (s *Server) goTo(page string) answer {
	return answer{status: http.StatusSeeOther, header: http.Header{"Location": {s.Network.BasePath + page}}}
}

// mergeableOf is whether a pull request can be merged, in words.
func mergeableOf(status gitprovider.Status) string {
	switch {
	case status.State != gitprovider.StateOpen:
		return "it is not open"
	case status.Mergeable == nil:
		return "the provider is still finding out"
	case *status.Mergeable:
		return "yes"
	}
	return "no: it conflicts with its base"
}
