package store

import (
	"github.com/claudeops/claudeops/internal/access"
	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/session"
)

var (
	_ prflow.Ledger   = (*Ledger)(nil)
	_ prflow.History  = (*History)(nil)
	_ access.Tokens   = (*Access)(nil)
	_ access.Logins   = (*Access)(nil)
	_ session.Records = (*AgentSessions)(nil)
	_ session.Journal = (*AgentSessions)(nil)
)
