package store

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/sessions"
)

// hookKeep is how long alerts of hooks are remembered; the policy's windows are at most as long.
const hookKeep = 7 * 24 * time.Hour

// ClaimHook implements session.HookStore.
func (s *AgentSessions) ClaimHook(ctx context.Context, c sessions.HookClaim) (fresh []string, err error) {
	err = s.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		fresh = nil // of a try before
		if err := s.db.checkPaused(ctx, tx, c.Owner, c.Repo); err != nil {
			return err
		}
		now := s.db.now()
		if c.Act != (sessions.ForgeAct{}) {
			first, err := noteDelivery(ctx, tx, c.Act.Provider, "act "+c.Act.ID, now)
			if err != nil || !first {
				return err
			}
		}
		if fresh, err = newAlerts(ctx, tx, c, now); err != nil || len(fresh) == 0 {
			return err
		}
		var started int
		err := tx.QueryRowContext(ctx,
			"SELECT COUNT(DISTINCT session) FROM hook_alerts WHERE hook = $1 AND started_us > $2",
			textColumn(c.Hook), micros(now.Add(-time.Hour))).Scan(&started)
		if err != nil {
			return err
		}
		if started >= c.PerHour {
			return fault.New(fault.LimitReached,
				"the hook %s has started %d sessions within an hour, as many as the policy's per_hour", c.Hook, started)
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM hook_alerts WHERE hook = $1 AND started_us <= $2",
			textColumn(c.Hook), micros(now.Add(-hookKeep))); err != nil {
			return err
		}
		for _, fingerprint := range fresh {
			_, err := tx.ExecContext(ctx, `INSERT INTO hook_alerts (hook, fingerprint, session, started_us)
				VALUES ($1, $2, $3, $4) ON CONFLICT (hook, fingerprint)
				DO UPDATE SET session = excluded.session, started_us = excluded.started_us`,
				textColumn(c.Hook), textColumn(fingerprint), textColumn(c.Session), micros(now))
			if err != nil {
				return err
			}
		}
		_, err = s.db.appendAudit(ctx, tx, c.Row(c.Session, fresh))
		return err
	})
	return fresh, err
}

// DropHook implements session.HookStore. The row of the audit stays. The act at a forge is forgotten as well, so that
// the forge may send it again.
func (s *AgentSessions) DropHook(ctx context.Context, c sessions.HookClaim) error {
	return s.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if c.Act != (sessions.ForgeAct{}) {
			if _, err := tx.ExecContext(ctx, "DELETE FROM webhook_deliveries WHERE provider = $1 AND id = $2",
				textColumn(c.Act.Provider), textColumn(bound("act "+c.Act.ID, maxWord))); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(ctx, "DELETE FROM hook_alerts WHERE hook = $1 AND session = $2", textColumn(c.Hook),
			textColumn(c.Session))
		return err
	})
}

// NewAlerts implements session.HookStore.
func (s *AgentSessions) NewAlerts(ctx context.Context, c sessions.HookClaim) (fresh []string, err error) {
	err = s.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		fresh, err = newAlerts(ctx, tx, c, s.db.now())
		return err
	})
	return fresh, err
}

// newAlerts returns the alerts that have started no session within the window.
func newAlerts(ctx context.Context, tx *sql.Tx, c sessions.HookClaim, now time.Time) ([]string, error) {
	known, err := selectRows(ctx, tx, scanText, "SELECT fingerprint FROM hook_alerts WHERE hook = $1 AND started_us > $2",
		textColumn(c.Hook), micros(now.Add(-c.Window)))
	return slices.DeleteFunc(slices.Clone(c.Fingerprints), func(f string) bool { return slices.Contains(known, f) }), err
}
