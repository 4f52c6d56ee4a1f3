package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// The package comment documents the encoding of this file.

const auditHeader = "claudeops-audit-v1\n"

// genesisHash is the hash that the first row of the audit carries as that of the row before, and the head of an empty
// audit.
const genesisHash = "0000000000000000000000000000000000000000000000000000000000000000"

// Bounds of what a row keeps, in bytes and entries. Requests are checked before they get here; these hold for the ones
// that were refused.
const (
	maxWord       = 200  // caller, request id, digest and words of ours
	maxName       = 512  // owner, repository, branches
	maxTitle      = 1024 // a title that was accepted has at most 72 characters
	maxURL        = 2048
	maxMessage    = 4096
	maxSentence   = 1024 // in verdicts
	maxPath       = 1100
	maxPaths      = 200
	maxVerdicts   = 20
	maxViolations = 100 // of one verdict
)

// bounds are the bounds of one row.
type bounds struct {
	name, title, message, sentence, path int // bytes of one text
	paths, verdicts                      int // bytes of all of them, as they are stored; 0: their number alone is bounded
	search                               int // bytes of the text of an attempt that a search looks at
	warnings                             int // of one verdict
}

// boundsOf returns tighter bounds for refused and failed attempts: repeated refusals must not fill the disk. A request
// that becomes a proposal is within both; it has been checked.
func boundsOf(outcome record.Outcome) bounds {
	if outcome == record.OutcomeRefused || outcome == record.OutcomeFailed {
		return bounds{name: 100, title: 300, message: 1024, sentence: 240, path: 160, paths: 512, verdicts: 1200, search: 160,
			warnings: 3}
	}
	return bounds{
		name: maxName, title: maxTitle, message: maxMessage, sentence: maxSentence, path: maxPath, search: maxSearch,
		warnings: maxVerdicts,
	}
}

// auditRow is one row of the audit, with its columns as they are stored.
type auditRow struct {
	record.RecordedAttempt
	columns []auditColumn
}

// hashedText returns the text whose SHA-256 is the row's hash; see the package documentation.
func (r auditRow) hashedText() []byte {
	b := []byte(auditHeader)
	for _, c := range r.columns {
		b = appendColumn(b, c.name, c.text())
	}
	return b
}

// actorColumn is the one column that rows of earlier versions lack.
const actorColumn = "actor"

// auditColumn is a column that the hash covers, in the form in which it is stored.
type auditColumn struct {
	name  string
	value any // int64 or string
}

func (c auditColumn) text() string {
	if n, ok := c.value.(int64); ok {
		return strconv.FormatInt(n, 10)
	}
	return c.value.(string)
}

// policyColumn has the hash of the policy that judged an attempt.
const policyColumn = "policy"

// appendColumn leaves out an actor and a policy that a row of an earlier version does not have.
func appendColumn[T string | []byte](b []byte, name string, value T) []byte {
	if (name == actorColumn || name == policyColumn) && len(value) == 0 {
		return b
	}
	b = append(b, name...)
	b = append(b, '=')
	b = strconv.AppendInt(b, int64(len(value)), 10)
	b = append(b, ':')
	b = append(b, value...)
	return append(b, '\n')
}

