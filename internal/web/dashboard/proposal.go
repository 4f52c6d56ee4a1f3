package dashboard

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/views"
)

// Bounds of a page about one change.
const (
	compareTimeout = 10 * time.Second // for the base branch at the provider
	maxWholeFiles  = 50
	maxWholeFile   = 64 << 10 // bytes of a whole content
	maxWholeInAll  = 1 << 20
)

// proposalParams choose what the page of a proposal shows.
type proposalParams struct {
	View string `json:"view,omitempty" enum:"unified,split,read"`
	Part int    `json:"part,omitempty" minimum:"1" maximum:"100000"`
	As   string `json:"as,omitempty" enum:"proposed"` // as it was proposed, though it is a pull request now
}

// proposalPage is all that is known of one proposal.
type proposalPage struct {
	pages.Page
	ID         string
	Attempts   []attempt
	Change     *proposedChange // nil if nothing passed the gates
	Wanted     *refusedChange  // what a refused attempt wanted; nil where that is not kept
	Counted    *factStrip      // of a refused attempt
	Way        []wayStep
	CanPromote bool
	WhyNot     string // why a dry run cannot be opened by this person here; "" if it can, or is none
}

// proposedChange describes the change of a proposal.
type proposedChange struct {
	record.Proposal
	Prose     pages.Prose
	Diff      pages.Diff
	DiffNote  string // what the diff compares, or why there is none
	Would     *factStrip
	Contents  []wholeFile
	MoreFiles int
}

// Link returns the address of the proposal, without the base.
func (c *proposedChange) Link() string { return proposalPath(c.ID) }

// Pull points to the pull request; nil for none.
func (c *proposedChange) Pull() *pullLink { return pullLinkOf(c.PullKey(), c.PRURL, "") }

// wholeFile is the whole new content of a file.
type wholeFile struct {
	gitprovider.FileChange
	Cut int // bytes left out
}

// Last returns the attempt that says how it stands; nil while there is none.
func (v proposalPage) Last() *attempt {
	if len(v.Attempts) == 0 {
		return nil
	}
	return &v.Attempts[len(v.Attempts)-1]
}

// Repository returns owner/name, or "".
func (v proposalPage) Repository() string {
	switch {
	case v.Change != nil:
		return v.Change.Owner + "/" + v.Change.Repo
	case v.Last() != nil:
		return v.Last().Repository()
	}
	return ""
}

// Word describes its state.
func (v proposalPage) Word() views.Word {
	if v.Change != nil && (v.Last() == nil || v.Change.Abandoned || v.Change.State != record.StateDryRun) {
		return views.Proposal(v.Change.State, v.Change.Abandoned)
	}
	return views.Outcome(v.Last().Outcome)
}

// Checked returns the verdicts of our checks on it.
func (a attempt) Checked() gates { return gatesOf(a.Verdicts) }

// brokenRule is a rule that an attempt broke, as people read it.
type brokenRule struct {
	fault.Violation
	Named bool // the message names the path
}

// Mended returns the rules that it broke, each said once and in words.
func (a attempt) Mended() (out []brokenRule) {
	for _, v := range a.Broken() {
		v.Message, v.Suggestion = views.Sentence(views.Plain(v.Message)), views.Sentence(views.Plain(v.Suggestion))
		out = append(out, brokenRule{v, strings.Contains(v.Message, v.Path)})
	}
	return out
}

// Rules returns the names of the rules that it broke, for the operator.
func (a attempt) Rules() (out []string) {
	for _, v := range a.Broken() {
		if v.Rule != "" && !slices.Contains(out, v.Rule) {
			out = append(out, v.Rule)
		}
	}
	return out
}

// Told is why it ended so, where no broken rule says it.
func (a attempt) Told() string {
	if len(a.Broken()) > 0 {
		return ""
	}
	return views.Sentence(views.Plain(a.Message))
}

// Lifts returns the address, without the base, of the form that lifts the cooldown that refused it; "" for none.
func (a attempt) Lifts() string {
	if link := a.Pull(); a.Code == fault.CooldownActive && link != nil && link.Page != "" {
		return link.Page + "/review"
	}
	return ""
}

