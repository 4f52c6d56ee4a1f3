package cli

import (
	"io"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/claudeops/claudeops/internal/records/record"
)

func TestTheTokenOfTheFirstStartIsInTheAuditAndKeptOutOfTexts(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	a := &commandLine{
		streams: Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard},
		lookup: func(name string) (string, bool) {
			value, set := map[string]string{"CLAUDEOPS_STATE_DIR": state}[name]
			return value, set
		},
	}
	p := a.program().Wire(app.Needs{})
	t.Cleanup(func() { _ = p.Store.Close() })
	secret, err := app.NewSignIn(p).OperatorToken(t.Context())
	if err != nil || secret == "" {
		t.Fatalf("%q, %v", secret, err)
	}
	if got := p.Scanner.Redact("it is " + secret); strings.Contains(got, secret) {
		t.Errorf("not redacted: %s", got)
	}
	rows, err := p.Store.Audit.Page(t.Context(), record.AuditQuery{})
	if err != nil || len(rows) != 1 || rows[0].Action != "token.create" || rows[0].Outcome != record.OutcomeDone ||
		!strings.Contains(rows[0].Message, "token operator (") || strings.Contains(rows[0].Message, secret) {
		t.Errorf("the audit has %+v, %v", rows, err)
	}
	if _, err := app.NewSignIn(p).OperatorToken(t.Context()); err != nil {
		t.Error(err)
	}
	if rows, err := p.Store.Audit.Page(t.Context(), record.AuditQuery{}); err != nil || len(rows) != 1 {
		t.Errorf("the second start: %+v, %v", rows, err)
	}
}
