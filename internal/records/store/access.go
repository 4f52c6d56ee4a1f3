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

// Access implements access.Tokens and access.Logins: who may call the server.
type Access struct{ db *database }

const tokenColumns = "id, name, hash, max_tier, scopes, created_us, revoked_us, agent, expires_us, owner_issuer, " +
	"owner_subject, used_us, repos, dry_run, read_only, maker, grantor"

// tokenOwner is the name of the person whose a token is, and what is known of the program that it was given to.
const tokenOwner = `, COALESCE((SELECT p.name FROM people p WHERE p.issuer = api_tokens.owner_issuer AND p.subject = api_tokens.owner_subject), ''),
	COALESCE((SELECT g.client_name FROM oauth_grants g WHERE g.token = api_tokens.id), ''),
	COALESCE((SELECT g.client FROM oauth_grants g WHERE g.token = api_tokens.id), '')`

// InsertToken keeps a token, and appends the rows to the audit. Its name must be new among the tokens that are good;
// else it is conflict. What access.CheckMaker refuses is forbidden. In both cases nothing is kept.
func (a *Access) InsertToken(ctx context.Context, t access.Token, rows ...record.Attempt) error {
	return a.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		if err := insertToken(ctx, tx, t); err != nil {
			return err
		}
		return a.db.appendAll(ctx, tx, rows)
	})
}

func insertToken(ctx context.Context, tx *sql.Tx, t access.Token) error {
	if err := access.CheckMaker(t.Maker); err != nil {
		return err
	}
	person, err := personNamed(ctx, tx, t.Name)
	if err != nil {
		return err
	}
	if person {
		return fault.New(fault.Conflict, "%q is the name of a person who signs in here; choose another name", t.Name)
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO api_tokens ("+tokenColumns+") VALUES ("+placeholders(1, 17)+")",
		textColumn(t.ID), textColumn(t.Name), textColumn(t.Hash), int64(t.MaxTier), t.Scopes.String(),
		timeColumn(&t.CreatedAt), timeColumn(&t.RevokedAt),
		asNumber(t.Agent), timeColumn(&t.ExpiresAt),
		textColumn(t.Owner.Issuer), textColumn(t.Owner.Subject), timeColumn(&t.UsedAt), strings.Join(t.Repos, " "),
		asNumber(t.DryRun), asNumber(t.ReadOnly), actor(t.Maker), textColumn(t.Grantor))
	if causeOf(err) == causeUnique {
		return fault.Wrap(err, fault.Conflict,
			"there is a token with the name %q already; revoke it, or choose another name", t.Name)
	}
	return err
}

func asNumber(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

// Tokens returns every token, oldest first.
func (a *Access) Tokens(ctx context.Context) (out []access.Token, err error) {
	err = a.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		out, err = selectTokens(ctx, tx, "ORDER BY created_us, id")
		return err
	})
	return out, err
}

// FindToken implements access.Tokens.
func (a *Access) FindToken(ctx context.Context, hash string) (t access.Token, found bool, err error) {
	err = a.db.readTx(record.ShortReads(ctx), func(ctx context.Context, tx *sql.Tx) error {
		tokens, err := selectTokens(ctx, tx, "WHERE hash = $1", textColumn(hash))
		if len(tokens) > 0 {
			t, found = tokens[0], true
		}
		return err
	})
	return t, found, err
}

func personNamed(ctx context.Context, tx *sql.Tx, name string) (found bool, err error) {
	err = tx.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM people WHERE lower(name) = lower(CAST($1 AS TEXT)))",
		textColumn(name)).Scan(&found)
	return found, err
}

// TouchToken implements access.Tokens.
func (a *Access) TouchToken(ctx context.Context, hash string, used time.Time) error {
	return a.db.exec(ctx, "UPDATE api_tokens SET used_us = $1 WHERE hash = $2", micros(used), textColumn(hash))
}

// AnyToken reports whether a token of a person or program was ever made, revoked ones included; those of agents do not
// count, since they cannot sign in.
func (a *Access) AnyToken(ctx context.Context) (found bool, err error) {
	_, err = a.db.first(ctx, []any{&found}, "SELECT EXISTS (SELECT 1 FROM api_tokens WHERE agent = 0)")
	return found, err
}

// madeWith are the good tokens that were made with those of the condition, or with one of these.
const madeWith = `WITH RECURSIVE made (hash) AS (SELECT hash FROM api_tokens WHERE revoked_us IS NULL AND (id = $1 OR name = $1)
	UNION SELECT t.hash FROM api_tokens t JOIN made m ON t.grantor = m.hash) `