// Broken returns the rules that it broke.
func (a attempt) Broken() (out []fault.Violation) {
	for _, v := range a.Verdicts {
		if v.Ruling != record.Deny {
			continue
		}
		out = append(out, v.Violations...)
		if len(v.Violations) == 0 {
			out = append(out, fault.Violation{Code: a.Code, Message: v.Detail})
		}
	}
	return out
}

// Rule returns the page that says which rule a path broke, without the base; "" if none was.
func (a attempt) Rule() string {
	for _, v := range a.Broken() {
		if v.Code == fault.ScopeDenied && v.Path != "" {
			return "/policy?" + url.Values{"tier": {a.Tier.String()}, "path": {v.Path}}.Encode()
		}
	}
	return ""
}

func (h *proposalPages) showProposal(req *httpx.Request, q proposalParams) (httpx.Response, error) {
	id := req.PathValue("id")
	rows, err := h.attempts.AttemptsOf(req.Context(), id)
	if err != nil {
		return httpx.Response{}, err
	}
	view := proposalPage{ID: id}
	title := "Proposal"
	for _, r := range rows {
		if a := (attempt{RecordedAttempt: r}); a.IsProposal() {
			view.Attempts = append(view.Attempts, a)
			title = r.Title
		}
	}
	if view.Wanted, err = h.readRefusedChange(req, id); err != nil {
		return httpx.Response{}, err
	}
	p, err := h.attempts.Proposal(req.Context(), id)
	switch {
	case err == nil:
		if link := pullLinkOf(p.PullKey(), "", ""); link != nil && link.Page != "" && p.State == record.StateOpened &&
			q.As == "" {
			return h.goTo(link.Page), nil
		}
		view.Change, title = h.loadChange(req, p, q), p.Title
		view.CanPromote, view.WhyNot = h.mayPromote(req, p)
	case fault.CodeOf(err) != fault.NotFound:
		return httpx.Response{}, err
	case len(view.Attempts) == 0:
		return httpx.Response{}, fault.New(fault.NotFound, "there is no proposal with this id")
	}
	if title = h.env.Line(title); title == "" {
		title = "Proposal without a title"
	}
	for _, a := range view.Attempts {
		view.Way = append(view.Way, proposedSteps(a)...)
	}
	if view.Change == nil {
		view.Counted = countedFacts(view.Last())
	}
	view.Page = h.frame(req, title, changesPath)
	return h.html("proposal", view)
}

// refusedChange is the change that a refused attempt asked for.
type refusedChange struct {
	record.RefusedChange
	Prose pages.Prose
}

// Refused reports whether an attempt was refused.
func (v proposalPage) Refused() bool {
	return v.Change == nil && slices.ContainsFunc(v.Attempts,
		func(a attempt) bool { return a.Outcome == record.OutcomeRefused })
}

func (h *proposalPages) readRefusedChange(req *httpx.Request, id string) (*refusedChange, error) {
	kept, err := h.attempts.Wanted(req.Context(), id)
	if err != nil || kept == nil {
		return nil, err
	}
	return &refusedChange{*kept, pages.Markdown(h.env.Redact(kept.Body.Text))}, nil
}

func (h *proposalPages) mayPromote(req *httpx.Request, p record.Proposal) (may bool, whyNot string) {
	switch {
	case p.State != record.StateDryRun:
		return false, ""
	case !p.PrunedAt.IsZero():
		return false, "This was a dry run. It cannot be opened any more: its contents were removed because of their age."
	case h.promotes.Handle == nil:
		return false,
			"This was a dry run. It cannot be opened here, since the toolset pr is not enabled (CLAUDEOPS_TOOLSETS)."
	case h.settings.Rules().DryRun:
		return false,
			"This was a dry run. It cannot be opened here, since the server is in dry run itself (CLAUDEOPS_DRY_RUN)."
	case h.settings.Rules().ReadOnly != "":
		return false, "This was a dry run. It cannot be opened here: " + h.settings.Rules().ReadOnly + "."
	case !req.Principal.Scopes.Has(access.Review):
		return false, "This was a dry run. Opening it needs the scope review: ask somebody who operates this server."
	}
	return true, ""
}

