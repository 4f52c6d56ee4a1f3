package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestAnAttemptIsKeptAsItWas(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*record.Attempt){
		"ordinary": func(*record.Attempt) {},
		"empty":    func(a *record.Attempt) { *a = record.Attempt{Time: a.Time} },
		"odd bytes": func(a *record.Attempt) {
			a.Caller, a.Title, a.Paths = "\x00\xff", "\\x00 \u202e", []string{"a\xffb", ""}
		},
		"odd numbers": func(a *record.Attempt) { a.Tier, a.PRNumber, a.Duration = -1, 1<<40, -time.Second },
		"odd verdict": func(a *record.Attempt) { a.Verdicts[1].Violations[0].Message = "\xf0\x9f \\ </script> \u2028" },
		"long ago":    func(a *record.Attempt) { a.Time = time.Date(1, 1, 1, 0, 0, 0, 1000, time.UTC) },
	} {
		t.Run(name, func(t *testing.T) {
			s, want := openNew(t), attempt("1")
			change(&want)
			recordAttempts(t, s, want)
			row := must.Get(s.Audit.Entry(context.Background(), "1"))(t)
			wantEqual(t, row.Attempt, want)
			wantEqual(t, verify(t, s, "").OK(), true)
			wantEqual(t, hashOf(storedRow(t, s, 1).hashedText()), row.Hash)
		})
	}
}

func TestAnAttemptWithoutATimeIsNow(t *testing.T) {
	t.Parallel()
	s, a := openNew(t), attempt("1")
	a.Time = time.Time{}
	recordAttempts(t, s, a)
	wantEqual(t, must.Get(s.Audit.Entry(context.Background(), "1"))(t).Time, noon())
}

func TestHugeAttemptsAreCutNotRefused(t *testing.T) {
	t.Parallel()
	s, a := openNew(t), attempt("1")
	a.Outcome, a.Code = record.OutcomeDone, "" // of a refused one less is kept
	a.Caller = strings.Repeat("c", 1<<20)
	a.Title = strings.Repeat("ü", 1<<20)
	a.Message = strings.Repeat("\xff", 1<<20)
	a.Paths, a.Verdicts = nil, nil
	for i := range 5000 {
		a.Paths = append(a.Paths, fmt.Sprintf("%d/", i)+strings.Repeat("p", 2000))
		a.Verdicts = append(a.Verdicts, record.Verdict{Detail: strings.Repeat("d", 5000)})
		a.Verdicts[0].Violations = append(a.Verdicts[0].Violations, fault.Violation{Message: strings.Repeat("m", 5000)})
	}
	recordAttempts(t, s, a)
	row := must.Get(s.Audit.Entry(context.Background(), "1"))(t)
	wantEqual(t, verify(t, s, "").OK(), true)
	if n := len(storedRow(t, s, 1).hashedText()); n > 600_000 {
		t.Errorf("the row has %d bytes", n)
	}
	wantEqual(t, len(row.Paths), maxPaths+1)
	wantEqual(t, len(row.Verdicts), maxVerdicts+1)
	wantEqual(t, len(row.Verdicts[0].Violations), maxViolations+1)
	for name, text := range map[string]string{
		"caller": row.Caller, "title": row.Title, "message": row.Message, "path": row.Paths[0], "paths": row.Paths[maxPaths],
		"verdict": row.Verdicts[0].Detail, "verdicts": row.Verdicts[maxVerdicts].Detail,
		"violation": row.Verdicts[0].Violations[0].Message, "violations": row.Verdicts[0].Violations[maxViolations].Message,
	} {
		if !strings.Contains(text, "…[cut: ") || len(text) > maxMessage+100 {
			t.Errorf("%s: %d bytes, ending in %q", name, len(text), text[max(0, len(text)-90):])
		}
	}
	if !strings.HasPrefix(row.Title, strings.Repeat("ü", maxTitle/2)+"…[cut: 2097152 bytes, sha256 ") {
		t.Errorf("title cut in the middle of a character: %q", row.Title[maxTitle-4:])
	}
}

