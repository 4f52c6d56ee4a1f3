package store

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/claudeops/claudeops/internal/prflow"
)

func BenchmarkOpenExisting(b *testing.B) {
	dir := filepath.Dir(openNew(b).Path())
	for b.Loop() {
		s, err := Open(context.Background(), dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpenNew(b *testing.B) {
	base := b.TempDir()
	for i := 0; b.Loop(); i++ {
		s, err := Open(context.Background(), filepath.Join(base, fmt.Sprint(i)), Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRecord(b *testing.B) {
	s := openNew(b)
	for i := 0; b.Loop(); i++ {
		record(b, s, attempt(fmt.Sprint(i)))
	}
}

func BenchmarkReserveAndFinish(b *testing.B) {
	s := openNew(b)
	for i := 0; b.Loop(); i++ {
		id := fmt.Sprint(i)
		seen, err := s.Position(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		if taken := reserve(b, s, proposal(id, "checks/a.md", "checks/b.md"), seen); taken != nil {
			b.Fatalf("taken by %s", taken.ID)
		}
		err = s.Finish(context.Background(), id, prflow.Progress{State: prflow.StateOpened, PRNumber: i + 1}, attempt(id))
		if err != nil {
			b.Fatal(err)
		}
	}
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
	for name, q := range map[string]AuditQuery{
		"newest": {}, "middle": {Before: 50_000}, "by repository": {Repo: "demo/home-cluster"},
		"by request": {RequestID: "r77777"}, "by caller, none": {Caller: "nobody"},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Audit(context.Background(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
