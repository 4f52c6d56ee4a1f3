package store

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
)

// text is a string column that holds any bytes; see escape. Convert a *string to *text to scan one.
type text string

// Value implements driver.Valuer.
func (t text) Value() (driver.Value, error) { return escape(string(t)), nil }

// Scan implements sql.Scanner.
func (t *text) Scan(src any) error {
	s, err := columnString(src)
	if err == nil {
		*t = text(unescape(s))
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

// at makes the column for a time that is read or written; written times are rounded down.
func at(t *time.Time) instant { return instant{t} }

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
