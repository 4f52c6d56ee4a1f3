package web_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/records"
)

// recorded is embedded under a name that is none of its methods.
type recorded interface{ records.Attempts }

// countedAttempts counts how often a page of attempts is read.
type countedAttempts struct {
	recorded
	reads atomic.Int64
}

func (c *countedAttempts) Attempts(ctx context.Context, q record.AttemptQuery) ([]record.RecordedAttempt, error) {
	c.reads.Add(1)
	return c.recorded.Attempts(ctx, q)
}

func TestAnswersAreKeptUntilSomethingIsRecorded(t *testing.T) {
	counted := &countedAttempts{}
	w := newWorld(t, func(w *world) {
		counted.recorded = w.web.Records.Attempts
		w.web.Records.Attempts = counted
	})
	reads := func(target string) int64 {
		t.Helper()
		before := counted.reads.Load()
		w.want(w.get(target), 200, "")
		return counted.reads.Load() - before
	}
	w.refuse(1)
	for _, target := range []string{"/changes", "/api/v1/proposals", "/api/v1/proposals?q=none"} {
		if reads(target) == 0 {
			t.Errorf("%s: the first answer is read from the records", target)
		}
		if n := reads(target); n != 0 {
			t.Errorf("%s: nothing was recorded, and %d pages were read", target, n)
		}
		w.advance(11 * time.Second)
		if reads(target) == 0 {
			t.Errorf("%s: an old answer is kept", target)
		}
		w.refuse(1)
		if reads(target) == 0 {
			t.Errorf("%s: what was recorded since is not read", target)
		}
	}
	if n := strings.Count(string(w.get("/api/v1/proposals").body), `"outcome":"refused"`); n != 4 {
		t.Errorf("%d refusals are listed, want 5", n)
	}
}

// What one caller was shown is not shown to another: each has a name in the frame of a page, and rights of its own.
func TestKeptAnswersAreTheCallersOwn(t *testing.T) {
	w := newWorld(t, nil)
	w.want(w.get("/"), 200, "")
	w.want(w.get("/", header("Authorization", "Bearer nobody-knows-this-token")), 401, fault.Unauthenticated)
	w.want(w.get("/api/v1/proposals"), 200, "")
	w.want(w.get("/api/v1/proposals", header("Authorization", "Bearer nobody-knows-this-token")), 401,
		fault.Unauthenticated)
}
