//go:build unix

package resilience

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"

	"github.com/claudeops/claudeops/internal/cli"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

// asProgram makes this test binary run as claudeops: "hasty" passes the pauses between requests at once, "patient" waits.
const asProgram = "RESILIENCE_PROGRAM"

// testsAtOnce limits the parallel tests that run at a time, on however few cores.
const testsAtOnce = 32

// TestMain runs the tests, or claudeops; see asProgram.
func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	streams := cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	switch os.Getenv(asProgram) {
	case "hasty":
		streams.Sleep = noSleep
		fallthrough
	case "patient":
		return cli.Run(context.Background(), os.Args[1:], streams, os.LookupEnv)
	}
	// These tests wait for requests that stall and for processes far more than they compute.
	if err := flag.Set("test.parallel", strconv.Itoa(max(testsAtOnce, runtime.GOMAXPROCS(0)))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// program is claudeops with arguments, in an environment that names this forge alone.
func (w *world) program(args ...string) *exec.Cmd {
	w.t.Helper()
	binary, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	how := "hasty"
	if _, is := w.forge.(outside); is {
		how = "patient"
	}
	cmd := exec.CommandContext(w.t.Context(), binary, args...)
	cmd.Dir = w.stateDir
	cmd.Env = []string{
		asProgram + "=" + how, "HOME=" + w.stateDir, "CLAUDEOPS_STATE_DIR=" + w.stateDir, "CLAUDEOPS_TIER=2",
		w.kind.options.Variables.Address + "=" + w.forge.URL(), w.kind.options.Variables.Token + "=" + w.forge.Token(),
	}
	return cmd
}

// process prepares `claudeops pr create` for what is asked for.
func (w *world) process(out *bytes.Buffer) *exec.Cmd {
	w.t.Helper()
	cmd := w.program("pr", "create", "--json", "--from", "-")
	asked := w.asked
	if asked == nil {
		asked = w.request()
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(asked), out, out
	return cmd
}

// killedAt runs the process and kills it when its n-th request arrives; the server acts on that request or does not.
func (w *world) killedAt(n int, acts bool) {
	w.t.Helper()
	arrived := 0
	w.killedWhen(func(*http.Request) bool {
		arrived++
		return arrived == n
	}, acts)
}

// killedWhen runs the process and kills it when the first request arrives that matches.
func (w *world) killedWhen(match func(*http.Request) bool, acts bool) {
	w.t.Helper()
	var out bytes.Buffer
	cmd := w.process(&out)
	kind := httpfault.ResetBefore
	if acts {
		kind = httpfault.ResetAfter
	}
	w.forge.Faults().Plan(func(r *http.Request) bool {
		if !match(r) {
			return false
		}
		_ = cmd.Process.Kill() // an error says that it has ended
		return true
	}, httpfault.Fault{Kind: kind})
	err := cmd.Run()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() >= 0 {
		w.t.Fatalf("it was not killed: %v\n%s", err, &out)
	}
	w.said = append(w.said, out.String())
}

func TestAProcessThatIsKilledAtWhicheverRequestLeavesTheNextOneToFinish(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.title(), func(t *testing.T) {
			t.Parallel()
			for n := 1; n <= sequence(t, k); n++ {
				for c := range 4 {
					acts, lost := c%2 == 1, c/2 == 1
					if !k.tries(n, c) {
						continue
					}
					t.Run(fmt.Sprintf("request %d, the server acts: %t, the state folder is lost: %t", n, acts, lost),
						func(t *testing.T) {
							t.Parallel()
							w := newWorld(t, k)
							w.killedAt(n, acts)
							w.assertAtMostOne("after the kill")
							w.forge.Faults().Forget()
							if lost {
								w.loseState()
							}

							var out bytes.Buffer
							if err := w.process(&out).Run(); err != nil {
								t.Fatalf("the next one failed: %v\n%s", err, &out)
							}
							w.said = append(w.said, out.String())
							var result prflow.CreateResult
							if err := json.Unmarshal(out.Bytes(), &result); err != nil {
								t.Fatalf("%v\n%s", err, &out)
							}
							w.assertTheOne(result.Number)
							w.assertRecords()
							w.assertNoToken()
						})
				}
			}
		})
	}
}
