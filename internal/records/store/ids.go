package store

import (
	"context"
	"database/sql"
	"slices"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// maxIDs bounds the ids that IDs lists.
const maxIDs = 9

// IDs returns the ids of a kind that begin with a prefix, sorted: at most 9, so that a person can be shown 8 and
// told that there are more. An id that is the prefix is the only one. invalid_argument for an unknown kind.
func (s *Store) IDs(ctx context.Context, kind record.IDKind, prefix string) (ids []string, err error) {
	from, column := "", "id"
	switch kind {
	case record.IDOfSession:
		from = "agent_sessions"
	case record.IDOfAttempt:
		from, column = "audit", "request_id"
	case record.IDOfDryRun:
		from = "dry_runs"
	case record.IDOfToken:
		from = "api_tokens"
	case record.IDOfConnection:
		from = "agent_connections"
	case record.IDOfLogin:
		from = "web_sessions"
	case record.IDOfScriptRun:
		from = "script_runs"
	default:
		return nil, fault.New(fault.InvalidArgument, "%q is not a kind of id", kind)
	}
	err = s.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		const after = "~" // every id has letters, digits and dashes alone
		ids, err = selectRows(ctx, tx, scanText, "SELECT DISTINCT "+column+" FROM "+from+" WHERE "+column+" >= $1 AND "+
			column+" < $2 ORDER BY "+column+" LIMIT $3", textColumn(prefix), textColumn(prefix+after), maxIDs)
		return err
	})
	if slices.Contains(ids, prefix) {
		ids = []string{prefix}
	}
	return ids, err
}
