//go:build unix

package session

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/claudeops/claudeops/internal/records/sessions"
)

// spend is a turn as the real CLI says it with --include-partial-messages: its parts carry what was known at its
// beginning.
func (f *fake) spend() {
	f.turns++
	var usage object
	_ = json.Unmarshal([]byte(oneTurn), &usage)
	usage["output_tokens"] = 3
	m := object{"id": fmt.Sprintf("msg_%d", f.turns), "model": "claude-opus-5-5", "usage": usage, "content": []object{}}
	event := func(e object) { f.line(object{"type": "stream_event", "event": e}) }
	f.line(object{"type": "system", "subtype": "status", "status": "requesting"})
	event(object{"type": "message_start", "message": m})
	event(object{"type": "content_block_delta", "delta": object{"type": "text_delta", "text": "again"}})
	m["content"] = []object{{"type": "text", "text": fmt.Sprintf("turn %d", f.turns)}}
	f.line(object{"type": "assistant", "message": m})
	event(object{"type": "message_delta", "usage": object{"output_tokens": 400}})
	event(object{"type": "message_stop"})
}

func (f *fake) retried(status any, kind string) {
	f.line(object{"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 10, "error_status": status,
		"error": kind})
}

// spends takes two turns and then ends as it is told.
func spends(end func(f *fake) int) func(*fake) int {
	return func(f *fake) int {
		f.init("connected")
		f.spend()
		f.spend()
		return end(f)
	}
}

func spendingActs() map[string]func(*fake) int {
	return map[string]func(*fake) int{
		"spends-all": spends(func(f *fake) int {
			for {
				f.spend()
			}
		}),
		"spends-and-hangs":   spends(func(f *fake) int { f.say("ready"); forever(); return 0 }),
		"spends-and-crashes": spends(func(*fake) int { return 3 }),
		"spends-and-is-killed": spends(func(*fake) int {
			_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
			return 0
		}),
		"spends-and-ends": spends(func(f *fake) int {
			f.line(object{"type": "result", "subtype": "success", "result": "done", "total_cost_usd": 0.06,
				"usage": object{"input_tokens": 1}, "modelUsage": object{
					"claude-opus-5-5": object{"inputTokens": 2100, "outputTokens": 800, "cacheReadInputTokens": 60000,
						"cacheCreationInputTokens": 4000, "costBasis": "list"},
				}})
			return 0
		}),
		"retries-and-hangs": spends(func(f *fake) int {
			f.retried(529, "overloaded")
			f.retried(429, "rate_limit")
			f.retried(529, "overloaded")
			f.retried(nil, "unknown")
			f.say("ready")
			forever()
			return 0
		}),
		"tells-its-limit": handsOver(func(path string) {
			(&fake{out: bufio.NewWriter(os.Stdout)}).say("limit " + argument("--max-budget-usd"))
			write(handoffs()["to 2"])(path)
		}),
		"limited":     gaveUp(429, "rate_limit", "API Error: Request rejected (429)\nsee above"),
		"overloaded":  gaveUp(529, "overloaded", "API Error: Repeated 529 Overloaded errors"),
		"unreachable": gaveUp(nil, "unknown", "API Error: Connection error. The token is "+ourToken),
		"failing":     gaveUp(500, "api_error", "API Error: 500"),
		"refused": func(f *fake) int {
			f.init("connected")
			f.retried(401,
				"authentication_failed")
			forever()
			return 0
		},
	}
}

// gaveUp is a CLI that ends since the model's API answers with an error.
func gaveUp(status any, kind, text string) func(*fake) int {
	return func(f *fake) int {
		f.init("connected")
		f.retried(status, kind)
		f.retried(status, kind)
		f.result("success", true, text)
		return 1
	}
}

func isTwoTurns(u sessions.Usage, source sessions.CostSource) bool {
	return u.InputTokens == 2000 && u.OutputTokens == 800 && u.CacheReadTokens == 60000 && u.CacheWriteTokens == 4000 &&
		u.CostSource == source && math.Abs(u.CostUSD-0.059) < 1e-9
}

func TestWhatASessionUsedIsKnownHoweverItEnds(t *testing.T) {
	for act, want := range map[string]sessions.State{
		"spends-and-hangs": sessions.StateTimeout, "spends-and-crashes": sessions.StateFailed,
		"spends-and-is-killed": sessions.StateFailed, "retries-and-hangs": sessions.StateTimeout,
	} {
		t.Run(act, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, act)
			if want == sessions.StateTimeout {
				w.timeIsUpAfter(t, "ready")
			}
			record, err := w.run(t, Spec{Tier: 3})
			if err != nil || record.State != want || !isTwoTurns(record.Usage, sessions.CostEstimate) {
				t.Errorf("%+v, %v", record, err)
			}
			if strings.Contains(w.text(), "stream_event") || strings.Contains(w.text(), "system/status") {
				t.Errorf("pieces are kept as events: %s", w.text())
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		w := newWorld(t, "spends-and-hangs")
		ctx, cancel := context.WithCancel(t.Context())
		go func() { w.until(t, "ready"); cancel() }()
		record, err := w.runner.Run(ctx, Spec{Tier: 3})
		if err != nil || record.State != sessions.StateCancelled || !isTwoTurns(record.Usage, sessions.CostEstimate) {
			t.Errorf("%+v, %v", record, err)
		}
	})
}

