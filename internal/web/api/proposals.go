package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/content"
	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/records"
)

// proposals answers what is asked of proposals and pull requests, and makes them.
type proposals struct {
	flowAt  func(ceiling gitprovider.Tier) Flow
	turns   *handler.Turns
	records records.Attempts
	pulls   records.Pulls
	replies *idempotency
	env     handler.Env
}

func (h *proposals) routes() []handler.Route {
	created := map[int]any{http.StatusCreated: prflow.CreateResult{}, http.StatusOK: prflow.CreateResult{}}
	return []handler.Route{
		{
			Method: "POST", Pattern: prefix + "/prs", Scope: access.Propose, Handle: h.createPR, Turns: h.turns, Refused: h.refused,
			Body: &handler.BodyLimit{Bytes: 4 << 20, Advice: "propose less in one pull request"}, // what one MCP message may have
			Doc: handler.Doc{
				ID: "createPR", Summary: "Propose a change as a pull request", Body: prflow.CreateRequest{}, Answers: created, Keyed: true,
				Description: "201 for a pull request that was opened; 200 for a dry run, and for the open pull request that holds this " +
					"very change already (reused). Every refusal names every broken rule. There is no tier: the lower one of the server's " +
					"and the token's holds. Repeating an identical request is safe.",
			},
		},
		read(prefix+"/prs", h.listPRs, handler.Doc{
			ID: "listPRs", Summary: "List our open pull requests of a repository", Params: repoParams{}, Answers: handler.OK(prflow.ListResult{}),
		}),
		read(prefix+"/prs/{number}", h.prStatus, handler.Doc{
			ID: "getPRStatus", Summary: "Read a pull request: state, reviews, checks", Params: repoParams{}, Answers: handler.OK(prflow.StatusResult{}),
		}),
		read(prefix+"/proposals", h.list, handler.Doc{
			ID: "listProposals", Summary: "List attempts at proposals, newest first", Params: proposalParams{}, Answers: handler.OK(ProposalList{}),
			Description: "One entry for each row of the audit about a proposal, whatever door it came through, refusals included. Rows " +
				"are only ever added, so pages never repeat or skip one. A proposal that is being written appears when it has ended; one " +
				"that a killed process left has a second entry with the same id, for what settled it.",
		}),
		read(prefix+"/proposals/{id}", h.get, handler.Doc{
			ID: "getProposal", Summary: "Read a proposal, gate by gate, with its contents", Answers: handler.OK(ProposalDetail{}),
		}),
		{
			Method: "POST", Pattern: prefix + "/proposals/{id}/promote", Scope: access.Review, Handle: h.promote, Turns: h.turns, Refused: h.refused,
			Body: handler.NoBody(),
			Doc: handler.Doc{
				ID: "promoteProposal", Summary: "Open the pull request that a dry run has shown", Answers: created,
				Description: "For people. Every gate is asked again, and the attempt is a new one with an id of its own.",
			},
		},
	}
}

// flow is the use case at the caller's ceiling.
func (h *proposals) flow(req *handler.Request) Flow { return h.flowAt(req.Principal.Ceiling) }

// refused records a proposal that the guard has refused.
func (h *proposals) refused(req *handler.Request, why *fault.Error) error {
	h.flow(req).Reject(req.Context(), req.Caller(), why.Code, why.Message)
	return why
}

// proposalParams narrow a listing of attempts.
type proposalParams struct {
	Repo     string    `query:"repo" doc:"owner/name, letter case aside"`
	Provider string    `query:"provider"`
	Outcome  string    `query:"outcome" enum:"opened,reused,dry_run,refused,failed"`
	Code     string    `query:"code" doc:"Code of a refusal or failure"`
	Gate     string    `query:"gate" doc:"One that refused" enum:"arguments,tier,scope,base_tree,content,repository,duplicate,cooldown,caps"`
	Door     string    `query:"door" enum:"mcp,rest,cli,web"`
	Caller   string    `query:"caller" doc:"The whole name"`
	Session  string    `query:"session" doc:"Id of an agent's session"`
	Pull     string    `query:"pull" enum:"open,merged,closed,gone" doc:"State of the pull request that it opened, as last seen"`
	Since    time.Time `query:"since" doc:"At this time or later"`
	Until    time.Time `query:"until" doc:"Before this time"`
	Q        string    `query:"q" doc:"Part of the title or of a path"`
	Cursor   string    `query:"cursor" doc:"next_cursor of the page before, with the same filters"`
	Limit    int       `query:"limit" doc:"Default 50, at most 200"`
}

const listProposals = "proposals"

func (h *proposals) list(req *handler.Request) (handler.Response, error) {
	var q proposalParams
	if err := handler.DecodeQuery(req, &q); err != nil {
		return handler.Response{}, err
	}
	p, err := pageOf(listProposals, q.Cursor, q.Limit)
	if err != nil {
		return handler.Response{}, err
	}
	rows, err := h.attempts(req.Context(), p, record.AttemptQuery{
		Repo: q.Repo, Provider: q.Provider, Outcome: record.Outcome(q.Outcome), Code: fault.Code(q.Code), Gate: record.Gate(q.Gate),
		Door: record.Door(q.Door), Caller: q.Caller, Session: q.Session, Pull: record.PullState(q.Pull), Since: q.Since, Until: q.Until, Search: q.Q,
	})
	if err != nil {
		return handler.Response{}, err
	}
	list := ProposalList{Proposals: []ProposalEntry{}, Untrusted: untrusted}
	rows, list.NextCursor = cut(listProposals, p, rows, func(r record.RecordedAttempt) int64 { return r.Seq })
	for _, r := range rows {
		list.Proposals = append(list.Proposals, h.proposalEntry(r))
	}
	if err := h.addPulls(req.Context(), rows, func(i int) *ProposalEntry { return &list.Proposals[i] }); err != nil {
		return handler.Response{}, err
	}
	return handler.Response{Value: list}, nil
}

