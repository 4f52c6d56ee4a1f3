package store

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// vectorHash is the output of sha256sum for testdata/audit-vector.txt.
const vectorHash = "802efd5516f3709593c04350ad7c2092e6d3dce4381272cefa08208ae69d4088"

// vectorAttempt has every field set, and text that needs escapes.
func vectorAttempt() record.Attempt {
	return record.Attempt{
		Time: time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC), RequestID: "01JNA000000000000000000000",
		Door: record.DoorMCP, Caller: "client \\ \x00 \xff ü", Tier: gitprovider.TierInvestigate, Action: "create_pr",
		Provider: "local", Owner: "demo", Repo: "home-cluster", Base: "main", Branch: "claude-ops/check/watch-the-disk",
		Title: "Watch the disk", Paths: []string{"checks/disk.md", "checks\\disk.md", "<a&b>"}, Digest: "d1",
		Verdicts: []record.Verdict{
			{Gate: record.GateTier, Ruling: record.Pass, Detail: "tier 2"},
			{Gate: record.GateScope, Ruling: record.Deny, Violations: []fault.Violation{{
				Code: fault.ScopeDenied, Path: "checks\\disk.md", Rule: "canonical-path", Message: "has the character '\\'",
				Suggestion: "give the plain path",
			}}},
		},
		Outcome: record.OutcomeRefused, Code: fault.ScopeDenied, Message: "two lines\nof text", PRNumber: 7,
		PRURL: "https://git.example.org/demo/home-cluster/pulls/7", Duration: 1234567 * time.Nanosecond, Policy: "9ba3ca1e20f6",
	}
}

func TestTheEncodingIsTheDocumentedOne(t *testing.T) {
	t.Parallel()
	want := must.Get(os.ReadFile("testdata/audit-vector.txt"))(t)
	row := newAuditRow(2, strings.Repeat("0123456789abcdef", 4), vectorAttempt())
	wantEqual(t, string(row.hashedText()), string(want))
	wantEqual(t, row.Hash, vectorHash)
}

func TestEveryFieldOfAnAttemptIsHashed(t *testing.T) {
	t.Parallel()
	base := newAuditRow(1, genesisHash, vectorAttempt()).Hash
	fields := reflect.TypeFor[record.Attempt]()
	for i := range fields.NumField() {
		a := vectorAttempt()
		field := reflect.ValueOf(&a).Elem().Field(i)
		field.SetZero()
		name := fields.Field(i).Name
		if name == "Actor" { // Door and Caller follow from it
			a.Actor = record.Actor{Door: a.Door, Client: a.Caller}
		}
		if name == "Session" || name == "Wanted" { // kept beside the audit, as their documentation says
			continue
		}
		if newAuditRow(1, genesisHash, a).Hash == base {
			t.Errorf("the hash does not cover %s", name)
		}
	}
	with := vectorAttempt()
	with.Actor = record.Actor{
		Door:       record.DoorMCP,
		Credential: &record.Credential{ID: "1", Name: "bot"},
		Client:     "a \x00 <b>",
	}
	row := newAuditRow(1, genesisHash, with)
	wantEqual(t, strings.Contains(string(row.hashedText()),
		`actor=84:{"door":"mcp","credential":{"kind":"","id":"1","name":"bot"},"client":"a \\x00 <b>"}`+"\n"), true)
	other := with
	other.Actor.Credential = &record.Credential{ID: "2", Name: "bot"} // the same in words
	if newAuditRow(1, genesisHash, other).Hash == row.Hash {
		t.Error("the hash does not cover who it was")
	}
	if newAuditRow(2, genesisHash, vectorAttempt()).Hash == base ||
		newAuditRow(1, vectorHash, vectorAttempt()).Hash == base {
		t.Error("the hash does not cover seq or prev_hash")
	}
}

