package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/facts"
	"github.com/claudeops/claudeops/internal/records/record"
)

// textColumn is a string column that holds any bytes; see escape. Convert a *string to *text to scan one.
type textColumn string

// Value implements driver.Valuer.
func (t textColumn) Value() (driver.Value, error) { return escape(string(t)), nil }

// Scan implements sql.Scanner.
func (t *textColumn) Scan(src any) error {
	s, err := columnString(src)
	if err == nil {
		*t = textColumn(unescape(s))
	}
	return err
}

// textList is a list of strings in a JSON column. An empty list is read as nil.
type textList []string

// Value implements driver.Valuer.
func (l textList) Value() (driver.Value, error) { return l.encode(), nil }

// Scan implements sql.Scanner.
func (l *textList) Scan(src any) error {
	s, err := columnString(src)
	if err != nil {
		return err
	}
	var out []string
	if err := json.Unmarshal([]byte(s), &out); err != nil {
		return fmt.Errorf("not a JSON array of strings: %w", err)
	}
	for i := range out {
		out[i] = unescape(out[i])
	}
	*l = nil
	if len(out) > 0 {
		*l = out
	}
	return nil
}

func (l textList) encode() string {
	escaped := make([]string, len(l))
	for i, s := range l {
		escaped[i] = escape(s)
	}
	return encodeJSON(escaped)
}

// encodeJSON writes v, which must be of strings, lists and structs only, without escapes for HTML.
func encodeJSON(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "[]" // such values always encode
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

func columnString(src any) (string, error) {
	switch v := src.(type) {
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	}
	return "", fmt.Errorf("a column of text holds %T", src)
}

// instant is a time column, in microseconds since 1970-01-01 UTC; the zero time is NULL.
type instant struct{ *time.Time }

// timeColumn makes the column for a time that is read or written; written times are rounded down.
func timeColumn(t *time.Time) instant { return instant{t} }

// Value implements driver.Valuer.
func (i instant) Value() (driver.Value, error) {
	if i.IsZero() {
		return nil, nil
	}
	return micros(*i.Time), nil
}

// Scan implements sql.Scanner.
func (i instant) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*i.Time = time.Time{}
	case int64:
		*i.Time = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("a column of time holds %T", src)
	}
	return nil
}

// micros converts t to microseconds, rounded down. Times that do not fit, more than 290,000 years away, become the
// furthest ones that do.
func micros(t time.Time) int64 {
	const furthest = math.MaxInt64 / 1_000_000
	switch s := t.Unix(); {
	case s >= furthest:
		return math.MaxInt64
	case s <= -furthest:
		return math.MinInt64
	}
	return t.UnixMicro()
}

// answers are a column with a JSON list, or "" for none.
type answers []record.ReviewAnswer

// Value implements driver.Valuer.
func (a answers) Value() (driver.Value, error) {
	if len(a) == 0 {
		return "", nil
	}
	return escape(encodeJSON(a)), nil
}

// Scan implements sql.Scanner.
func (a *answers) Scan(src any) error {
	s, err := columnString(src)
	if err != nil || s == "" {
		return err
	}
	if err := json.Unmarshal([]byte(unescape(s)), a); err != nil {
		return fmt.Errorf("not a list of answers: %w", err)
	}
	return nil
}

// factsColumn is a column with the facts of a change as JSON; "" for a change that was not read. Counts come first, so
// that lists read no more than the beginning.
type factsColumn facts.Reading

// keptReading is a facts.Reading in the order of the column.
type keptReading struct {
	Counts map[facts.Class]int `json:"counts"`
	More   int                 `json:"more,omitempty"`
	Facts  []facts.Fact        `json:"facts"`
}

// Value implements driver.Valuer.
func (r factsColumn) Value() (driver.Value, error) {
	if !facts.Reading(r).WasRead() {
		return "", nil
	}
	return escape(encodeJSON(keptReading{r.Counts, r.More, r.Facts})), nil
}

// Scan implements sql.Scanner.
func (r *factsColumn) Scan(src any) error {
	s, err := columnString(src)
	if err != nil || s == "" {
		return err
	}
	if err := json.Unmarshal([]byte(unescape(s)), (*facts.Reading)(r)); err != nil {
		return fmt.Errorf("not the facts of a change: %w", err)
	}
	return nil
}

// maxTags bounds the tags of a change in a list.
const maxTags = 2

// factTags is the beginning of a column of the type factsColumn, with the tags of its facts; "" for none.
type factTags string

// factTagsOf selects the beginning of the column with the facts of a proposal.
func factTagsOf(column string) string { return "COALESCE(SUBSTR(" + column + ", 1, 1000), '')" }

