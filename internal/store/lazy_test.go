package store

import (
	"context"
	"reflect"
	"sync"
	"testing"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/record"
)

func newLazy(t testing.TB, place string) *Lazy {
	t.Helper()
	l := lazyPlace(place, Options{Now: noon})
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestLazyOpensOnceForManyCallers(t *testing.T) {
	l := newLazy(t, newPlace(t))
	stores := make([]*Store, 16)
	var wg sync.WaitGroup
	for i := range stores {
		wg.Go(func() {
			s, err := l.Store(context.Background())
			if err != nil {
				t.Error(err)
			}
			stores[i] = s
		})
	}
	wg.Wait()
	for _, s := range stores {
		if s != stores[0] {
			t.Fatal("opened more than once")
		}
	}
}

func TestLazyCloseIsFinalAndMayBeRepeated(t *testing.T) {
	l := newLazy(t, newPlace(t))
	wantEqual(t, l.Ping(context.Background()), nil)
	for range 2 {
		wantEqual(t, l.Close(), nil)
	}
	wantCode(t, l.Ping(context.Background()), fault.Internal)
}

func TestLazyWaitsForItsTurnNoLongerThanTheContext(t *testing.T) {
	l := newLazy(t, newPlace(t))
	l.turn <- struct{}{} // someone is opening
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	wantCode(t, l.Ping(ctx), fault.Timeout)
	<-l.turn
}

func TestLazyHasEveryMethodOfStore(t *testing.T) {
	store, lazy := reflect.TypeFor[*Store](), reflect.TypeFor[*Lazy]()
	for i := range store.NumMethod() {
		name := store.Method(i).Name
		if _, ok := lazy.MethodByName(name); !ok {
			t.Errorf("Lazy has no %s", name)
		}
	}
}

func TestLazyForwardsToTheSameStore(t *testing.T) {
	ctx, l := context.Background(), newLazy(t, newPlace(t))
	pr, err := l.InsertPR(ctx, demoRepo, pull("a"))
	wantEqual(t, err, nil)
	wantEqual(t, l.UpdatePR(ctx, demoRepo, pr.Number, closePR), nil)
	wantEqual(t, l.AddReview(ctx, demoRepo, pr.Number, gitprovider.Review{Author: "joe"}), nil)
	pr, reviews, err := l.PR(ctx, demoRepo, pr.Number)
	wantEqual(t, err, nil)
	wantEqual(t, []any{pr.State, len(reviews)}, []any{gitprovider.StateClosed, 1})
	prs, err := l.PRs(ctx, demoRepo, gitprovider.StateClosed)
	wantEqual(t, err, nil)
	wantEqual(t, len(prs), 1)

	taken, err := l.Reserve(ctx, proposal("1", "checks/a.md"), record.Claim{})
	wantEqual(t, err, nil)
	wantEqual(t, taken == nil, true)
	wantEqual(t, l.Advance(ctx, "1", record.Progress{State: record.StateCommitted}), nil)
	wantEqual(t, l.Finish(ctx, "1", opened(1), attempt("1")), nil)
	wantEqual(t, l.Record(ctx, attempt("2"), nil), nil)
	found, err := l.ByDigest(ctx, "d-1")
	wantEqual(t, err, nil)
	one, err := l.Proposal(ctx, "1")
	wantEqual(t, err, nil)
	wantEqual(t, found, []record.Proposal{one})

	rows, err := l.Audit(ctx, record.AuditQuery{Limit: 1})
	wantEqual(t, err, nil)
	row, err := l.AuditEntry(ctx, "2")
	wantEqual(t, err, nil)
	wantEqual(t, rows, []AuditRow{row})
	seq, head, err := l.Head(ctx)
	wantEqual(t, err, nil)
	wantEqual(t, []any{seq, head}, []any{row.Seq, row.Hash})
	report, err := l.VerifyAudit(ctx, head)
	wantEqual(t, err, nil)
	wantEqual(t, report, record.AuditReport{Rows: 2, Head: head, HeadSeq: 2, ExpectedSeq: 2})
	wantEqual(t, l.Check(ctx), nil)
}
