package dashboard

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/web/handler"
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

func (h *proposalPages) show(req *handler.Request) (handler.Response, error) {
	var q viewParams
	if err := handler.DecodeQuery(req, &q); err != nil {
		return handler.Response{}, err
	}
	id := req.PathValue("id")
	rows, err := h.attempts.AttemptsOf(req.Context(), id)
	if err != nil {
		return handler.Response{}, err
	}
	view := pages.Proposal{ID: h.env.Line(id)}
	title := "Proposal"
	for _, r := range rows {
		if slices.Contains(record.ProposalActions(), r.Action) {
			view.Attempts = append(view.Attempts, h.attemptDetail(r))
			title = h.env.Line(r.Title)
		}
	}
	p, err := h.attempts.Proposal(req.Context(), id)
	switch {
	case err == nil:
		view.Change, title = h.changeView(req, p, q.View == "split"), h.env.Line(p.Title)
		if view.Change.Seen, err = h.seenView(req.Context(), p); err != nil {
			return handler.Response{}, err
		}
		view.CanPromote, view.WhyNot = h.mayPromote(req, p)
	case fault.CodeOf(err) != fault.NotFound:
		return handler.Response{}, err
	case len(view.Attempts) == 0:
		return handler.Response{}, fault.New(fault.NotFound, "there is no proposal with this id")
	}
	if title == "" {
		title = "Proposal without a title"
	}
	view.Page = h.frame(req, title, "/proposals")
	return h.html("proposal", view)
}

func (h *proposalPages) mayPromote(req *handler.Request, p record.Proposal) (may bool, whyNot string) {
	switch {
	case p.State != record.StateDryRun:
		return false, ""
	case !p.PrunedAt.IsZero():
		return false, "This was a dry run. It cannot be opened any more: its contents were removed because of their age."
	case h.settings.DryRun:
		return false, "This was a dry run. It cannot be opened here, since the server is in dry run itself (CLAUDEOPS_DRY_RUN)."
	case h.settings.ReadOnly != "":
		return false, "This was a dry run. It cannot be opened here: " + h.env.Line(h.settings.ReadOnly) + "."
	case !req.Principal.Scopes.Has(access.Review):
		return false, "This was a dry run. Opening it needs the scope review."
	}
	return true, ""
}

func (h *proposalPages) attemptDetail(r record.RecordedAttempt) pages.AttemptDetail {
	d := pages.AttemptDetail{
		Attempt: h.rows.row(r), Action: r.Action, Message: h.env.Message(r.Message), Tier: r.Tier.String(),
		Base: h.env.Line(r.Base), Branch: h.env.Line(r.Branch), Took: r.Duration.Round(time.Millisecond).String(), Seq: r.Seq,
	}
	if r.Session != "" {
		d.Session = sessionPath(r.Session)
	}
	for _, v := range r.Verdicts {
		verdict := pages.Verdict{Gate: string(v.Gate), Ruling: string(v.Ruling), Detail: h.env.Message(v.Detail)}
		verdict.Violations, verdict.More = h.violations(v.Violations)
		for _, warning := range v.Warnings {
			verdict.Warnings = append(verdict.Warnings, h.env.Message(warning))
		}
		d.Verdicts = append(d.Verdicts, verdict)
	}
	return d
}

func (h *proposalPages) changeView(req *handler.Request, p record.Proposal, split bool) *pages.Change {
	here := "/proposals/" + url.PathEscape(p.ID)
	change := &pages.Change{
		State: string(p.State), Abandoned: p.Abandoned, Type: string(p.ChangeType), Title: h.env.Line(p.Title),
		Body: pages.Markdown(h.env.Redact(prflow.AgentText(p.Body))), Branch: h.env.Line(p.Branch), Base: h.env.Line(p.Base),
		BaseCommit: short(p.BaseCommit), Commit: p.Commit, Digest: p.Digest, At: pages.WhenOf(p.CreatedAt, h.env.Now()),
		Pull:    pullOf(p.Provider, p.Owner, p.Repo, p.PRNumber, p.PRURL),
		Unified: here + "#files", SideBySide: here + "?view=split#files",
	}
	if !p.PrunedAt.IsZero() {
		change.DiffNote = "Text and contents were removed on " + p.PrunedAt.UTC().Format(time.DateOnly) +
			" because of their age (CLAUDEOPS_RETENTION). What was decided stays on the record."
		for _, f := range p.Files {
			change.Files = append(change.Files, pages.File{Path: h.env.Line(f.Path), Action: string(f.Action), Content: "(removed)"})
		}
		return change
	}
	change.Diff, change.DiffNote = h.compare(req, p, split)
	left := maxWholeInAll
	for i, f := range p.Files {
		if i == maxWholeFiles {
			change.MoreFiles = len(p.Files) - i
			break
		}
		shown := f.Content[:min(len(f.Content), maxWholeFile, left)]
		left -= len(shown)
		change.Files = append(change.Files, pages.File{
			Path: h.env.Line(f.Path), Action: string(f.Action), Content: h.env.Text(shown, len(shown)+1), Cut: len(f.Content) - len(shown),
		})
	}
	return change
}

// compare shows what a proposal changes in its base branch as it is now. The record has the new contents only.
func (h *proposalPages) compare(req *handler.Request, p record.Proposal, split bool) (pages.Diff, string) {
	ctx, cancel := context.WithTimeout(req.Context(), compareTimeout)
	defer cancel()
	found, err := h.reader.Compare(ctx, p)
	if err != nil {
		return pages.Diff{}, "There is no difference to show, since the repository could not be read: " +
			h.env.Message(fault.From(err).Message)
	}
	diff := pages.ParseDiff(h.env.Redact(found.Diff), split)
	base := h.env.Line(p.Base)
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
func (h *proposalPages) promote(req *handler.Request) (handler.Response, error) {
	if _, err := handler.ReadForm(req); err != nil {
		e := fault.From(err)
		h.flow(req).Reject(req.Context(), req.Caller(), e.Code, e.Message)
		return handler.Response{}, err
	}
	result, err := h.flow(req).Promote(req.Context(), req.Caller(), req.PathValue("id"))
	if err != nil {
		return handler.Response{}, err
	}
	return h.goTo("/proposals/" + url.PathEscape(result.RequestID)), nil
}

// flow is the use case at the caller's ceiling.
func (h *proposalPages) flow(req *handler.Request) Flow { return h.flowAt(req.Principal.Ceiling) }

// refused records a proposal that the guard has refused.
func (h *proposalPages) refused(req *handler.Request, why *fault.Error) error {
	h.flow(req).Reject(req.Context(), req.Caller(), why.Code, why.Message)
	return why
}