func TestOfARefusedAttemptLessIsKept(t *testing.T) {
	t.Parallel()
	s, a := openNew(t), attempt("1")
	for i := range 300 {
		a.Paths = append(a.Paths, fmt.Sprintf("%d/", i)+strings.Repeat("p", 2000))
		a.Verdicts[1].Violations = append(a.Verdicts[1].Violations,
			fault.Violation{Path: "p", Message: strings.Repeat("m", 5000)})
	}
	a.Title, a.Message = strings.Repeat("t", 5000), strings.Repeat("m", 5000)
	recordAttempts(t, s, a)
	row := must.Get(s.Audit.Entry(context.Background(), "1"))(t)
	wantEqual(t, verify(t, s, "").OK(), true)
	if n := len(storedRow(t, s, 1).hashedText()); n > 6000 {
		t.Errorf("the row has %d bytes", n)
	}
	wantEqual(t, row.Paths[0], "checks/disk.md")
	wantEqual(t, row.Verdicts[1].Violations[0].Path, "Dockerfile")
	for name, text := range map[string]string{
		"title": row.Title, "message": row.Message, "paths": row.Paths[len(row.Paths)-1],
		"violations": row.Verdicts[1].Violations[len(row.Verdicts[1].Violations)-1].Message,
	} {
		if !strings.Contains(text, "…[cut: ") || !strings.Contains(text, "sha256 ") {
			t.Errorf("%s: %q", name, text)
		}
	}
}

func TestRecordedRowsFollowEachOther(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	seq, head, err := s.Audit.Head(ctx)
	wantEqual(t, err, nil)
	wantEqual(t, []any{seq, head}, []any{int64(0), genesisHash})
	for i := range 3 {
		recordAttempts(t, s, attempt(fmt.Sprint(i)))
		row, err := s.Audit.Entry(ctx, fmt.Sprint(i+1))
		wantEqual(t, err, nil)
		wantEqual(t, []any{row.Seq, row.PrevHash, row.RequestID}, []any{int64(i + 1), head, fmt.Sprint(i)})
		seq, head, err = s.Audit.Head(ctx)
		wantEqual(t, err, nil)
		wantEqual(t, []any{seq, head}, []any{row.Seq, row.Hash})
	}
}

func TestAuditPages(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	minute := func(n int) time.Time { return noon().Add(time.Duration(n) * time.Minute) }
	for i := range 20 {
		a := attempt(fmt.Sprintf("r%d", i+1))
		a.Time = minute(i + 1)
		switch i % 5 {
		case 0:
			a.Outcome, a.Code, a.Caller = record.OutcomeOpened, "", "back\\slash"
		case 1:
			a.Repo, a.Code = "other", fault.TierDenied
		}
		recordAttempts(t, s, a)
	}
	for name, test := range map[string]struct {
		query record.AuditQuery
		want  string
	}{
		"the newest first":            {record.AuditQuery{Limit: 3}, "[20 19 18]"},
		"the next page":               {record.AuditQuery{Limit: 3, Before: 18}, "[17 16 15]"},
		"the oldest first":            {record.AuditQuery{Limit: 3, Ascending: true}, "[1 2 3]"},
		"the next page, oldest first": {record.AuditQuery{Limit: 3, Ascending: true, After: 3}, "[4 5 6]"},
		"between two":                 {record.AuditQuery{After: 4, Before: 7}, "[6 5]"},
		"by repository":               {record.AuditQuery{Repo: "demo/other"}, "[17 12 7 2]"},
		"by a repository's name only": {record.AuditQuery{Repo: "other"}, "[]"},
		"by outcome":                  {record.AuditQuery{Outcome: record.OutcomeOpened}, "[16 11 6 1]"},
		"by code":                     {record.AuditQuery{Code: fault.TierDenied, Before: 17}, "[12 7 2]"},
		"by caller":                   {record.AuditQuery{Caller: "back\\slash"}, "[16 11 6 1]"},
		"by request id":               {record.AuditQuery{RequestID: "r9"}, "[9]"},
		"by time":                     {record.AuditQuery{Since: minute(5), Until: minute(7)}, "[6 5]"},
		"all filters": {record.AuditQuery{
			Repo: "demo/other", Outcome: record.OutcomeRefused, Code: fault.TierDenied, Since: minute(10)}, "[17 12]"},
		"nothing": {record.AuditQuery{After: 20}, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			wantEqual(t, "["+seqs(must.Get(s.Audit.Page(ctx, test.query))(t))+"]", test.want)
		})
	}
}