// When the process that runs a session is killed, the record has the last saved values.
func TestWhatASessionUsedIsSavedWhileItRuns(t *testing.T) {
	w := newWorld(t, "spends-and-hangs")
	ctx, cancel := context.WithCancel(t.Context())
	saved := make(chan sessions.Record, 100)
	w.saved = func(r sessions.Record) { saved <- r }
	go func() { w.until(t, "ready"); cancel() }()
	if _, err := w.runner.Run(ctx, Spec{Tier: 3}); err != nil {
		t.Fatal(err)
	}
	close(saved)
	seen := 0
	for r := range saved {
		if r.State == sessions.StateRunning && isTwoTurns(r.Usage, sessions.CostEstimate) {
			seen++
		}
	}
	if seen == 0 {
		t.Error("it was not saved before the end")
	}
}

func TestTheClientsLastWordReplacesTheEstimate(t *testing.T) {
	record, err := newWorld(t, "spends-and-ends").run(t, Spec{Tier: 3})
	if want := (sessions.Usage{InputTokens: 2100, OutputTokens: 800, CacheReadTokens: 60000, CacheWriteTokens: 4000,
		CostUSD: 0.06, CostSource: sessions.CostClient}); err != nil || record.State != sessions.StateSucceeded ||
		record.Usage != want {
		t.Errorf("%+v, %v", record, err)
	}
}

func TestASessionEndsWhenItCostsMoreThanItMay(t *testing.T) {
	w := newWorld(t, "spends-all")
	w.runner.Settings.Limits.CostUSD, w.runner.Settings.Limits.Turns = 0.1, 0
	record, err := w.run(t, Spec{Tier: 3})
	if err != nil || record.State != sessions.StateLimit || record.CostUSD < 0.1 ||
		record.CostSource != sessions.CostEstimate ||
		!strings.Contains(record.Reason, "more than the limit of 0.1 USD (CLAUDEOPS_MAX_COST_USD)") {
		t.Errorf("%+v, %v", record, err)
	}
}

func TestAScheduledSessionHasALimitOfItsOwn(t *testing.T) {
	w := newWorld(t, "spends-all")
	w.runner.Settings.Limits.ScheduledUSD = 0.1
	record, err := w.run(t, Spec{Tier: 3, Scheduled: true})
	if err != nil || record.State != sessions.StateLimit || !strings.Contains(record.Reason, "0.1 USD") {
		t.Errorf("%+v, %v", record, err)
	}
	w.runner.Settings.Limits.Turns = 10
	record, err = w.run(t, Spec{Tier: 3})
	if err != nil || !strings.Contains(record.Reason, "turns") || record.CostUSD < 0.2 {
		t.Errorf("another one is held by it: %+v, %v", record, err)
	}
}

func TestWhatTheModelsAPIAnsweredIsInTheReason(t *testing.T) {
	w := newWorld(t, "retries-and-hangs")
	w.timeIsUpAfter(t, "ready")
	record, err := w.run(t, Spec{Tier: 3})
	want := "; the model's API answered with status 529 (overloaded), 2 times; no answer, once; status 429 " +
		"(rate_limit), once"
	if err != nil || !strings.HasSuffix(record.Reason, want) {
		t.Errorf("%+v, %v", record, err)
	}
	if !strings.Contains(w.text(), "api_retry  status 429 (rate_limit); attempt 1 of 10") {
		t.Errorf("events: %s", w.text())
	}
}

func TestACredentialThatIsRefusedEndsTheSessionAtOnce(t *testing.T) {
	record, err := newWorld(t, "refused").run(t, Spec{Tier: 1})
	if err != nil || record.State != sessions.StateFailed || !strings.Contains(record.Reason, "status 401") ||
		!strings.Contains(record.Reason, "ANTHROPIC_API_KEY") {
		t.Errorf("%+v, %v", record, err)
	}
}

func TestASessionThatAScheduledOneHandsOverToHasItsLimit(t *testing.T) {
	for scheduled, want := range map[bool]string{true: "limit 1.5", false: "limit 7"} {
		w := newWorld(t, "tells-its-limit")
		w.runner.Settings.Limits.CostUSD, w.runner.Settings.Limits.ScheduledUSD = 7, 1.5
		records, err := NewSupervisor(w.runner).Run(t.Context(), Spec{Tier: 1, Scheduled: scheduled})
		if err != nil || len(records) != 2 {
			t.Fatalf("%+v, %v", records, err)
		}
		for _, r := range records {
			if events := w.events[r.ID]; !slices.ContainsFunc(events, func(e sessions.Event) bool { return e.Text == want }) {
				t.Errorf("scheduled %v: %+v", scheduled, events)
			}
		}
	}
}
