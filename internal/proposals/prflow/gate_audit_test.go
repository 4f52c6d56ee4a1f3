package prflow_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

func requireSink(t *testing.T) policy.Policy {
	t.Helper()
	return mustPolicy(t, "audit: {require_sink: true}")
}

func TestNothingIsProposedWhileARequiredSinkFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		exported func(context.Context) error
		code     fault.Code
		says     string
	}{
		"there is none": {nil, fault.Misconfigured, "there is none"},
		"it fails": {func(context.Context) error {
			return fault.New(fault.UpstreamError, "the audit could not be exported to the sink x: it answered 500")
		}, fault.UpstreamError, "it answered 500"},
		"it does not hold what it has taken": {func(context.Context) error {
			return fault.New(fault.Misconfigured, "it was shortened")
		}, fault.Misconfigured, "it was shortened"},
	} {
		for _, dryRun := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dry run %t", name, dryRun), func(t *testing.T) {
				b := newBench(t)
				b.options.Authority.Policy, b.options.Authority.DryRun, b.options.Proof.Exported = requireSink(
					t), dryRun, test.exported
				e, row := b.mustRefuse(request(nil), test.code)
				if !strings.Contains(e.Message, test.says) || !strings.Contains(e.Message, "audit.require_sink") {
					t.Errorf("the message is %q", e.Message)
				}
				at := slices.IndexFunc(row.Verdicts, func(v record.Verdict) bool { return v.Gate == record.GateAudit })
				if at < 0 || row.Verdicts[at].Ruling != record.Deny {
					t.Errorf("verdicts %+v", row.Verdicts)
				}
			})
		}
	}
}

func TestASinkThatIsNotRequiredOrWorksStopsNoProposal(t *testing.T) {
	t.Parallel()
	asked := 0
	works := func(context.Context) error { asked++; return nil }
	b := newBench(t)
	b.options.Authority.Policy, b.options.Proof.Exported = requireSink(t), works
	b.mustOpen(request(nil))
	if asked == 0 {
		t.Error("the sink was not asked")
	}
	b = newBench(t)
	b.options.Proof.Exported = func(context.Context) error {
		t.Error("asked")
		return fault.New(fault.UpstreamError,
			"no")
	}
	b.mustOpen(request(nil))
}

// markOf returns the content of a body's mark, unverified.
func markOf(t *testing.T, body string) map[string]any {
	t.Helper()
	found := regexp.MustCompile(`<!-- claude-ops:v1 ([\w-]+) [\w-]{43} -->\n$`).FindStringSubmatch(body)
	if found == nil {
		t.Fatalf("no mark in %s", body)
	}
	payload, err := base64.RawURLEncoding.DecodeString(found[1])
	var m map[string]any
	if err == nil {
		err = json.Unmarshal(payload, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAMarkHasTheHeadBeforeTheProposal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.mustOpen(nth("a"))
	if head := markOf(t, b.body(first.Number))["audit"]; head != nil {
		t.Errorf("the audit was empty, and the mark has the head %v", head)
	}
	seq, hash, err := b.store.Audit.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second := b.mustOpen(nth("b"))
	got, err := prflow.New(b.options).Reader().HeadsAt(t.Context(), "fake", "joe", "infra", time.Time{})
	if err != nil || got.Marks != 2 || len(got.Heads) != 1 || got.Heads[0].Seq != seq || got.Heads[0].Hash != hash {
		t.Errorf("got %+v, %v; want row %d, %s", got, err, seq, hash)
	}
	head, ok, err := prflow.New(b.options).Reader().HeadOf(t.Context(), "fake", "joe", "infra", second.Number)
	if err != nil || !ok || head.Seq != seq || head.Hash != hash {
		t.Errorf("of the one: %+v, %t, %v", head, ok, err)
	}
	if _, ok, err := prflow.New(b.options).Reader().HeadOf(t.Context(), "fake", "joe", "infra", first.Number); ok ||
		err != nil {
		t.Errorf("of one without a head: %t, %v", ok, err)
	}
}

func TestHeadsInMarksOfAnotherKeyDoNotCount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustOpen(nth("a"))
	b.mustOpen(nth("b"))
	b.options.Proof.Key = func() ([]byte, error) { return []byte("another key, of 32 bytes--------"), nil }
	got, err := prflow.New(b.options).Reader().HeadsAt(t.Context(), "fake", "joe", "infra", time.Time{})
	if err != nil || got.Marks != 0 || len(got.Heads) != 0 || got.Others != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
}
