package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"fmt"

	"github.com/claudeops/claudeops/internal/records/record"
)

// encodeActor encodes an actor for a column; "" if it is unknown. Names that clients gave themselves are bounded.
func encodeActor(a record.Actor) string {
	if a.IsZero() {
		return ""
	}
	return encodeJSON(boundActor(a))
}

func boundActor(a record.Actor) record.Actor {
	str := func(s string) string { return escape(bound(s, maxWord)) }
	a.System, a.Client = str(a.System), str(a.Client)
	if a.Person != nil {
		a.Person = &record.Person{Issuer: escape(bound(a.Person.Issuer, maxURL)), Subject: escape(bound(a.Person.Subject,
			maxName)), Name: str(a.Person.Name)}
	}
	next := func(of *record.Actor) *record.Actor {
		if of == nil {
			return nil
		}
		bounded := boundActor(*of)
		return &bounded
	}
	if c := a.Credential; c != nil {
		a.Credential = &record.Credential{Kind: c.Kind, ID: str(c.ID), Name: str(c.Name), Maker: next(c.Maker)}
	}
	if s := a.Session; s != nil {
		a.Session = &record.ActorSession{ID: str(s.ID), Starter: next(s.Starter)}
		for _, read := range s.Read {
			a.Session.Read = append(a.Session.Read, boundActor(read))
		}
	}
	return a
}

// decodeActor reads what encodeActor wrote.
func decodeActor(column any) (a record.Actor, err error) {
	s, err := columnString(column)
	if err != nil || s == "" {
		return a, err
	}
	if err := json.Unmarshal([]byte(s), &a); err != nil {
		return a, err
	}
	unescapeActor(&a)
	return a, nil
}

func unescapeActor(a *record.Actor) {
	if a == nil {
		return
	}
	a.System, a.Client = unescape(a.System), unescape(a.Client)
	if p := a.Person; p != nil {
		p.Issuer, p.Subject, p.Name = unescape(p.Issuer), unescape(p.Subject), unescape(p.Name)
	}
	if c := a.Credential; c != nil {
		c.ID, c.Name = unescape(c.ID), unescape(c.Name)
		unescapeActor(c.Maker)
	}
	if s := a.Session; s != nil {
		s.ID = unescape(s.ID)
		unescapeActor(s.Starter)
		for i := range s.Read {
			unescapeActor(&s.Read[i])
		}
	}
}

// actor is a column with an actor. Convert a *record.Actor to *actor to scan one.
type actor record.Actor

// Value implements driver.Valuer.
func (a actor) Value() (driver.Value, error) { return encodeActor(record.Actor(a)), nil }

// Scan implements sql.Scanner.
func (a *actor) Scan(src any) error {
	read, err := decodeActor(src)
	if err != nil {
		return fmt.Errorf("actor: %w", err)
	}
	*a = actor(read)
	return nil
}

// Starters returns the people who started the parts of a pull request: who proposed it or one of its revisions, who
// asked for the very same change, who opened the dry run, and who made that.
func (p *Pulls) Starters(ctx context.Context, key record.PullKey) (out []record.Actor, err error) {
	key = p.db.storedKey(key)
	const started = `WITH made AS (
			SELECT actor, digest, provider FROM audit WHERE provider = $1 AND pr_number = $2 AND LOWER(owner) = $3
				AND LOWER(repo) = $4 AND action IN ('create_pr', 'create_pr.promote', 'create_pr.settle', 'create_pr.resume')
				AND outcome IN ('opened', 'revised', 'reused')
		)
		SELECT actor FROM made
		UNION SELECT p.actor FROM proposals p JOIN made m ON p.digest = m.digest AND p.provider = m.provider
			WHERE m.digest <> '' AND p.state = 'dry_run'`
	err = p.db.read(ctx, func(ctx context.Context, tx *sql.Tx) error {
		out, err = selectRows(ctx, tx, func(rows *sql.Rows, a *record.Actor) error { return rows.Scan((*actor)(a)) },
			started, text(key.Provider), key.Number, text(lowerASCII(key.Owner)), text(lowerASCII(key.Repo)))
		return err
	})
	return out, err
}