func TestWhatIsCutStaysDifferent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxMessage+1)
	lists := func(n int, last string) []string {
		return append(strings.Split(strings.Repeat("p,", n-1), ",")[:n-1], last)
	}
	cutMessage := bound(long, maxMessage)
	tests := map[string][2]record.Attempt{
		"beyond the bound":    {{Message: long + "a"}, {Message: long + "b"}},
		"a copy of the mark":  {{Message: long}, {Message: cutMessage}},
		"a path too many":     {{Paths: lists(maxPaths+1, "a")}, {Paths: lists(maxPaths+1, "b")}},
		"at the bound":        {{Paths: lists(maxPaths, "a")}, {Paths: lists(maxPaths+1, "a")}},
		"border of two paths": {{Paths: append(lists(maxPaths+1, "a"), "bc")}, {Paths: append(lists(maxPaths+1, "ab"), "c")}},
	}
	copied := record.Attempt{Paths: lists(maxPaths+2, "a")}
	var stored textList
	must.Do(t, stored.Scan(encodePaths(copied.Paths, boundsOf(""))))
	tests["a copy of the mark of a list"] = [2]record.Attempt{copied, {Paths: stored}}
	for name, pair := range tests {
		if newAuditRow(1, genesisHash, pair[0]).Hash == newAuditRow(1, genesisHash, pair[1]).Hash {
			t.Errorf("%s: equal", name)
		}
	}
}

// FuzzAuditEncoding makes two attempts of the input. What is stored of an attempt must be text that every database
// takes, give the attempt back, and be equal to that of the other only if the attempts are equal.
func FuzzAuditEncoding(f *testing.F) {
	f.Add("a", "b", "c", "a", "b", "c", int64(1), int64(1))
	f.Add("ab", "", "c", "a", "b", "c", int64(1), int64(1))
	f.Add("\\x00", "\\", "\xff", "\x00", "\\\\", "\\xff", int64(0), int64(-1))
	f.Add("\n5:title=1:x", "=", ":", "\n", "5:title=1:x", "", int64(0), int64(0))
	f.Add(strings.Repeat("ü", 3000), "", "", strings.Repeat("ü", 3001), "", "", int64(0), int64(0))
	f.Fuzz(func(t *testing.T, s1, s2, s3, z1, z2, z3 string, n1, n2 int64) {
		a, b := fuzzAttempt(s1, s2, s3, n1), fuzzAttempt(z1, z2, z3, n2)
		rowA, rowB := newAuditRow(1, genesisHash, a), newAuditRow(1, genesisHash, b)
		if same := reflect.DeepEqual(a, b); same != (string(rowA.hashedText()) == string(rowB.hashedText())) {
			t.Errorf("equal attempts: %v, but not so their encodings\n%q\n%q", same, rowA.hashedText(), rowB.hashedText())
		}
		for _, c := range rowA.columns {
			if s, ok := c.value.(string); ok && (!utf8.ValidString(s) || strings.ContainsRune(s, 0)) {
				t.Errorf("%s cannot be stored everywhere: %q", c.name, s)
			}
		}
		back := auditRow{columns: rowA.columns}
		must.Do(t, back.decodeColumns())
		if max(len(s1), len(s2), len(s3)) <= maxWord {
			wantEqual(t, back.Attempt, a)
		}
	})
}

func fuzzAttempt(s1, s2, s3 string, n int64) record.Attempt {
	a := record.Attempt{
		Time: time.UnixMicro(n / 2).UTC(), RequestID: s1, Caller: s2, Title: s3, Message: s1, Paths: []string{s1, s2},
		Verdicts: []record.Verdict{{Gate: record.Gate(s2), Detail: s3,
			Violations: []fault.Violation{{Path: s1, Rule: s2, Message: s3}}}},
		PRNumber: int(n), Duration: time.Duration(n%1e9) * time.Microsecond,
	}
	if s3 == "" {
		a.Paths, a.Verdicts[0].Violations = a.Paths[:1], nil
	}
	return a
}

func FuzzEscape(f *testing.F) {
	for _, s := range []string{"", "plain ü", "\x00", "\\", "\\x00", "\xff\\\xff", "\\\\x", "a\xf0\x9f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		stored := escape(s)
		if !utf8.ValidString(stored) || strings.ContainsRune(stored, 0) {
			t.Errorf("%q is stored as %q", s, stored)
		}
		if got := unescape(stored); got != s {
			t.Errorf("%q came back as %q from %q", s, got, stored)
		}
		unescape(s) // must not panic on what escape cannot have written
	})
}
