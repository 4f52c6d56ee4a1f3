package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
)

const personColumns = "issuer, subject, provider, name, username, member_of, looked_us, sealed, refused"

// KeepPerson implements access.People.
func (a *Access) KeepPerson(ctx context.Context, p access.Person) (access.Person, error) {
	err := a.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		known, err := selectPeople(ctx, tx, p.Account)
		if err != nil {
			return err
		}
		if len(known) > 0 {
			p.Name = known[0].Name
			_, err := tx.ExecContext(ctx,
				"UPDATE people SET provider = $3, username = $4, member_of = $5, looked_us = $6, sealed = $7, refused = $8 "+
					"WHERE issuer = $1 AND subject = $2",
				text(p.Issuer), text(p.Subject), text(p.Provider), text(p.User), textList(p.Groups), at(&p.LookedAt),
				text(p.Sealed), asNumber(p.Refused))
			return err
		}
		if p.Name, err = newName(ctx, tx, p); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx,
			"INSERT INTO people ("+personColumns+") VALUES ("+placeholders(1, 9)+")",
			text(p.Issuer), text(p.Subject), text(p.Provider), text(p.Name), text(p.User), textList(p.Groups), at(&p.LookedAt),
			text(p.Sealed), asNumber(p.Refused))
		if causeOf(err) == causeUnique {
			return fault.Wrap(err, fault.Conflict, "somebody else was given the name %s at this moment; sign in again", p.Name)
		}
		return err
	})
	return p, err
}

// newName returns an unused name: that of the person at the provider or, if there is none or it is taken, one made from
// the account.
func newName(ctx context.Context, tx *sql.Tx, p access.Person) (string, error) {
	sum := sha256.Sum256([]byte(p.Issuer + "\x00" + p.Subject))
	mark := "#" + hex.EncodeToString(sum[:6])
	name := p.Provider + ":" + p.User
	if p.User == "" {
		return p.Provider + ":" + mark, nil
	}
	taken, err := nameTaken(ctx, tx, name)
	if err == nil && taken {
		name += mark
	}
	return name, err
}

const takenQuery = `SELECT EXISTS (SELECT 1 FROM api_tokens WHERE lower(name) = lower(CAST($1 AS TEXT)))
	OR EXISTS (SELECT 1 FROM people WHERE lower(name) = lower(CAST($1 AS TEXT)))`

func nameTaken(ctx context.Context, tx *sql.Tx, name string) (taken bool, err error) {
	err = tx.QueryRowContext(ctx, takenQuery, text(name)).Scan(&taken)
	return taken, err
}

// FindPerson implements access.People.
func (a *Access) FindPerson(ctx context.Context, account access.Account) (p access.Person, found bool, err error) {
	err = a.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		people, err := selectPeople(ctx, tx, account)
		if len(people) > 0 {
			p, found = people[0], true
		}
		return err
	})
	return p, found, err
}

func selectPeople(ctx context.Context, tx *sql.Tx, account access.Account) ([]access.Person, error) {
	return selectRows(ctx, tx, func(rows *sql.Rows, p *access.Person) error {
		var refused int64
		err := rows.Scan((*text)(&p.Issuer), (*text)(&p.Subject), (*text)(&p.Provider), (*text)(&p.Name), (*text)(&p.User),
			(*textList)(&p.Groups), at(&p.LookedAt), (*text)(&p.Sealed), &refused)
		p.Refused = refused != 0
		return err
	}, "SELECT "+personColumns+" FROM people WHERE issuer = $1 AND subject = $2",
		text(account.Issuer), text(account.Subject))
}

// KeepGrant implements access.People.
func (a *Access) KeepGrant(ctx context.Context, p access.Person, was string) (kept bool, err error) {
	err = a.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		kept, err = changesOne(tx.ExecContext(ctx,
			"UPDATE people SET sealed = $3, refused = $4 WHERE issuer = $1 AND subject = $2 AND sealed = $5",
			text(p.Issuer), text(p.Subject), text(p.Sealed), asNumber(p.Refused), text(was)))
		return err
	})
	return kept && err == nil, err
}

// Logins implements access.Logins.
func (a *Access) Logins(ctx context.Context) (out []access.Login, err error) {
	err = a.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		out, err = selectRows(ctx, tx, func(rows *sql.Rows, s *access.Login) error {
			var t access.Token
			err := rows.Scan(append(loginFields(s), (*text)(&s.Name), (*text)(&t.ID), (*text)(&t.Owner.Issuer),
				(*text)(&t.Owner.Subject))...)
			if t.ID != "" {
				t.Name = s.Name
				s.Holder = t.Actor()
			}
			return err
		}, "SELECT "+loginColumns("s.")+`, COALESCE(p.name, t.name, ''), COALESCE(t.id, ''), COALESCE(t.owner_issuer, ''),
			COALESCE(t.owner_subject, '') FROM web_sessions s
			LEFT JOIN people p ON p.issuer = s.issuer AND p.subject = s.subject
			LEFT JOIN api_tokens t ON t.hash = s.token_hash ORDER BY s.created_us DESC, s.hash`)
		return err
	})
	return out, err
}

// EndLogin implements access.Logins.
func (a *Access) EndLogin(ctx context.Context, id string, rows ...record.Attempt) error {
	return a.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, "DELETE FROM web_sessions WHERE id = $1 AND id <> ''", text(id))
		if err != nil {
			return err
		}
		if ended, err := result.RowsAffected(); err != nil || ended == 0 {
			if err == nil {
				err = fault.New(fault.NotFound, "there is no browser signed in with the id %q", id)
			}
			return err
		}
		return a.db.appendAll(ctx, tx, rows)
	})
}

// loginColumns returns the columns of a login, each with the prefix before it.
func loginColumns(prefix string) string {
	const names = "hash, token_hash, created_us, seen_us, id, browser, issuer, subject, provider_session"
	return prefix + strings.ReplaceAll(names, ", ", ", "+prefix)
}

// loginFields returns the destinations for reading them.
func loginFields(s *access.Login) []any {
	return []any{
		(*text)(&s.Hash), (*text)(&s.TokenHash), at(&s.CreatedAt), at(&s.SeenAt), (*text)(&s.ID), (*text)(&s.Browser),
		(*text)(&s.Issuer),
		(*text)(&s.Subject), (*text)(&s.ProviderSession),
	}
}

// LogoutKnown implements access.People.
func (a *Access) LogoutKnown(ctx context.Context, issuer, id string) (known bool, err error) {
	_, err = a.db.first(ctx, []any{&known}, "SELECT EXISTS (SELECT 1 FROM logout_tokens WHERE issuer = $1 AND id = $2)",
		text(issuer), text(id))
	return known, err
}

// KeepLogout implements access.People. It forgets those whose time is over.
func (a *Access) KeepLogout(ctx context.Context, issuer, id string, until time.Time) error {
	return a.db.write(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM logout_tokens WHERE until_us < $1", micros(a.db.now()))
		if err == nil {
			_, err = tx.ExecContext(ctx, "INSERT INTO logout_tokens (issuer, id, until_us) VALUES ($1, $2, $3) "+
				"ON CONFLICT DO NOTHING", text(issuer), text(id), micros(until))
		}
		return err
	})
}
