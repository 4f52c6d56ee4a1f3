package api

import (
	"time"

	"github.com/claudeops/claudeops/internal/records/sessions"
)

// SessionEntry is one session of an agent.
type SessionEntry struct {
	ID        string             `json:"id"`
	Parent    string             `json:"parent,omitempty" doc:"The session that handed over to it"`
	Next      string             `json:"next,omitempty" doc:"The session that it handed over to"`
	Tier      int                `json:"tier"`
	Trigger   string             `json:"trigger" enum:"command,schedule,rest,dashboard,escalation"`
	State     string             `json:"state" enum:"running,succeeded,failed,timeout,limit,cancelled,interrupted,skipped"`
	Reason    string             `json:"reason,omitempty" doc:"Why it ended as it did"`
	Model     string             `json:"model"`
	Toolsets  []string           `json:"toolsets,omitempty" doc:"Toolsets that the agent's MCP server had; absent of sessions of older versions, which had pr"`
	DryRun    bool               `json:"dry_run"`
	StartedAt time.Time          `json:"started_at"`
	EndedAt   *time.Time         `json:"ended_at,omitempty"`
	Turns     int                `json:"turns"`
	ToolCalls int                `json:"tool_calls"`
	Denied    int                `json:"denied" doc:"How often the agent was refused a tool"`
	Boundary  *sessions.Boundary `json:"boundary,omitempty" doc:"What kept the agent from the files and processes of Claude Ops; absent of a session that never started, and of older versions"`
	sessions.Usage
	Escalation string          `json:"escalation,omitempty" doc:"What happened to its handoff"`
	Counts     sessions.Counts `json:"counts" doc:"Its attempts at proposals, by the audit"`
}

// SessionList is a page of sessions, newest first.
type SessionList struct {
	Sessions   []SessionEntry `json:"sessions"`
	NextCursor string         `json:"next_cursor,omitempty" doc:"Absent on the last page"`
	Untrusted  string         `json:"untrusted"`
}

// SessionDetail is all that is recorded of a session but its events.
type SessionDetail struct {
	SessionEntry
	Note           string            `json:"note,omitempty" doc:"What the operator told the agent"`
	ClaudeVersion  string            `json:"claude_version,omitempty"`
	ExitCode       int               `json:"exit_code" doc:"-1: ended by a signal, or never started"`
	Connected      bool              `json:"connected" doc:"The agent had our MCP server"`
	Denials        []string          `json:"denials" doc:"Tools that the agent was refused; at most 50"`
	LeftOut        []string          `json:"left_out" doc:"What mounted repositories contributed and was refused, and why"`
	CutLines       int               `json:"cut_lines"`
	BadLines       int               `json:"bad_lines"`
	UnstoredEvents int               `json:"unstored_events"`
	LastEvent      int               `json:"last_event" doc:"Number of the last event"`
	Report         string            `json:"report,omitempty" doc:"The agent's last words"`
	Stderr         string            `json:"stderr,omitempty"`
	Received       *sessions.Handoff `json:"received,omitempty" doc:"The handoff that it was started with"`
	Handoff        *sessions.Handoff `json:"handoff,omitempty" doc:"The handoff that it left"`
	HandoffProblem string            `json:"handoff_problem,omitempty" doc:"Why what it left cannot be used"`
	HandoffNotes   []string          `json:"handoff_notes,omitempty" doc:"What of the handoff was left out or cut"`
	OpenFindings   []OpenFinding     `json:"open_findings" doc:"Findings that started sessions of higher tiers and are not known to be settled"`
	Journal        []string          `json:"journal" doc:"What its agent noted for later sessions, newest first"`
	Untrusted      string            `json:"untrusted"`
}

// OpenFinding is a finding that started a session of a higher tier, and starts no second one of it while it is open.
type OpenFinding struct {
	Key          string    `json:"key"`
	Tier         int       `json:"tier" doc:"The highest that it was handed over to"`
	Sessions     []string  `json:"sessions" doc:"That it started, oldest first"`
	At           time.Time `json:"at" doc:"When it started the last one"`
	PullRequests []string  `json:"pull_requests" doc:"That those sessions opened, changed or found in their way, as owner/name#number"`
}

// JournalPage lists agents' notes for later sessions, newest first.
type JournalPage struct {
	Entries   []sessions.JournalEntry `json:"entries"`
	Untrusted string                  `json:"untrusted"`
}

// SessionEvent is one thing that the agent said or did.
type SessionEvent struct {
	Seq  int       `json:"seq"`
	Time time.Time `json:"time"`
	Kind string    `json:"kind" doc:"init, text, tool_use, tool_result, denied, result, or the CLI's own word"`
	Tool string    `json:"tool,omitempty"`
	Text string    `json:"text,omitempty"`
}

// SessionEventList is a page of events, oldest first.
type SessionEventList struct {
	Events    []SessionEvent `json:"events"`
	NextAfter int            `json:"next_after" doc:"Number of the last event here, or after if there is none"`
	State     string         `json:"state" doc:"Of the session"`
	Untrusted string         `json:"untrusted"`
}

// Changes implements operation.Changing: more events come while the session runs.
func (l SessionEventList) Changes() bool { return l.State == string(sessions.StateRunning) }