func TestAuditLimits(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]int{
		0: record.DefaultAuditLimit, -1: record.DefaultAuditLimit, 7: 7, record.MaxAuditLimit + 1: record.MaxAuditLimit,
	} {
		_, args := auditClauses(record.AuditQuery{Limit: limit})
		wantEqual(t, args[len(args)-1], any(want))
	}
	s := openNew(t)
	appendMany(t, s, record.DefaultAuditLimit+1)
	rows := must.Get(s.Audit.Page(context.Background(), record.AuditQuery{}))(t)
	wantEqual(t, len(rows), record.DefaultAuditLimit)
}

func TestAuditEntryThatIsNotThere(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	recordAttempts(t, s, attempt("r1"), attempt("r1"))
	for _, ref := range []string{"", "0", "-1", "3", "9223372036854775807", "nothing"} {
		_, err := s.Audit.Entry(context.Background(), ref)
		wantCode(t, err, fault.NotFound)
	}
	wantEqual(t, must.Get(s.Audit.Entry(context.Background(), "r1"))(t).Seq, int64(2)) // the newest
}

func TestWarningsOfAVerdictAreKept(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	a := attempt("r1")
	a.Verdicts = []record.Verdict{{
		Gate: record.GateRepository, Ruling: record.Pass,
		Warnings: []string{"C:\\ \x00 ü", strings.Repeat("x", 2*maxSentence)},
	}}
	recordAttempts(t, s, a)
	got := must.Get(s.Audit.Entry(t.Context(), "r1"))(t).Verdicts[0].Warnings
	if len(got) != 2 || got[0] != a.Verdicts[0].Warnings[0] || len(got[1]) > maxSentence+100 ||
		!strings.Contains(got[1], "[cut: 2048 bytes") {
		t.Errorf("kept are %.1200q", got)
	}
	wantEqual(t, verify(t, s, "").OK(), true)
}

