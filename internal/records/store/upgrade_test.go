package store

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

// firstVersion is what a program of the first version left: a proposal that it was working on, one that it opened, and
// an attempt.
func firstVersion() []string {
	const insert = `INSERT INTO proposals (id, created_us, opened_us, opened_seq, door, caller, tier, provider, owner, repo,
		base, base_commit, change_type, title, body, digest, state, branch, commit_id, pr_number, pr_url) VALUES `
	row := newAuditRow(1, genesisHash, attempt("old"))
	values := make([]string, len(row.columns))
	for i, c := range row.columns {
		values[i] = "'" + strings.ReplaceAll(c.text(), "'", "''") + "'"
	}
	return []string{
		insert + `('live', 1, NULL, NULL, 'mcp', 'c', 2, 'local', 'demo', 'home-cluster', 'main', 'b45e', 'check', 'T', 'B',
			'd-live', 'reserved', 'b', '', 0, '')`,
		insert + `('old', 1, 2, 1, 'mcp', 'c', 2, 'local', 'demo', 'home-cluster', 'main', 'b45e', 'check', 'T', 'B',
			'd-old', 'opened', 'b', 'c0ffee', 7, 'u')`,
		`INSERT INTO proposal_files (proposal_id, path, action, content) VALUES ('live', 'checks/live.md', 'delete', CAST('' AS ` + blobType + `)),
			('old', 'checks/b.md', 'delete', CAST('' AS ` + blobType + `)),
			('old', 'checks/a.md', 'delete', CAST('' AS ` + blobType + `))`,
		`INSERT INTO reservations (provider, repo, path, proposal_id)
			VALUES ('local', 'demo/home-cluster', 'checks/live.md', 'live')`,
		`INSERT INTO audit (` + strings.Join(auditColumnNames(), ", ") + `, hash)
			VALUES (` + strings.Join(values, ", ") + `, '` + row.Hash + `')`,
	}
}

func TestRefusalsOfTheFirstVersionAreCounted(t *testing.T) {
	ctx := context.Background()
	s := open(t, oldPlace(t, firstVersion()...), Options{Now: noon, MustExist: true})
	for since, want := range map[time.Time][]record.GateCount{
		noon(): {{Gate: record.GateScope, Count: 1}}, noon().AddDate(0, 0, 1): nil,
	} {
		got, err := s.History.RefusalsByGate(ctx, since)
		wantEqual(t, err, nil)
		wantEqual(t, got, want)
	}
}

func TestADatabaseOfTheFirstVersionIsBroughtUpToDate(t *testing.T) {
	ctx, place := context.Background(), oldPlace(t, firstVersion()...)
	s := open(t, place, Options{Now: noon, MustExist: true})
	wantEqual(t, verify(t, s, "").Rows, int64(1))
	wantEqual(t, s.Check(ctx), nil)
	wantEqual(t, abandoned(t, s), map[string]bool{"live": false}) // nobody knows
	paths, err := s.History.PathsOf(ctx, "local", "demo", "home-cluster", 7)
	wantEqual(t, err, nil)
	wantEqual(t, paths, []string{"checks/a.md", "checks/b.md"})

	if taken := reserve(t, s, proposal("new", "checks/live.md"), 1); taken == nil || taken.ID != "live" {
		t.Fatalf("taken by %+v", taken)
	}
	wantEqual(t, s.Ledger.Finish(ctx, "live", record.Progress{State: record.StateFailed}, attempt("live"), notice("a")),
		nil)
	wantEqual(t, claim(t, s, noon(), 5), "a/0")
	wantEqual(t, verify(t, s, "").Rows, int64(2))
	wantCode(t, s.Ledger.Finish(ctx, "live", record.Progress{State: record.StateFailed}, attempt("live")), fault.Conflict)
}
