package web

import (
	"net/http"
	"slices"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/people"
	"github.com/claudeops/claudeops/internal/prflow"
)

// route is one line of the table that mux and OpenAPI document are made of.
type route struct {
	method, pattern string
	scope           access.Scope  // "" lets everybody in
	proposes        bool          // whoever lacks the scope leaves an attempt on the record
	reviews         bool          // likewise, as a review of the pull request that the pattern names
	operates        people.Action // likewise, as this action on sessions
	page            bool          // for people; no part of the API's description
	handle          func(*call) (answer, error)

	id, summary, description string
	params                   any         // struct of the query; nil for none
	body                     any         // type of the body; nil for none
	answers                  map[int]any // types by status; nil for no body
	contentType              string      // of answers that are not JSON
	keyed                    bool        // takes Idempotency-Key
}

const (
	api          = "/api/v1"
	checkPath    = api + "/policy/check"
	sessionsPath = api + "/sessions"
)

func (s *Server) routes() []route {
	return slices.Concat(s.proposalRoutes(), s.sessionRoutes(), s.recordRoutes(), s.plainRoutes(), s.hookRoutes())
}

func (s *Server) proposalRoutes() []route {
	created := map[int]any{http.StatusCreated: prflow.CreateResult{}, http.StatusOK: prflow.CreateResult{}}
	return []route{
		{
			method: "POST", pattern: api + "/prs", scope: access.Propose, proposes: true, handle: s.createPR,
			id: "createPR", summary: "Propose a change as a pull request", body: prflow.CreateRequest{}, answers: created, keyed: true,
			description: "201 for a pull request that was opened; 200 for a dry run, and for the open pull request that holds this " +
				"very change already (reused). Every refusal names every broken rule. There is no tier: the lower one of the server's " +
				"and the token's holds. Repeating an identical request is safe.",
		},
		{
			method: "GET", pattern: api + "/prs", scope: access.Read, handle: s.listPRs, id: "listPRs",
			summary: "List our open pull requests of a repository", params: repoParams{}, answers: ok(prflow.ListResult{}),
		},
		{
			method: "GET", pattern: api + "/prs/{number}", scope: access.Read, handle: s.prStatus, id: "getPRStatus",
			summary: "Read a pull request: state, reviews, checks", params: repoParams{}, answers: ok(prflow.StatusResult{}),
		},
		{
			method: "GET", pattern: api + "/proposals", scope: access.Read, handle: s.proposals, id: "listProposals",
			summary: "List attempts at proposals, newest first", params: proposalParams{}, answers: ok(ProposalList{}),
			description: "One entry for each row of the audit about a proposal, whatever door it came through, refusals included. Rows " +
				"are only ever added, so pages never repeat or skip one. A proposal that is being written appears when it has ended; one " +
				"that a killed process left has a second entry with the same id, for what settled it.",
		},
		{
			method: "GET", pattern: api + "/proposals/{id}", scope: access.Read, handle: s.proposal, id: "getProposal",
			summary: "Read a proposal, gate by gate, with its contents", answers: ok(ProposalDetail{}),
		},
		{
			method: "POST", pattern: api + "/proposals/{id}/promote", scope: access.Review, proposes: true, handle: s.promote,
			id: "promoteProposal", summary: "Open the pull request that a dry run has shown", answers: created,
			description: "For people. Every gate is asked again, and the attempt is a new one with an id of its own.",
		},
	}
}

func (s *Server) recordRoutes() []route {
	return []route{
		{
			method: "GET", pattern: api + "/audit", scope: access.Read, handle: s.audit, id: "listAudit",
			summary: "Read the audit, newest first", params: auditParams{}, answers: ok(AuditList{}),
		},
		{
			method: "GET", pattern: api + "/audit/verify", scope: access.Read, handle: s.verifyAudit, id: "verifyAudit",
			summary: "Recompute the hash chain of the audit", params: verifyParams{}, answers: ok(AuditReport{}),
		},
		{
			method: "GET", pattern: api + "/providers", scope: access.Read, handle: s.providers, id: "listProviders",
			summary: "List the providers; none is contacted", answers: ok(ProviderList{}),
		},
		{
			method: "GET", pattern: api + "/policy", scope: access.Read, handle: s.showPolicy, id: "getPolicy",
			summary: "Read the effective rules", answers: ok(PolicyAnswer{}),
		},
		{
			method: "POST", pattern: checkPath, scope: access.Read, handle: s.checkPolicy, id: "checkPolicy",
			summary: "Ask whether a tier may change paths, and by which rule", body: CheckRequest{}, answers: ok(CheckAnswer{}),
		},
		{
			method: "GET", pattern: api + "/health", scope: access.Read, handle: s.healthOf, id: "getHealth",
			summary: "What would stop a pull request", answers: ok(Health{}),
		},
		{
			method: "GET", pattern: api + "/me", scope: access.Read, handle: s.whoAmI, id: "whoAmI",
			summary: "Who the caller is, and what it may", answers: ok(Identity{}),
		},
	}
}

func (s *Server) plainRoutes() []route {
	return []route{
		{
			method: "POST", pattern: signInPath, handle: s.signIn, id: "signIn", body: SignInRequest{}, answers: ok(Identity{}),
			summary:     "Exchange a token for a session cookie",
			description: "For browsers. A form with the field token does as well and is sent on to a page of this server (303).",
		},
		{
			method: "POST", pattern: "/sign-out", handle: s.signOut, id: "signOut", answers: map[int]any{http.StatusNoContent: nil},
			summary: "End the session",
		},
		{
			method: "GET", pattern: "/healthz", handle: s.alive, id: "alive", answers: ok(Probe{}), summary: "The process answers",
		},
		{
			method: "GET", pattern: "/readyz", handle: s.ready, id: "ready", params: readyParams{}, answers: ok(Probe{}),
			summary: "Requests could be served; 503 if not",
			description: "The records can be read. With providers=1 also: every enabled provider answers, and takes our token. A " +
				"provider that is down makes it 503 only then, so ask without it where a failing probe restarts the server. Which " +
				"one is told to callers who may read.",
		},
		{
			method: "GET", pattern: "/metrics", scope: access.Read, handle: s.scrape, id: "metrics",
			summary: "Metrics in Prometheus's text format", answers: ok(""), contentType: "text/plain",
		},
		{
			method: "GET", pattern: "/openapi.json", scope: access.Read, handle: s.openAPIDocument, id: "openapi",
			summary: "This description", answers: ok(map[string]any{}),
		},
		{
			method: "GET", pattern: "/docs", scope: access.Read, handle: s.docsPage, id: "docs",
			summary: "This description as a page", answers: ok(""), contentType: "text/html",
		},
		{
			method: "GET", pattern: "/docs/style.css", scope: access.Read, handle: s.docsStyle, id: "docsStyle",
			summary: "Style of that page", answers: ok(""), contentType: "text/css",
		},
	}
}

func ok(body any) map[int]any { return map[int]any{http.StatusOK: body} }
