//go:build unix

package session

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/gateway"
	"github.com/claudeops/claudeops/internal/agents/stdioproxy"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

// audit keeps rows of the audit, in memory.
type audit struct{ rows chan record.Attempt }

func (a audit) Record(_ context.Context, row record.Attempt, _ *record.Proposal, _ ...record.Notice) error {
	a.rows <- row
	return nil
}

// withDoors gives a world's sessions doors, behind which serve answers.
func (w *world) withDoors(serve func(ctx context.Context, r gateway.Rights, c gateway.Client) error) audit {
	a := audit{make(chan record.Attempt, 100)}
	s := &w.runner.Settings.Server
	s.Doors = gateway.NewHost(gateway.Options{Serve: serve, Audit: a, Log: w.runner.Log, Now: time.Now,
		NewID: w.runner.NewID})
	s.Connector, s.Rights = []string{"/app/claudeops-connect"}, gateway.Rights{Tier: gitprovider.TierRemediate,
		Toolsets: []string{"pr"}}
	return a
}

// tells answers each line with the connection's rights.
func tells(_ context.Context, r gateway.Rights, c gateway.Client) error {
	in := bufio.NewReader(c.In)
	for {
		if _, err := in.ReadString('\n'); err != nil {
			return nil //nolint:nilerr // the end
		}
		if _, err := fmt.Fprintf(c.Out, "session %s, tier %s, dry run %t\n", r.Session, r.Tier, r.DryRun); err != nil {
			return err
		}
	}
}

// entered is an agent's view of its door.
type entered struct {
	Config  string
	Address string
	Ticket  string
	Answer  string
}