// storedRow is a row of the audit as its columns are stored.
func storedRow(t testing.TB, s *Store, seq int64) auditRow {
	t.Helper()
	names := auditColumnNames()
	row, dest := auditRow{columns: make([]auditColumn, len(names))}, make([]any, len(names))
	for i, name := range names {
		row.columns[i].name, dest[i] = name, &row.columns[i].value
	}
	err := readerOf(s).QueryRow("SELECT "+strings.Join(names, ", ")+" FROM audit WHERE seq = $1", seq).Scan(dest...)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// Rows from memory equal those that are read, and the values that change beside them are read each time.
func TestAttemptsFromMemoryAreThoseThatAreRead(t *testing.T) {
	t.Parallel()
	place := emptyPlace(t)
	s := open(t, place, Options{})
	other := open(t, place, Options{}) // as another process would
	openedPull(t, s, 7)
	for i := range 5 {
		a := attempt(fmt.Sprintf("a%d", i))
		a.Outcome, a.Session = record.OutcomeRefused, "session-1"
		recordAttempts(t, s, a)
	}
	read := func(s *Store) []record.RecordedAttempt {
		t.Helper()
		return must.Get(s.History.Attempts(t.Context(), record.AttemptQuery{Limit: 10}))(t)
	}
	first := read(s)
	wantEqual(t, len(first), 6)
	wantEqual(t, read(s), first)
	wantEqual(t, read(other), first)
	// The same rows, and the proposal of the oldest has another state.
	mustExec(t, raw(t, other), "UPDATE proposals SET state = 'unsettled' WHERE id = 'p7'")
	rows := read(s)
	wantEqual(t, rows[5].State, record.StateUnsettled)
	rows[5].State = first[5].State
	wantEqual(t, rows, first)
}

func TestMemoryOfRowsIsBounded(t *testing.T) {
	t.Parallel()
	var m rowMemory
	row := func(i, size int) auditRow {
		return newAuditRow(int64(i), genesisHash, record.Attempt{RequestID: fmt.Sprint(i),
			Message: strings.Repeat("x", size)})
	}
	for i := range 3 * maxRowsInMemory {
		m.cacheRow(row(i, maxMessage))
		if len(m.rows) > maxRowsInMemory || m.bytes > maxRowBytesInMemory {
			t.Fatalf("%d rows of %d bytes", len(m.rows), m.bytes)
		}
		if _, found := m.findByHash(row(i, maxMessage).Hash); !found {
			t.Fatal("the newest row is not kept")
		}
	}
}

// Of two processes that export to one sink, the slower one notes last what it sent first.
func TestWhatASinkHasTakenIsNeverTakenBack(t *testing.T) {
	ctx, s := t.Context(), openNew(t)
	recordAttempts(t, s, attempt("1"), attempt("2"))
	heads := must.Get(s.Audit.HeadsAfter(ctx, 0, 2))(t)
	for _, h := range []record.Head{heads[1], heads[0]} {
		wantEqual(t, s.Audit.Exported(ctx, "https", h), nil)
	}
	export, err := s.Audit.Export(ctx, "https")
	wantEqual(t, []any{export.Last.Seq, export.Last.Hash, err}, []any{int64(2), heads[1].Hash, nil})
}

func TestVerifyNamesTheFirstBadRow(t *testing.T) {
	t.Parallel()
	columns := strings.Join(auditColumnNames()[1:], ", ") // all but seq
	swap := func(target string) string {
		return "UPDATE audit SET (" + columns + ", hash) = (" +
			"SELECT " + columns + ", hash FROM kept WHERE seq = " + target + ")"
	}
	tests := map[string]struct {
		statements []string
		bad        int64
		problem    string
	}{
		"a text altered":        {[]string{"UPDATE audit SET caller = caller || '!' WHERE seq = 4"}, 4, "was altered"},
		"a number altered":      {[]string{"UPDATE audit SET tier = 3 WHERE seq = 4"}, 4, "was altered"},
		"a time altered":        {[]string{"UPDATE audit SET time_us = time_us + 1 WHERE seq = 10"}, 10, "was altered"},
		"a hash altered":        {[]string{"UPDATE audit SET hash = upper(hash) WHERE seq = 4"}, 4, "was altered"},
		"the first row altered": {[]string{"UPDATE audit SET code = '' WHERE seq = 1"}, 1, "was altered"},
		"text moved between columns": {[]string{"UPDATE audit SET owner = owner || repo, repo = '' WHERE seq = 4"},
			4, "was altered"},
		"a row missing":      {[]string{"DELETE FROM audit WHERE seq = 4"}, 4, "is missing"},
		"the beginning gone": {[]string{"DELETE FROM audit WHERE seq < 4"}, 1, "is missing"},
		"a row missing, the others renumbered": {[]string{"DELETE FROM audit WHERE seq = 4",
			"UPDATE audit SET seq = seq - 1 WHERE seq > 4"}, 4, "does not follow"},
		"rows reordered": {[]string{swap("5") + " WHERE seq = 4", swap("4") + " WHERE seq = 5"}, 4,
			"does not follow"},
		"a row copied":                       {[]string{swap("10") + " WHERE seq = 4"}, 4, "does not follow"},
		"a column that is not text any more": {textNoMore(), 4, "was altered"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := openNew(t)
			for i := range 10 {
				recordAttempts(t, s, attempt(fmt.Sprint(i+1)))
			}
			tamper(t, s, test.statements...)
			got := verify(t, s, "")
			if got.OK() || got.FirstBad != test.bad || got.Rows != test.bad-1 || !strings.Contains(got.Problem, test.problem) {
				t.Fatalf("got %+v", got)
			}
		})
	}
}

// tamper does what somebody does who can write to the disk.
func tamper(t testing.TB, s *Store, statements ...string) {
	t.Helper()
	db := raw(t, s)
	mustExec(t, db, dropGuards()...)
	mustExec(t, db, "CREATE TABLE kept AS SELECT * FROM audit")
	mustExec(t, db, statements...)
}