func hashOf(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

// newAuditRow makes the row that follows the row seq-1 with the hash prev.
func newAuditRow(seq int64, prev string, a record.Attempt) auditRow {
	str := func(s string, limit int) string { return escape(bound(s, limit)) }
	l := boundsOf(a.Outcome)
	if !a.Actor.IsZero() {
		a.Door, a.Caller = a.Actor.Door, a.Actor.String()
	}
	row := auditRow{record.RecordedAttempt{Seq: seq, PrevHash: prev, Attempt: a}, []auditColumn{
		{"seq", seq},
		{"prev_hash", prev},
		{"time_us", micros(a.Time)},
		{"request_id", str(a.RequestID, maxWord)},
		{"door", str(string(a.Door), maxWord)},
		{"caller", str(a.Caller, maxWord)},
		{"tier", int64(a.Tier)},
		{"action", str(a.Action, maxWord)},
		{"provider", str(a.Provider, maxWord)},
		{"owner", str(a.Owner, l.name)},
		{"repo", str(a.Repo, l.name)},
		{"base", str(a.Base, l.name)},
		{"branch", str(a.Branch, l.name)},
		{"title", str(a.Title, l.title)},
		{"paths", encodePaths(a.Paths, l)},
		{"digest", str(a.Digest, maxWord)},
		{"verdicts", encodeVerdicts(a.Verdicts, l)},
		{"outcome", str(string(a.Outcome), maxWord)},
		{"code", str(string(a.Code), maxWord)},
		{"message", str(a.Message, l.message)},
		{"pr_number", int64(a.PRNumber)},
		{"pr_url", str(a.PRURL, maxURL)},
		{"duration_us", a.Duration.Microseconds()},
		{actorColumn, encodeActor(a.Actor)},
		{policyColumn, str(a.Policy, maxWord)},
	}}
	row.Hash = hashOf(row.hashedText())
	return row
}

// auditColumnNames returns the columns that the hash covers, in their order.
func auditColumnNames() []string {
	columns := newAuditRow(0, "", record.Attempt{}).columns
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return names
}

// decodeColumns fills the fields of the row from its columns.
func (r *auditRow) decodeColumns() error {
	by := make(map[string]auditColumn, len(r.columns))
	for _, c := range r.columns {
		by[c.name] = c
	}
	str := func(name string) string { s, _ := by[name].value.(string); return unescape(s) }
	num := func(name string) int64 { n, _ := by[name].value.(int64); return n }
	r.Seq, r.PrevHash = num("seq"), str("prev_hash")
	var paths textList
	if err := paths.Scan(by["paths"].value); err != nil {
		return fmt.Errorf("paths: %w", err)
	}
	verdicts, err := decodeVerdicts(by["verdicts"].value)
	if err != nil {
		return fmt.Errorf("verdicts: %w", err)
	}
	who, err := decodeActor(by[actorColumn].value)
	if err != nil {
		return fmt.Errorf("actor: %w", err)
	}
	r.Attempt = record.Attempt{
		Time: time.UnixMicro(num("time_us")).UTC(), RequestID: str("request_id"), Actor: who,
		Door: record.Door(
			str("door"),
		), Caller: str("caller"), Tier: gitprovider.Tier(num("tier")), Action: str("action"), Provider: str("provider"),
		Owner: str("owner"), Repo: str("repo"), Base: str("base"), Branch: str("branch"), Title: str("title"),
		Paths: paths, Digest: str("digest"), Verdicts: verdicts, Outcome: record.Outcome(str("outcome")),
		Code: fault.Code(str("code")), Message: str("message"), PRNumber: int(num("pr_number")), PRURL: str("pr_url"),
		Duration: time.Duration(num("duration_us")) * time.Microsecond, Policy: str(policyColumn),
	}
	return nil
}

func encodePaths(paths []string, l bounds) string {
	most := fitting(paths, maxPaths, l.paths, func(p string) int { return len(escape(bound(p, l.path))) })
	kept := slices.Clone(boundList(paths, most,
		func(p string) []string { return []string{p} }, func(note string) string { return note }))
	for i, p := range kept {
		if i < most { // the mark is not a path
			kept[i] = bound(p, l.path)
		}
	}
	return textList(kept).encode()
}

// fitting returns how many entries of a list have room: at least one, at most most, and no more bytes than left; 0
// bytes means no limit of bytes.
func fitting[T any](list []T, most, left int, size func(T) int) int {
	if left == 0 {
		return most
	}
	n := 0
	for _, item := range list[:min(len(list), most)] {
		if left -= size(item); left < 0 {
			break
		}
		n++
	}
	return max(n, 1)
}

func encodeVerdicts(verdicts []record.Verdict, l bounds) string {
	kept := boundList(verdicts, maxVerdicts,
		func(v record.Verdict) []string { return []string{encodeVerdicts([]record.Verdict{v}, l)} },
		func(note string) record.Verdict { return record.Verdict{Detail: note} })
	out := make([]record.Verdict, len(kept))
	stored := func(s string, limit int) string { return escape(bound(s, limit)) }
	left := l.verdicts
	for i, v := range kept {
		size := func(v fault.Violation) int { return len(encodeJSON(mapViolation(v, l, stored))) }
		most := fitting(v.Violations, maxViolations, left, size)
		for _, violation := range v.Violations[:min(most, len(v.Violations))] {
			left = max(left-size(violation), min(left, 1))
		}
		v.Violations = boundList(v.Violations, most,
			func(v fault.Violation) []string {
				return []string{string(v.Code), v.Path, v.Rule, v.Message, v.Suggestion}
			},
			func(note string) fault.Violation { return fault.Violation{Message: note} })
		out[i] = mapVerdict(v, l, stored)
	}
	return encodeJSON(out)
}

func decodeVerdicts(column any) ([]record.Verdict, error) {
	s, err := columnString(column)
	if err != nil {
		return nil, err
	}
	var verdicts []record.Verdict
	if err := json.Unmarshal([]byte(s), &verdicts); err != nil || len(verdicts) == 0 {
		return nil, err
	}
	for i, v := range verdicts {
		verdicts[i] = mapVerdict(v, boundsOf(""), func(s string, _ int) string { return unescape(s) })
	}
	return verdicts, nil
}

// mapVerdict returns a copy with each string replaced by what f makes of it and its bound.
func mapVerdict(v record.Verdict, l bounds, f func(s string, limit int) string) record.Verdict {
	out := record.Verdict{
		Gate: record.Gate(f(string(v.Gate), maxWord)), Ruling: record.Ruling(f(string(v.Ruling), maxWord)),
		Detail: f(v.Detail, l.sentence),
	}
	for _, text := range v.Warnings[:min(len(v.Warnings), l.warnings)] {
		out.Warnings = append(out.Warnings, f(text, l.sentence))
	}
	for _, v := range v.Violations {
		out.Violations = append(out.Violations, mapViolation(v, l, f))
	}
	return out
}

func mapViolation(v fault.Violation, l bounds, f func(s string, limit int) string) fault.Violation {
	return fault.Violation{
		Code: fault.Code(f(string(v.Code), maxWord)), Path: f(v.Path, l.path), Rule: f(v.Rule, l.name),
		Message: f(v.Message, l.sentence), Suggestion: f(v.Suggestion, l.sentence),
	}
}