// enter connects as the configuration says, and asks once.
func enter(config string) (entered, stdioproxy.Conn, error) {
	text, err := os.ReadFile(config)
	if err != nil {
		return entered{}, nil, err
	}
	e := entered{Config: string(text)}
	var c struct {
		Servers map[string]serverEntry `json:"mcpServers"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return e, nil, err
	}
	args := c.Servers[serverName].Args
	if len(args) != 4 || args[0] != "--connect" || args[2] != "--ticket-file" {
		return e, nil, fmt.Errorf("arguments %q", args)
	}
	e.Address = args[1]
	if e.Ticket, err = stdioproxy.ReadTicket(args[3]); err != nil {
		return e, nil, err
	}
	conn, err := stdioproxy.Dial(context.Background(), e.Address, stdioproxy.Hello{Ticket: e.Ticket})
	if err != nil {
		return e, nil, err
	}
	if _, err := io.WriteString(conn, "hello\n"); err != nil {
		return e, conn, err
	}
	e.Answer, err = bufio.NewReader(conn).ReadString('\n')
	return e, conn, err
}

// enters is the fake CLI that goes through its door; with hang it stays there.
func enters(hang bool) func(*fake) int {
	return func(f *fake) int {
		seen, _, err := enter(argument("--mcp-config"))
		if err != nil {
			f.say(err.Error())
		}
		text, _ := json.Marshal(seen)
		if err := os.WriteFile(os.Getenv(fakeArg), text, 0o600); err != nil {
			return 96
		}
		f.init("connected")
		f.say("entered")
		if hang {
			forever()
		}
		f.result("success", false, "done")
		return 0
	}
}

func (w *world) entered(t *testing.T) entered {
	t.Helper()
	return seen[entered](t, w)
}

func TestASessionReachesItsServerThroughADoorAndHoldsNoSecret(t *testing.T) {
	w := newWorld(t, "enters")
	rows := w.withDoors(tells)
	w.runner.Settings.DryRun = func() bool { return true }
	record := w.succeeds(t, Spec{Tier: 2})
	e := w.entered(t)
	if want := "session " + record.ID + ", tier 2, dry run true\n"; e.Answer != want {
		t.Errorf("answered %q, want %q", e.Answer, want)
	}
	for _, secret := range []string{ourToken, "CLAUDEOPS_", "GITHUB_TOKEN", e.Ticket} {
		if strings.Contains(e.Config, secret) {
			t.Errorf("the configuration holds %s: %s", secret, e.Config)
		}
	}
	if _, err := stdioproxy.Dial(t.Context(), e.Address, stdioproxy.Hello{Ticket: e.Ticket}); err == nil {
		t.Error("the door is open after the end")
	}
	if left := w.runner.Settings.Server.doorFolder(w.runner.Settings.Folders.Temp, record.ID); left == "" {
		t.Error("there is no folder")
	} else if _, err := os.Lstat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the door's folder is left: %v", err)
	}
	if len(rows.rows) > 0 {
		t.Errorf("the audit has %+v", <-rows.rows)
	}
}

func TestADoorKnowsWhoStandsBehindItsSession(t *testing.T) {
	w := newWorld(t, "enters")
	actors := make(chan record.Actor, 1)
	w.withDoors(func(ctx context.Context, r gateway.Rights, c gateway.Client) error {
		actors <- c.Actor
		return tells(ctx, r, c)
	})
	starter := record.OSUser("1000", "joe")
	ran := must.Get(w.run(t, Spec{Tier: 2, Starter: starter}))(t)
	got := <-actors
	if got.Session == nil || got.Session.ID != ran.ID || starter.SecondTo(got) == "" || got.String() != "agent" {
		t.Errorf("%+v", got)
	}
}

func TestAProcessThatIsNoneOfTheSessionsIsRefused(t *testing.T) {
	w := newWorld(t, "enters-and-hangs")
	rows := w.withDoors(tells)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := NewSupervisor(w.runner).Run(ctx, Spec{Tier: 1})
		ended <- err
	}()
	w.until(t, "entered")
	e := w.entered(t)
	// with a ticket that is right
	_, err := stdioproxy.Dial(t.Context(), e.Address, stdioproxy.Hello{Ticket: e.Ticket})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	var refused *stdioproxy.RefusedError
	if !errors.As(err, &refused) || refused.Code != string(fault.Unauthenticated) {
		t.Fatalf("got %v, want a refusal", err)
	}
	if row := <-rows.rows; row.Outcome != record.OutcomeRefused || row.Session != w.records[0].ID {
		t.Errorf("row %+v", row)
	}
	w.clean(t)
}

func TestTheEndOfASessionAwaitsWhatItsCallsWrite(t *testing.T) {
	w := newWorld(t, "enters")
	var written atomic.Bool
	w.withDoors(func(ctx context.Context, r gateway.Rights, c gateway.Client) error {
		err := tells(ctx, r, c)
		<-c.Gone // a call that goes on until it is told
		written.Store(true)
		return err
	})
	w.saved = func(r sessions.Record) {
		if r.State != sessions.StateRunning && !written.Load() {
			t.Error("the end was recorded before the call's")
		}
	}
	if w.succeeds(t, Spec{Tier: 1}); !written.Load() {
		t.Error("the session ended before its call")
	}
}

// A person asks another process that the session end: until this one has seen that, its calls must not write.
func TestACallOfASessionThatIsToEndIsNotAdmitted(t *testing.T) {
	w := newWorld(t, "enters")
	codes := make(chan fault.Code, 2)
	w.withDoors(func(ctx context.Context, r gateway.Rights, c gateway.Client) error {
		codes <- fault.CodeOf(c.Admitted(ctx))
		if err := w.AskStop(ctx, r.Session); err != nil {
			return err
		}
		codes <- fault.CodeOf(c.Admitted(ctx))
		return tells(ctx, r, c)
	})
	must.Get(w.run(t, Spec{Tier: 1}))(t)
	if before, after := <-codes, <-codes; before != "" || after != fault.Unauthenticated {
		t.Errorf("before %q, after %q", before, after)
	}
}

func TestADoorThatCannotBeMadeFailsTheSession(t *testing.T) {
	w := newWorld(t, "enters")
	w.withDoors(tells)
	id := w.runner.NewID()
	folder := w.runner.Settings.Server.doorFolder(w.runner.Settings.Folders.Temp, id)
	must.Do(t, os.Mkdir(folder, 0o700))
	record, err := w.runner.Run(t.Context(), Spec{ID: id, Tier: 1})
	if err != nil || record.State != sessions.StateFailed || !strings.Contains(record.Reason, "socket") {
		t.Errorf("%+v, %v", record, err)
	}
	if _, err := os.Lstat(folder); err != nil {
		t.Errorf("what was there before: %v", err)
	}
	_ = os.Remove(folder)
	w.clean(t)
}