// Scan implements sql.Scanner.
func (t *factTags) Scan(src any) error {
	s, err := columnString(src)
	counts, isThere := strings.CutPrefix(s, `{"counts":`)
	if err != nil || !isThere {
		return err
	}
	r := facts.Reading{}
	if err := json.NewDecoder(strings.NewReader(counts)).Decode(&r.Counts); err != nil {
		return fmt.Errorf("not the facts of a change: %w", err)
	}
	*t = factTags(strings.Join(r.Tags(maxTags), record.BetweenTags))
	return nil
}

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
			maxName)), Name: str(a.Person.Name), Forge: a.Person.Forge}
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
// asked for the very same change, who opened the dry run, and who made that. A revision counts from its reservation on,
// since its process may be killed before it records that it has added its commit. There are none as long as the record
// does not say who opened it: that process may have been killed as well, and others have revised it since.
func (p *Pulls) Starters(ctx context.Context, key record.PullKey) (out []record.Actor, err error) {
	key = p.db.storedKey(key)
	const started = `WITH made AS (
			SELECT actor, digest, provider, outcome FROM audit WHERE provider = $1 AND pr_number = $2 AND LOWER(owner) = $3
				AND LOWER(repo) = $4 AND action IN ('create_pr', 'create_pr.promote', 'create_pr.settle', 'create_pr.resume')
				AND outcome IN ('opened', 'revised', 'reused')
		)
		SELECT actor FROM (
			SELECT actor FROM made
			UNION SELECT p.actor FROM proposals p JOIN made m ON p.digest = m.digest AND p.provider = m.provider
				WHERE m.digest <> '' AND p.state = 'dry_run'
			UNION SELECT actor FROM proposals WHERE provider = $1 AND revises = $2 AND LOWER(owner) = $3 AND LOWER(repo) = $4
				AND state IN ('reserved', 'committed', 'unsettled')
		) AS stands WHERE EXISTS (SELECT 1 FROM made WHERE outcome = 'opened')`
	err = p.db.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		out, err = selectRows(ctx, tx, func(rows *sql.Rows, a *record.Actor) error { return rows.Scan((*actor)(a)) },
			started, textColumn(key.Provider), key.Number, textColumn(lowerASCII(key.Owner)), textColumn(lowerASCII(key.Repo)))
		return err
	})
	return out, err
}

// escape turns any bytes into valid UTF-8 without NUL, which every database stores as it is: backslashes are doubled,
// NUL and bytes that are not part of valid UTF-8 become \xHH. Different strings stay different; unescape takes it
// back.
func escape(s string) string {
	if utf8.ValidString(s) && !strings.ContainsAny(s, "\\\x00") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == 0 || r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

// unescape takes escape back. Text that escape cannot have written is returned as it is.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != '\\':
			b.WriteByte(s[i])
		case strings.HasPrefix(s[i:], `\\`):
			b.WriteByte('\\')
			i++
		default:
			c, err := strconv.ParseUint(strings.TrimPrefix(s[i:min(len(s), i+4)], `\x`), 16, 8)
			if err != nil {
				return s
			}
			b.WriteByte(byte(c))
			i += 3
		}
	}
	return b.String()
}

// bound returns s if it has at most limit bytes. Otherwise it returns the first limit bytes, or up to three fewer so as
// not to split a character, and a mark with the length and the hash of the whole. The result is longer than limit, so
// nothing that was not cut can look like it, and different strings stay different.
func bound(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > limit-utf8.UTFMax+1 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s…[cut: %d bytes, sha256 %x]", s[:cut], len(s), sha256.Sum256([]byte(s)))
}

// boundList returns the list if it has at most limit entries. Otherwise it returns the first limit entries, and one
// more that mark makes of the number and the hash of the others.
func boundList[T any](list []T, limit int, parts func(T) []string, mark func(string) T) []T {
	if len(list) <= limit {
		return list
	}
	rest := list[limit:]
	h := sha256.New()
	for _, item := range rest {
		for _, part := range parts(item) {
			fmt.Fprintf(h, "%d:%s", len(part), part)
		}
	}
	note := fmt.Sprintf("…[cut: %d more, sha256 %x]", len(rest), h.Sum(nil))
	return append(append(make([]T, 0, limit+1), list[:limit]...), mark(note))
}

// queryRows calls scan for each row of a query.
func queryRows(ctx context.Context, tx *sql.Tx, scan func(*sql.Rows) error, query string, args ...any) (err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// selectRows returns what scan reads of each row of a query.
func selectRows[T any](
	ctx context.Context, tx *sql.Tx, scan func(*sql.Rows, *T) error, query string, args ...any,
) (out []T, err error) {
	err = queryRows(ctx, tx, func(rows *sql.Rows) error {
		var one T
		if err := scan(rows, &one); err != nil {
			return err
		}
		out = append(out, one)
		return nil
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// selectOf is selectRows in a transaction of its own.
func selectOf[T any](
	ctx context.Context, d *database, scan func(*sql.Rows, *T) error, query string, args ...any,
) (out []T, err error) {
	err = d.readTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		out, err = selectRows(ctx, tx, scan, query, args...)
		return err
	})
	return out, err
}

// scanText reads a column of text.
func scanText(rows *sql.Rows, out *string) error { return rows.Scan((*textColumn)(out)) }

// changesOne reports whether a statement has changed a row.
func changesOne(result sql.Result, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

// dollar returns the placeholder of an argument.
func dollar(n int) string { return "$" + strconv.Itoa(n) }

// placeholders returns "$from, ..., $to".
func placeholders(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		if i > from {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "$%d", i)
	}
	return b.String()
}

// conditions are the conditions on rows, and the arguments of the query.
type conditions struct {
	texts []string
	args  []any
}

// add adds a condition, in which %d stands for the number of the argument.
func (c *conditions) add(condition string, value any) {
	c.args = append(c.args, value)
	c.texts = append(c.texts, fmt.Sprintf(condition, len(c.args)))
}

// equals adds a condition about a word, unless that is empty.
func (c *conditions) equals(condition, word string) {
	if word != "" {
		c.add(condition, textColumn(bound(word, maxWord)))
	}
}

// where returns the conditions after WHERE.
func (c *conditions) where() string { return strings.Join(c.texts, " AND ") }

// limitRows adds the size of a page, and returns its argument's number.
func (c *conditions) limitRows(limit, usual, most int) int {
	if limit <= 0 {
		limit = usual
	}
	c.args = append(c.args, min(limit, most))
	return len(c.args)
}
