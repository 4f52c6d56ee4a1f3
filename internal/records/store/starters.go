package store

import (
	"context"
	"database/sql"

	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Starters are those whom the audit names for what a pull request came of: who proposed it or one of its revisions, who
// opened the dry run, and who started a session whose agent did. Agents themselves are none. A session that a lower
// tier handed over to has nobody who started it.
func (p *Pulls) Starters(ctx context.Context, key record.PullKey) (out []access.Starter, err error) {
	key = p.db.storedKey(key)
	const started = `WITH made AS (
			SELECT a.caller, a.door, COALESCE(t.session, '') AS session FROM audit a LEFT JOIN attempts t ON t.seq = a.seq
			WHERE a.provider = $1 AND a.pr_number = $2 AND LOWER(a.owner) = $3 AND LOWER(a.repo) = $4
				AND a.action IN ('create_pr', 'create_pr.promote') AND a.outcome IN ('opened', 'revised', 'reused')
		), names AS (
			SELECT caller FROM made WHERE door <> 'mcp'
			UNION SELECT s.caller FROM audit s JOIN made m ON s.message = 'session ' || m.session
			WHERE m.session <> '' AND s.action = 'session.start' AND s.outcome = 'done'
		)
		SELECT n.caller, COALESCE(p.issuer, t.owner_issuer, ''), COALESCE(p.subject, t.owner_subject, '') FROM names n
			LEFT JOIN people p ON p.name = n.caller LEFT JOIN api_tokens t ON t.name = n.caller`
	err = p.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		out, err = selectRows(ctx, tx, func(rows *sql.Rows, s *access.Starter) error {
			return rows.Scan((*text)(&s.Name), (*text)(&s.Issuer), (*text)(&s.Subject))
		}, started, text(key.Provider), key.Number, text(lowerASCII(key.Owner)), text(lowerASCII(key.Repo)))
		return err
	})
	return out, err
}
