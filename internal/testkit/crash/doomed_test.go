//go:build linux

package crash

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"golang.org/x/sys/unix"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/settings/keyfile"
	"github.com/claudeops/claudeops/internal/settings/mounted"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

// doomedVariable holds a doomed for a copy of the test binary.
const doomedVariable = "CLAUDEOPS_CRASH_DOOMED"

// doomed is what a copy of the test binary does: it makes the parts as the command line does, proposes, and kills
// itself when the step has taken effect.
type doomed struct {
	Step    string
	Stop    bool          // wait there, to be killed later
	Ago     time.Duration // how far its clock is behind
	Request request
}

// exitSurvived is the exit code of a doomed process that never got to its step.
const exitSurvived = 3

// doom runs a doomed process to its death at the step.
func (w *world) doom(t *testing.T, d doomed) {
	t.Helper()
	c := w.startDoomed(t, d)
	killed, code := c.wait(t)
	if status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); !killed || !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("the process did not die at the step %q: exit %d\n%s%s", d.Step, code, &c.out, &c.err)
	}
}

// doomSlowly lets something happen while a doomed process has come to the step, before it dies there.
func (w *world) doomSlowly(t *testing.T, d doomed, meanwhile func()) {
	t.Helper()
	d.Stop = true
	c := w.startDoomed(t, d)
	if err := unix.Waitid(unix.P_PID, c.cmd.Process.Pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	meanwhile()
	c.kill(false)
	if killed, code := c.wait(t); !killed {
		t.Fatalf("the process did not come to the step %q: exit %d\n%s%s", d.Step, code, &c.out, &c.err)
	}
}

func (w *world) startDoomed(t *testing.T, d doomed) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	spec, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{}
	c.cmd, c.cancel = w.prepare(t, self)
	c.cmd.Env = append(c.cmd.Env, doomedVariable+"="+string(spec))
	return c.start(t, "")
}

// runDoomed is the main function of a doomed process.
func runDoomed(spec string) int {
	var d doomed
	err := json.Unmarshal([]byte(spec), &d)
	if err == nil {
		err = d.run(context.Background(), config.Load(os.LookupEnv, forges.All()))
	}
	fmt.Fprintf(os.Stderr, "survived: %v\n", err)
	return exitSurvived
}

func (d doomed) run(ctx context.Context, cfg config.Config) error {
	flow, err := newFlow(cfg, nil)
	if err != nil {
		return err
	}
	flow.Clock.Now = func() time.Time { return time.Now().Add(-d.Ago) }
	flow.Step = func(step string) {
		signal := syscall.SIGKILL
		if d.Stop {
			signal = syscall.SIGSTOP
		}
		if step == d.Step {
			_ = syscall.Kill(os.Getpid(), signal)
			select {} // the signal may take a moment
		}
	}
	raw, err := json.Marshal(d.Request)
	if err != nil {
		return err
	}
	_, err = flow.Create(ctx, operation.Caller{Door: record.DoorMCP, Name: "doomed"}, raw)
	return err
}

// newFlow makes the use case as the command line does. wrap, if not nil, stands between it and the provider.
func newFlow(cfg config.Config, wrap func(gitprovider.Provider) gitprovider.Provider) (*prflow.Service, error) {
	rules, err := policy.Load(cfg.Permissions.PolicyFile)
	if err != nil {
		return nil, err
	}
	records := store.New(cfg.Records.Dir, store.Options{
		DatabaseURL: cfg.Records.DatabaseURL, LocalRoot: func() string { return local.RootIdentity(cfg.Forges.LocalRoot) },
	})
	var provider gitprovider.Provider
	if provider, err = local.New(cfg.Forges.LocalRoot, records.LocalPulls, local.Options{}); err != nil {
		return nil, err
	}
	if wrap != nil {
		provider = wrap(provider)
	}
	registry := gitprovider.NewRegistry(
		[]gitprovider.Registration{{Name: local.Name, Hosts: []string{gitprovider.HostLocal}, Provider: provider}},
		nil, "", mounted.Repos{Dir: cfg.Mounted.Dir})
	return prflow.New(prflow.Options{
		Registry: registry, Ledger: records.Ledger, History: records.History, Secrets: content.NewScanner(cfg.Secrets),
		Authority: prflow.Authority{Policy: rules, Tier: cfg.Permissions.Tier},
		Log:       slog.New(slog.NewTextHandler(os.Stderr, nil)),
		NewID:     func() string { return ulid.MustNew(ulid.Now(), rand.Reader).String() },
		Clock:     prflow.Clock{Now: time.Now, Sleep: func(_ context.Context, d time.Duration) { time.Sleep(d) }},
		Proof:     prflow.Proof{Key: func() ([]byte, error) { return keyfile.Load(cfg.Records.Dir) }},
	}), nil
}