func (h *proposalPages) loadChange(req *httpx.Request, p record.Proposal, q proposalParams) *proposedChange {
	c := &proposedChange{Proposal: p, Prose: pages.Markdown(h.env.Redact(prflow.AgentText(p.Body)))}
	if !p.PrunedAt.IsZero() {
		c.DiffNote = "Text and contents were removed on " + p.PrunedAt.UTC().Format(time.DateOnly) +
			" because of their age (CLAUDEOPS_RETENTION). What was decided stays on the record."
		for _, f := range p.Files {
			f.Content = "(removed)"
			c.Contents = append(c.Contents, wholeFile{FileChange: f})
		}
		c.Would = h.factsOf(p, policy.FactRules{}, nil)
		return c
	}
	c.Diff, c.DiffNote = h.showChanges(req, h.reader, p, q, proposalPath(p.ID))
	if len(p.Files) > 0 {
		c.Would = h.factsOf(p, rulesOfFacts(h.policy), &c.Diff)
	}
	left := maxWholeInAll
	for i, f := range p.Files {
		if i == maxWholeFiles {
			c.MoreFiles = len(p.Files) - i
			break
		}
		whole := len(f.Content)
		f.Content = f.Content[:min(whole, maxWholeFile, left)]
		left -= len(f.Content)
		c.Contents = append(c.Contents, wholeFile{f, whole - len(f.Content)})
	}
	return c
}

// showChanges shows what a proposal changes in its base branch as it is now, on a page. The record has the new contents
// only.
func (h *renderer) showChanges(req *httpx.Request, reader Reader, p record.Proposal, q proposalParams,
	page string) (pages.Diff, string) {
	ctx, cancel := context.WithTimeout(req.Context(), compareTimeout)
	defer cancel()
	found, err := reader.Compare(ctx, p)
	if err != nil {
		return pages.Diff{}, "There is no difference to show, since the repository could not be read: " +
			fault.From(err).Message
	}
	diff := pages.ParseDiff(h.env.Redact(found.Diff), q.View == "split", q.Part)
	diff.Here, diff.As, diff.Read = h.base+page, q.As, q.View == "read"
	texts := map[string]string{}
	for _, f := range p.Files {
		if f.Action != gitprovider.ActionDelete && len(f.Content) <= maxRendered {
			texts[f.Path] = h.env.Redact(f.Content)
		}
	}
	diff.Render(texts)
	diff.Surround(texts)
	base := h.env.Line(p.Base)
	switch {
	case len(diff.Files) == 0 || found.Diff == "":
		return pages.Diff{}, fmt.Sprintf("The branch %s holds all of this now, so there is no difference any more.", base)
	case found.BaseCommit == p.BaseCommit:
		return diff, fmt.Sprintf("Compared with %s at %s, where the proposal was made.", base, pages.Short(found.BaseCommit))
	}
	note := fmt.Sprintf("Compared with %s as it is now, at %s. It has moved since the proposal was made at %s.",
		base, pages.Short(found.BaseCommit), pages.Short(p.BaseCommit))
	if len(found.Gone) > 0 {
		note += fmt.Sprintf(" %s has no %s any more: if a file was moved, a merge follows it and writes the change to its "+
			"new place, which is not shown here.", base, h.env.Line(strings.Join(found.Gone, ", ")))
	}
	return diff, note
}

// promote opens the change of a dry run for a person, and redirects to the result.
func (h *proposalPages) promote(req *httpx.Request) (httpx.Response, error) {
	form, err := httpx.ReadForm(req)
	if err != nil {
		return httpx.Response{}, h.promotes.Reject(req.Context(), req.Call(nil), err)
	}
	result, err := callOperation(req, h.promotes, prflow.PromoteRequest{ID: req.PathValue("id"),
		Acknowledged: policy.SplitClasses(form.Get("acknowledged"))})
	if err != nil {
		return httpx.Response{}, err
	}
	return h.goTo(proposalPath(result.(prflow.CreateResult).RequestID)), nil
}

// What the page of a pull request and that of a proposal have in common: what our checks said, and the way of the
// change so far.

// gates holds the verdicts of our checks on a change.
type gates struct {
	Verdicts       []record.Verdict
	Passed, Denied int
}

func gatesOf(verdicts []record.Verdict) gates {
	g := gates{Verdicts: verdicts}
	for _, v := range verdicts {
		switch v.Ruling {
		case record.Pass:
			g.Passed++
		case record.Deny:
			g.Denied++
		case record.Skipped:
		}
	}
	return g
}

