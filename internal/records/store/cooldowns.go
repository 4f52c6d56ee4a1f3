package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
)

// LiftCooldown notes that a person has lifted the cooldown of a pull request that was closed, with the row of the audit
// that says who, and when. One that is closed again later is not lifted.
func (l *Ledger) LiftCooldown(ctx context.Context, key record.PullKey, a record.Attempt) error {
	return l.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO cooldown_lifts (provider, owner, repo, number, lifted_us, lifted_by)
				VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (provider, owner, repo, number) DO UPDATE SET lifted_us = excluded.lifted_us, lifted_by = excluded.lifted_by`,
			text(l.db.stored(key.Provider)), text(lowerASCII(key.Owner)), text(lowerASCII(key.Repo)), key.Number, micros(a.Time),
			text(a.Caller))
		if err == nil {
			_, err = l.db.appendAudit(ctx, tx, a)
		}
		return err
	})
}

// CooldownLifted implements prflow.History.
func (h *History) CooldownLifted(ctx context.Context, key record.PullKey) (by string, when time.Time, err error) {
	return h.db.cooldownLifted(ctx, key)
}

// CooldownLifted returns who has last lifted the cooldown of a pull request, and when; "" if it was not lifted.
func (p *Pulls) CooldownLifted(ctx context.Context, key record.PullKey) (by string, when time.Time, err error) {
	return p.db.cooldownLifted(ctx, key)
}

func (d *database) cooldownLifted(ctx context.Context, key record.PullKey) (by string, when time.Time, err error) {
	_, err = d.first(ctx, []any{(*text)(&by), at(&when)}, `SELECT lifted_by, lifted_us FROM cooldown_lifts
		WHERE provider = $1 AND owner = $2 AND repo = $3 AND number = $4`,
		text(d.stored(key.Provider)), text(lowerASCII(key.Owner)), text(lowerASCII(key.Repo)), key.Number)
	return by, when, err
}