func TestVerifyKnowsTheExpectedHead(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	wantEqual(t, verify(t, s, genesisHash), record.AuditReport{Head: genesisHash})
	recordAttempts(t, s, attempt("1"), attempt("2"))
	_, head, err := s.Audit.Head(ctx)
	wantEqual(t, err, nil)
	recordAttempts(t, s, attempt("3"))

	got := verify(t, s, " "+strings.ToUpper(head)+"\n")
	if !got.OK() || got.ExpectedSeq != 2 || got.Rows != 3 || got.HeadSeq != 3 {
		t.Fatalf("a later head is fine: %+v", got)
	}
	if got := verify(t, s, genesisHash); !got.OK() {
		t.Fatalf("every chain contains its beginning: %+v", got)
	}
	for _, malformed := range []string{"x", head[:63], head + "0", "g" + head[1:]} {
		_, err := s.Audit.Verify(ctx, malformed)
		wantCode(t, err, fault.InvalidArgument)
	}
}

func TestVerifyNoticesACutTailOnlyByItsHead(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]string{
		"the last rows": "DELETE FROM audit WHERE seq > 1", "all rows": "DELETE FROM audit",
	} {
		t.Run(name, func(t *testing.T) {
			ctx, s := context.Background(), openNew(t)
			recordAttempts(t, s, attempt("1"), attempt("2"), attempt("3"))
			_, head, err := s.Audit.Head(ctx)
			wantEqual(t, err, nil)
			tamper(t, s, cut)
			if got := verify(t, s, ""); !got.OK() {
				t.Fatalf("what is left is a chain: %+v", got)
			}
			got := verify(t, s, head)
			if got.OK() || got.FirstBad != 0 || !strings.Contains(got.Problem, "does not contain the expected head") {
				t.Fatalf("got %+v", got)
			}
		})
	}
}

func TestADamagedRowIsNotShownAsIfItWereNone(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	recordAttempts(t, s, attempt("1"))
	tamper(t, s, "UPDATE audit SET verdicts = '[{' WHERE seq = 1")
	_, err := s.Audit.Page(context.Background(), record.AuditQuery{})
	wantCode(t, err, fault.Internal, "row 1 of the audit")
}

func TestVerifyingWhatWasAddedFindsWhatIsWrongThere(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, test := range map[string]struct {
		statements []string
		bad        int64
		problem    string
	}{
		"nothing":                {nil, 0, ""},
		"a new row altered":      {[]string{"UPDATE audit SET caller = 'x' WHERE seq = 4"}, 4, "was altered"},
		"a new row missing":      {[]string{"DELETE FROM audit WHERE seq = 4"}, 4, "is missing"},
		"the verified head gone": {[]string{"DELETE FROM audit WHERE seq > 2"}, 3, "cut off"},
		"the verified head another": {[]string{"UPDATE audit SET hash = '" + strings.Repeat("a", 64) +
			"' WHERE seq = 3"}, 3, "written anew"},
		"an old row altered: not looked": {[]string{"UPDATE audit SET caller = 'x' WHERE seq = 1"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := openNew(t)
			recordAttempts(t, s, attempt("1"), attempt("2"), attempt("3"))
			known := verify(t, s, "")
			recordAttempts(t, s, attempt("4"), attempt("5"))
			tamper(t, s, test.statements...)
			got := must.Get(s.Audit.VerifyAfter(ctx, known))(t)
			if got.FirstBad != test.bad || !strings.Contains(got.Problem, test.problem) || got.OK() != (test.problem == "") {
				t.Errorf("got %+v", got)
			}
			if got.OK() && (got.Rows != 5 || got.HeadSeq != 5) {
				t.Errorf("got %+v", got)
			}
			full := verify(t, s, known.Head)
			if name == "an old row altered: not looked" && full.FirstBad != 1 {
				t.Errorf("a whole verification found %+v", full)
			}
		})
	}
}

func TestVerifyingFromNothingIsAWholeVerification(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	recordAttempts(t, s, attempt("1"))
	for _, known := range []record.AuditReport{{}, {Head: genesisHash}, {HeadSeq: 9, Problem: "broken"}} {
		wantEqual(t, must.Get(s.Audit.VerifyAfter(context.Background(), known))(t), verify(t, s, ""))
	}
}
