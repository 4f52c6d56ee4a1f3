package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/records"
)

func TestTheAuditIsShownVerifiedAndGivenOutWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.page("/audit", 200).has("Nothing is recorded yet", "The record is being verified")
	w.verify()
	w.page("/audit", 200).has("The record is whole: 0 rows")
	w.refuse(603)
	w.verify()
	w.page("/audit", 200).has("The record is whole: 603 rows", "Refused", "was refused Check inodes, too")
	w.page("/audit?before=4", 200).has("Newer")
	w.page("/audit?after=600", 200).has("Older")
	out := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "http://127.0.0.1:8080/audit.jsonl", nil)
	r.RemoteAddr = "127.0.0.1:50000"
	r.Header.Set("Authorization", "Bearer "+w.person)
	w.handler.ServeHTTP(out, r)
	lines := bytes.Split(bytes.TrimSuffix(out.Body.Bytes(), []byte("\n")), []byte("\n"))
	if out.Header().Get("Content-Type") != "application/jsonl; charset=utf-8" || len(lines) != 603 {
		t.Fatalf("%d lines, %v", len(lines), out.Header())
	}
	prev := strings.Repeat("0", 64)
	for i, text := range lines {
		var row record.AuditEntry
		if err := json.Unmarshal(text, &row); err != nil || row.Seq != int64(i+1) || i > 0 && row.PrevHash != prev {
			t.Fatalf("line %d: %v %s", i, err, text)
		}
		prev = row.Hash
	}
}

// failing gives out one page and then fails.
type failing struct{ records.Audit }

func (f failing) Page(ctx context.Context, q record.AuditQuery) ([]record.RecordedAttempt, error) {
	if q.After > 0 {
		return nil, fault.New(fault.Internal, "the disk is gone")
	}
	q.Limit = 2
	return f.Audit.Page(ctx, q)
}

func TestADownloadThatFailsIsCutOffAndNotEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.refuse(5)
	w.web.Records.Audit = failing{w.web.Records.Audit}
	w.build()
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("the handler ended with %v", err)
		}
	}()
	w.get("/audit.jsonl")
	t.Error("the handler returned as if the body were whole")
}
