package cli

import (
	"crypto/rand"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/access"
)

// The credential that admits an agent is checked again before a write.
func TestAnAgentsTokenIsAskedAgainInTheRecords(t *testing.T) {
	t.Parallel()
	env := map[string]string{"CLAUDEOPS_TIER": "2", "CLAUDEOPS_STATE_DIR": filepath.Join(t.TempDir(), "state")}
	a := &commandLine{streams: Streams{Out: io.Discard, Err: io.Discard},
		lookup: func(k string) (string, bool) { v, ok := env[k]; return v, ok }}
	p := a.program().Wire(app.Needs{})
	t.Cleanup(func() { _ = a.program().Close() })
	secret, err := access.NewSecret(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	token := access.Token{ID: "1", Name: "laptop", Hash: access.Hash(secret), MaxTier: 2, Agent: true,
		CreatedAt: time.Now()}
	if err := p.Store.Access.InsertToken(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	arrival, err := app.AdmitAgent(t.Context(), p, secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := arrival.Still(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.Store.Access.RevokeToken(t.Context(), "laptop"); err != nil {
		t.Fatal(err)
	}
	if err := arrival.Still(t.Context()); fault.CodeOf(err) != fault.Unauthenticated {
		t.Errorf("got %v", err)
	}
}
