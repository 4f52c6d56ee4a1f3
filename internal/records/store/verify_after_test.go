package store

import (
	"context"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/records/record"
)

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
			got, err := s.Audit.VerifyAfter(ctx, known)
			wantEqual(t, err, nil)
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
		got, err := s.Audit.VerifyAfter(context.Background(), known)
		wantEqual(t, err, nil)
		wantEqual(t, got, verify(t, s, ""))
	}
}