// Said summarises them.
func (g gates) Said() string {
	if g.Denied > 0 {
		return fmt.Sprintf("%d of %d checks refused it", g.Denied, len(g.Verdicts))
	}
	return fmt.Sprintf("%d of %d checks passed", g.Passed, len(g.Verdicts))
}

// Others describes the remaining checks.
func (g gates) Others() string {
	asked := g.Passed + g.Denied
	if g.Denied > 0 {
		return fmt.Sprintf("%d passed, %d were not asked", g.Passed, len(g.Verdicts)-asked)
	}
	if g.Passed == len(g.Verdicts) {
		return ""
	}
	return views.Count(len(g.Verdicts)-asked) + " did not apply"
}

// wayStep is something that happened to a change, or is to happen.
type wayStep struct {
	Icon          string
	Tone          views.Tone
	Before, After string // around Who
	Who           string // untrusted
	Sub           string
	Said          string // untrusted
	At            time.Time
	Link, Text    string // where more is, without the base, and what that is called
	Todo          bool
}

// proposedSteps returns the steps of an attempt at a proposal.
func proposedSteps(a attempt) []wayStep {
	act := a.about.Act(a.RecordedAttempt)
	first := wayStep{Icon: "robot", Tone: views.Done, Who: act.Who, After: " " + act.Step(), At: a.Time,
		Sub: views.Door(a.Door)}
	if a.Session != "" {
		first.Sub, first.Link, first.Text = "in a", a.SessionLink(), "session of tier "+a.Tier.String()
	}
	g, took := gatesOf(a.Verdicts), views.Length(a.Duration)
	switch a.Outcome {
	case record.OutcomeRefused:
		return []wayStep{first, {Icon: "ban", Tone: views.Bad, Before: act.Reason, At: a.Time,
			Sub: "after " + took + ", nothing was written"}}
	case record.OutcomeRevised:
		first.Icon = "git-commit"
	case record.OutcomeReused:
		first.Icon = "repeat"
	}
	switch a.Action {
	case record.ActionPromote:
		first.Icon = "player-play"
	case record.ActionSettle:
		first.Icon = "tool"
	}
	steps := []wayStep{first}
	if len(g.Verdicts) > 0 {
		word := views.Outcome(a.Outcome)
		steps = append(steps, wayStep{
			Icon: word.Icon, Tone: word.Tone, Before: g.Said(), At: a.Time, Sub: views.Lowered(word.Text) + " after " + took,
			Link: auditRowPath(a.Seq), Text: "record",
		})
	}
	return steps
}

// reviewStep returns the step of a person's review.
func reviewStep(r gitprovider.Review) wayStep {
	word := views.Review(r.State)
	actions := map[gitprovider.ReviewState]string{
		gitprovider.ReviewApproved: "review.approve", gitprovider.ReviewChangesRequested: "review.request-changes",
		gitprovider.ReviewCommented: "review.comment",
	}
	after := ": " + views.Lowered(word.Text)
	if action := actions[r.State]; action != "" {
		after = " " + record.StepOf(action)
	}
	s := wayStep{
		Icon:  word.Icon,
		Tone:  word.Tone,
		Who:   record.CallerName(r.Author),
		After: after,
		Said:  r.Body,
		At:    r.SubmittedAt,
	}
	if n := len(r.Comments); n > 0 {
		s.Sub = views.Many(n, "comment on a line", "comments on lines")
	}
	return s
}

// inOrder puts what happened in its order; what is to happen stays last.
func inOrder(steps []wayStep) []wayStep {
	slices.SortStableFunc(steps, func(a, b wayStep) int {
		if a.Todo || b.Todo {
			return 0
		}
		return a.At.Compare(b.At)
	})
	return steps
}

// actForm is something that a person may do to a change: its button, and the sheet that asks for what it needs.
type actForm struct {
	Verb, Text, Icon string
	Tone             string // class of its button
	Says             string // what it does
	Label            string // of the field
	Needs            bool   // a text
	InBar            bool   // a button of its own; the others are in the menu
	Obstacles        []string
	Box              bool   // a box has to be ticked
	Comment          string // what was written, of a form that comes back
	Failed           string // why it comes back
}

// ID returns the id of its sheet.
func (a actForm) ID() string { return "do-" + a.Verb }
