package store

import "github.com/claudeops/claudeops/internal/prflow"

var (
	_ prflow.Ledger    = (*Store)(nil)
	_ prflow.History   = (*Store)(nil)
	_ prflow.Proposals = (*Store)(nil)
)