// RevokeToken makes the good token with the id or name useless from now on, with all that were made with it, and
// appends to the audit what row makes of the names of those; not_found if there is none.
func (a *Access) RevokeToken(ctx context.Context, idOrName string, row ...func(made []string) record.Attempt) error {
	return a.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		made, err := selectRows(ctx, tx, func(rows *sql.Rows, name *string) error { return rows.Scan((*textColumn)(name)) },
			madeWith+`SELECT name FROM api_tokens WHERE revoked_us IS NULL AND hash IN (SELECT hash FROM made)
				AND id <> $1 AND name <> $1 ORDER BY created_us, id`, textColumn(idOrName))
		if err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx,
			madeWith+"UPDATE api_tokens SET revoked_us = $2 WHERE revoked_us IS NULL AND hash IN (SELECT hash FROM made)",
			textColumn(idOrName), micros(a.db.now()))
		if err != nil {
			return err
		}
		revoked, err := result.RowsAffected()
		if err == nil && revoked == 0 {
			return fault.New(fault.NotFound, "there is no good token with the name or id %q; `claudeops token list` shows them",
				idOrName)
		}
		if err != nil {
			return err
		}
		var rows []record.Attempt
		for _, one := range row {
			rows = append(rows, one(made))
		}
		return a.db.appendAll(ctx, tx, rows)
	})
}

func selectTokens(ctx context.Context, tx *sql.Tx, clauses string, args ...any) ([]access.Token, error) {
	return selectRows(ctx, tx, func(rows *sql.Rows, t *access.Token) error {
		var scopes, repos string
		var agent, dryRun, readOnly int64
		if err := rows.Scan((*textColumn)(&t.ID), (*textColumn)(&t.Name), (*textColumn)(&t.Hash), &t.MaxTier, &scopes,
			timeColumn(&t.CreatedAt), timeColumn(&t.RevokedAt), &agent, timeColumn(&t.ExpiresAt), (*textColumn)(&t.Owner.Issuer),
			(*textColumn)(&t.Owner.Subject),
			timeColumn(&t.UsedAt), &repos, &dryRun, &readOnly, (*actor)(&t.Maker),
			(*textColumn)(&t.Grantor), (*textColumn)(&t.OwnerName), (*textColumn)(&t.Client),
			(*textColumn)(&t.ClientID)); err != nil {
			return err
		}
		if repos != "" {
			t.Repos = strings.Fields(repos)
		}
		t.DryRun, t.ReadOnly = dryRun != 0, readOnly != 0
		if t.Agent = agent != 0; t.Agent {
			return nil
		}
		var err error
		if t.Scopes, err = access.ParseScopes(scopes); err != nil {
			return fault.Wrap(err, fault.Internal, "the token %q has scopes that this program does not know; revoke it", t.Name)
		}
		return nil
	}, "SELECT "+tokenColumns+tokenOwner+" FROM api_tokens "+clauses, args...)
}

// InsertLogin implements access.Logins.
func (a *Access) InsertLogin(ctx context.Context, session access.Login, madeBefore, seenBefore time.Time,
	rows ...record.Attempt) error {
	return a.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM web_sessions WHERE created_us < $1 OR seen_us < $2",
			micros(madeBefore), micros(seenBefore))
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO web_sessions ("+loginColumns("")+") VALUES ("+placeholders(1, 9)+")",
			textColumn(session.Hash), textColumn(session.TokenHash), micros(session.CreatedAt), micros(session.SeenAt),
			textColumn(session.ID),
			textColumn(session.Browser),
			textColumn(session.Issuer), textColumn(session.Subject), textColumn(session.ProviderSession))
		if err != nil {
			return err
		}
		return a.db.appendAll(ctx, tx, rows)
	})
}

// FindLogin implements access.Logins.
func (a *Access) FindLogin(ctx context.Context, hash string) (login access.Login, found bool, err error) {
	found, err = a.db.first(ctx, loginFields(&login), "SELECT "+loginColumns("")+" FROM web_sessions WHERE hash = $1",
		textColumn(hash))
	return login, found, err
}

// TouchLogin implements access.Logins.
func (a *Access) TouchLogin(ctx context.Context, hash string, seen time.Time) error {
	return a.db.exec(ctx, "UPDATE web_sessions SET seen_us = $1 WHERE hash = $2", micros(seen), textColumn(hash))
}

// DeleteLogin implements access.Logins.
func (a *Access) DeleteLogin(ctx context.Context, hash string) error {
	return a.db.exec(ctx, "DELETE FROM web_sessions WHERE hash = $1", textColumn(hash))
}

const personColumns = "issuer, subject, provider, name, username, member_of, looked_us, sealed, refused"

