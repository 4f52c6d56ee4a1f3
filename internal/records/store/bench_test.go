package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func BenchmarkOpenExisting(b *testing.B) {
	place := newPlace(b)
	open(b, place, Options{})
	for b.Loop() {
		openAndClose(b, place)
	}
}

func BenchmarkOpenNew(b *testing.B) {
	for b.Loop() {
		openAndClose(b, newPlace(b))
	}
}

func openAndClose(b *testing.B, place string) {
	b.Helper()
	must.Do(b, must.Get(openPlace(context.Background(), place, Options{}))(b).Close())
}

func BenchmarkRecord(b *testing.B) {
	s := openNew(b)
	for i := 0; b.Loop(); i++ {
		recordAttempts(b, s, attempt(fmt.Sprint(i)))
	}
}

// BenchmarkReserveAndFinish counts whole proposals: each reserves two paths, and is recorded as opened with a notice.
func BenchmarkReserveAndFinish(b *testing.B) {
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s := openNew(b)
			var next atomic.Int64
			b.ResetTimer()
			var wg sync.WaitGroup
			for range writers {
				wg.Go(func() {
					for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
						reserveAndFinish(b, s, fmt.Sprint(n))
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "proposals/s")
		})
	}
}

func reserveAndFinish(b *testing.B, s *Store, id string) {
	ctx := context.Background()
	taken, err := s.Ledger.Reserve(ctx, proposal(id, "checks/a-"+id+".md", "checks/b-"+id+".md"),
		record.Claim{Seen: 1 << 40})
	if err != nil || taken != nil {
		b.Errorf("taken by %v, %v", taken, err)
		return
	}
	notice := record.Notice{Event: record.EventOpened, Payload: []byte(`{"text":"opened"}`)}
	if err := s.Ledger.Finish(ctx, id, opened(1), attempt(id), notice); err != nil {
		b.Error(err)
	}
}

// BenchmarkLedgerOf100k asks what gates 7 to 9 ask, of a ledger with 100,000 opened proposals of one repository.
func BenchmarkLedgerOf100k(b *testing.B) {
	ctx, s := context.Background(), openNew(b)
	fillLedger(b, s, 100_000)
	b.Run("ByDigest", func(b *testing.B) {
		for b.Loop() {
			if found, err := s.History.ByDigest(ctx, "d-77777"); err != nil || len(found) != 1 {
				b.Fatalf("%d, %v", len(found), err)
			}
		}
	})
	b.Run("Usage", func(b *testing.B) {
		// one is opened each second
		claim := record.Claim{Seen: 1 << 40, Within: s.db.now().Sub(time.UnixMicro(99_900 * 1e6))}
		for b.Loop() {
			if u, err := s.History.Usage(ctx, "local", "demo", "home-cluster", claim); err != nil || len(u.Made) != 101 ||
				u.Open != 0 {
				b.Fatalf("%d made, %d open, %v", len(u.Made), u.Open, err)
			}
		}
	})
	b.Run("PathsOf", func(b *testing.B) {
		for b.Loop() {
			if paths, err := s.History.PathsOf(ctx, "local", "demo", "home-cluster", 77_777); err != nil || len(paths) != 1 {
				b.Fatalf("%v, %v", paths, err)
			}
		}
	})
	b.Run("Unfinished", func(b *testing.B) {
		for b.Loop() {
			if left, err := s.History.Unfinished(ctx); err != nil || len(left) != 0 {
				b.Fatalf("%v, %v", left, err)
			}
		}
	})
	b.Run("ReserveAndFinish", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			reserveAndFinish(b, s, fmt.Sprintf("new-%d-%d", b.N, i))
		}
	})
	b.Run("Reserve, taken", func(b *testing.B) {
		for b.Loop() {
			if taken := reserve(b, s, proposal("late", "checks/99991.md"), 99_990); taken == nil {
				b.Fatal("not taken")
			}
		}
	})
}

// fillLedger records n opened proposals of one file each; the i-th was opened i seconds after 1970 at position i.
func fillLedger(b *testing.B, s *Store, n int) {
	b.Helper()
	const numbers = "WITH RECURSIVE n(i) AS (SELECT CAST(1 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
	for _, insert := range []string{
		`INSERT INTO proposals (id, created_us, door, caller, tier, provider, owner, repo, base, base_commit, change_type,
			title, body, digest, state, branch, commit_id, pr_number, pr_url, opened_us, opened_seq)
			` + numbers + `SELECT 'p-' || i, i * 1000000,
			'mcp', 'claude-code/2.1', 2, 'local', 'demo', 'home-cluster', 'main', 'b45e', 'check', 'Watch the disk',
			'It was full.', 'd-' || i, 'opened', 'claude-ops/check/' || i, 'c0ffee', i, 'https://git.example.org/' || i,
			i * 1000000, i FROM n`,
		`INSERT INTO proposal_files (proposal_id, path, action, content) ` + numbers + `SELECT 'p-' || i,
			'checks/' || i || '.md', 'create', CAST('' AS ` + blobType + `) FROM n`,
	} {
		mustExec(b, raw(b, s), fmt.Sprintf(insert, n))
	}
	analyze(b, s)
}

func BenchmarkVerifyAudit100k(b *testing.B) {
	s := openNew(b)
	appendMany(b, s, 100_000)
	for b.Loop() {
		if report := verify(b, s, ""); report.Rows != 100_000 || !report.OK() {
			b.Fatalf("got %+v", report)
		}
	}
}

func BenchmarkAuditPageOf100k(b *testing.B) {
	s := openNew(b)
	appendMany(b, s, 100_000)
	for name, q := range map[string]record.AuditQuery{
		"newest": {}, "middle": {Before: 50_000}, "by repository": {Repo: "demo/home-cluster"},
		"by request": {RequestID: "r77777"}, "by caller, none": {Caller: "nobody"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				must.Get(s.Audit.Page(context.Background(), q))(b)
			}
		})
	}
}
