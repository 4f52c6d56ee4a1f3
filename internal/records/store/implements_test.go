package store

import (
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

var (
	_ prflow.Ledger    = (*Ledger)(nil)
	_ prflow.History   = (*History)(nil)
	_ access.Tokens    = (*Access)(nil)
	_ access.Logins    = (*Access)(nil)
	_ sessions.Records = (*AgentSessions)(nil)
	_ sessions.Journal = (*AgentSessions)(nil)
)
