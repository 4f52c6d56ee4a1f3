package web

import (
	"net/http"

	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/people"
)

func (s *Server) sessionRoutes() []route {
	accepted := map[int]any{http.StatusAccepted: SessionAccepted{}}
	return []route{
		{
			method: "GET", pattern: sessionsPath, scope: access.Read, handle: s.sessions, id: "listSessions",
			summary: "List the sessions of agents, newest first", params: sessionParams{}, answers: ok(SessionList{}),
		},
		{
			method: "GET", pattern: api + "/sessions/{id}", scope: access.Read, handle: s.session, id: "getSession",
			summary: "Read a session: how it ended, what it did and left", answers: ok(SessionDetail{}),
		},
		{
			method: "GET", pattern: api + "/sessions/{id}/events", scope: access.Read, handle: s.sessionEvents, id: "listSessionEvents",
			summary: "Read what the agent said and did, oldest first", params: sessionEventParams{}, answers: ok(SessionEventList{}),
			description: "At most 500 events. Ask again with after=next_after, until state is no longer running and no event comes.",
		},
		{
			method: "POST", pattern: sessionsPath, scope: access.Operate, operates: people.StartSession, handle: s.startSession,
			id: "startSession", summary: "Start a session", body: StartRequest{}, answers: accepted, keyed: true,
			description: "The tier is at most the server's CLAUDEOPS_MAX_TIER and the token's, and so is that of every session that it hands " +
				"over to. conflict while another session runs.",
		},
		{
			method: "POST", pattern: api + "/sessions/{id}/stop", scope: access.Operate, operates: people.StopSession, handle: s.stopSession,
			id: "stopSession", summary: "Have a session end; read it to see when it has", answers: accepted,
		},
	}
}