// attempts reads a page and one row more, which tells whether there is another page. The store gives maxLimit rows at
// most, so the one more of a full page is asked for by itself.
func (h *proposals) attempts(ctx context.Context, p page, q record.AttemptQuery) ([]record.RecordedAttempt, error) {
	q.Before, q.Limit = p.before, p.limit
	rows, err := h.records.Attempts(ctx, q)
	if err != nil || len(rows) < p.limit {
		return rows, err
	}
	q.Before, q.Limit = rows[len(rows)-1].Seq, 1
	more, err := h.records.Attempts(ctx, q)
	return append(rows, more...), err
}

func (h *proposals) proposalEntry(r record.RecordedAttempt) ProposalEntry {
	message := content.Clean(r.Message, handler.MaxMessage)
	e := ProposalEntry{
		ID: r.RequestID, Seq: r.Seq, Time: r.Time.UTC(), Action: r.Action, Door: r.Door, Caller: handler.CleanLine(r.Caller), Tier: int(r.Tier),
		Session: handler.CleanLine(r.Session), Provider: r.Provider, Repo: handler.CleanLine(r.Owner + "/" + r.Repo), Base: handler.CleanLine(r.Base), Branch: handler.CleanLine(r.Branch), Title: handler.CleanLine(r.Title),
		Paths: []string{}, Outcome: string(r.Outcome), Code: r.Code, Message: message, DeniedBy: []record.Gate{},
		PRNumber: r.PRNumber, PRURL: r.PRURL, State: string(r.State), DurationMS: float64(r.Duration.Microseconds()) / 1000,
	}
	for _, path := range r.Paths {
		e.Paths = append(e.Paths, handler.CleanLine(path))
	}
	for _, v := range r.Verdicts {
		for _, warning := range v.Warnings {
			cleaned := content.Clean(warning, handler.MaxMessage)
			e.Warnings = append(e.Warnings, cleaned)
		}
		if v.Ruling == record.Deny && !slices.Contains(e.DeniedBy, v.Gate) {
			e.DeniedBy = append(e.DeniedBy, v.Gate)
		}
	}
	return e
}

func (h *proposals) get(req *handler.Request) (handler.Response, error) {
	id := req.PathValue("id")
	rows, err := h.records.AttemptsOf(req.Context(), id)
	if err != nil {
		return handler.Response{}, err
	}
	d := ProposalDetail{ID: id, Attempts: []AttemptDetail{}, Untrusted: untrusted}
	rows = slices.DeleteFunc(rows, func(r record.RecordedAttempt) bool { return !slices.Contains(record.ProposalActions(), r.Action) })
	for _, r := range rows {
		d.Attempts = append(d.Attempts, AttemptDetail{h.proposalEntry(r), append([]record.Verdict{}, r.Verdicts...)})
	}
	if err := h.addPulls(req.Context(), rows, func(i int) *ProposalEntry { return &d.Attempts[i].ProposalEntry }); err != nil {
		return handler.Response{}, err
	}
	p, err := h.records.Proposal(req.Context(), id)
	switch {
	case err == nil:
		d.Change = changeOf(p)
	case fault.CodeOf(err) != fault.NotFound:
		return handler.Response{}, err
	case len(d.Attempts) == 0:
		return handler.Response{}, errors.Join(fault.New(fault.NotFound, "there is no proposal with this id"), err)
	}
	return handler.Response{Value: d}, nil
}

func changeOf(p record.Proposal) *ProposedChange {
	change := &ProposedChange{
		State: string(p.State), Abandoned: p.Abandoned, CreatedAt: p.CreatedAt.UTC(), Base: p.Base, BaseCommit: p.BaseCommit,
		Branch: p.Branch, Commit: p.Commit, ChangeType: string(p.ChangeType), Title: p.Title, Body: p.Body, Digest: p.Digest,
		PRNumber: p.PRNumber, PRURL: p.PRURL, Files: []ProposedFile{},
	}
	if !p.PrunedAt.IsZero() {
		pruned := p.PrunedAt.UTC()
		change.PrunedAt = &pruned
	}
	for _, f := range p.Files {
		change.Files = append(change.Files, ProposedFile{f.Path, string(f.Action), f.Content})
	}
	return change
}

// promote opens what a dry run has shown; see prflow.Service.Promote.
func (h *proposals) promote(req *handler.Request) (handler.Response, error) {
	result, err := h.flow(req).Promote(req.Context(), req.Caller(), req.PathValue("id"))
	return proposed(result), err
}

// addPulls tells what was last seen of the pull requests that attempts are about. entry gives the entry of a row.
func (h *proposals) addPulls(ctx context.Context, rows []record.RecordedAttempt, entry func(i int) *ProposalEntry) error {
	seen, err := records.PullsOf(ctx, h.pulls, rows)
	if err != nil {
		return err
	}
	for i, r := range rows {
		if pull, found := seen[r.PullKey()]; found {
			entry(i).Pull = h.pullSeen(pull)
		}
	}
	return nil
}