// KeepPerson implements access.People.
func (a *Access) KeepPerson(ctx context.Context, p access.Person) (access.Person, error) {
	err := a.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		known, err := selectPeople(ctx, tx, p.Account)
		if err != nil {
			return err
		}
		if len(known) > 0 {
			p.Name = known[0].Name
			_, err := tx.ExecContext(ctx,
				"UPDATE people SET provider = $3, username = $4, member_of = $5, looked_us = $6, sealed = $7, refused = $8 "+
					"WHERE issuer = $1 AND subject = $2",
				textColumn(p.Issuer), textColumn(p.Subject), textColumn(p.Provider), textColumn(p.User), textList(p.Groups),
				timeColumn(&p.LookedAt),
				textColumn(p.Sealed), asNumber(p.Refused))
			return err
		}
		if p.Name, err = newName(ctx, tx, p); err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx,
			"INSERT INTO people ("+personColumns+") VALUES ("+placeholders(1, 9)+")",
			textColumn(p.Issuer), textColumn(p.Subject), textColumn(p.Provider), textColumn(p.Name), textColumn(p.User),
			textList(p.Groups), timeColumn(&p.LookedAt),
			textColumn(p.Sealed), asNumber(p.Refused))
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
	err = tx.QueryRowContext(ctx, takenQuery, textColumn(name)).Scan(&taken)
	return taken, err
}

// FindPerson implements access.People.
func (a *Access) FindPerson(ctx context.Context, account access.Account) (p access.Person, found bool, err error) {
	err = a.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
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
		err := rows.Scan((*textColumn)(&p.Issuer), (*textColumn)(&p.Subject), (*textColumn)(&p.Provider),
			(*textColumn)(&p.Name), (*textColumn)(&p.User),
			(*textList)(&p.Groups), timeColumn(&p.LookedAt), (*textColumn)(&p.Sealed), &refused)
		p.Refused = refused != 0
		return err
	}, "SELECT "+personColumns+" FROM people WHERE issuer = $1 AND subject = $2",
		textColumn(account.Issuer), textColumn(account.Subject))
}

// KeepGrant implements access.People.
func (a *Access) KeepGrant(ctx context.Context, p access.Person, was string) (kept bool, err error) {
	err = a.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		kept, err = changesOne(tx.ExecContext(ctx,
			"UPDATE people SET sealed = $3, refused = $4 WHERE issuer = $1 AND subject = $2 AND sealed = $5",
			textColumn(p.Issuer), textColumn(p.Subject), textColumn(p.Sealed), asNumber(p.Refused), textColumn(was)))
		return err
	})
	return kept && err == nil, err
}

// Logins implements access.Logins.
func (a *Access) Logins(ctx context.Context) (out []access.Login, err error) {
	err = a.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		out, err = selectRows(ctx, tx, func(rows *sql.Rows, s *access.Login) error {
			var t access.Token
			err := rows.Scan(append(loginFields(s), (*textColumn)(&s.Name), (*textColumn)(&t.ID), (*textColumn)(&t.Owner.Issuer),
				(*textColumn)(&t.Owner.Subject))...)
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
	return a.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		result, err := tx.ExecContext(ctx, "DELETE FROM web_sessions WHERE id = $1 AND id <> ''", textColumn(id))
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
		(*textColumn)(&s.Hash), (*textColumn)(&s.TokenHash), timeColumn(&s.CreatedAt), timeColumn(&s.SeenAt),
		(*textColumn)(&s.ID), (*textColumn)(&s.Browser),
		(*textColumn)(&s.Issuer),
		(*textColumn)(&s.Subject), (*textColumn)(&s.ProviderSession),
	}
}

// LogoutKnown implements access.People.
func (a *Access) LogoutKnown(ctx context.Context, issuer, id string) (known bool, err error) {
	_, err = a.db.first(ctx, []any{&known}, "SELECT EXISTS (SELECT 1 FROM logout_tokens WHERE issuer = $1 AND id = $2)",
		textColumn(issuer), textColumn(id))
	return known, err
}

// KeepLogout implements access.People. It forgets those whose time is over.
func (a *Access) KeepLogout(ctx context.Context, issuer, id string, until time.Time) error {
	return a.db.writeTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "DELETE FROM logout_tokens WHERE until_us < $1", micros(a.db.now()))
		if err == nil {
			_, err = tx.ExecContext(ctx, "INSERT INTO logout_tokens (issuer, id, until_us) VALUES ($1, $2, $3) "+
				"ON CONFLICT DO NOTHING", textColumn(issuer), textColumn(id), micros(until))
		}
		return err
	})
}
