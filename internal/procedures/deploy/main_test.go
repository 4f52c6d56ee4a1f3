package deploy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/system/processtree"
)

// TestMain lets the tests start this program as another process.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == processtree.ReaperCommand {
		os.Exit(processtree.Reap())
	}
	limitedIfAsked()
	if url := os.Getenv("DEPLOY_ASK_UNTIL_KILLED"); url != "" {
		fmt.Fprintln(os.Stderr, askUntilKilled(url))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// askUntilKilled is a process that asks a server; see TestNoGitOutlivesAKilledServer.
func askUntilKilled(url string) error {
	program, err := exec.LookPath("git")
	if err != nil {
		return err
	}
	g := newGit(program, "/nonexistent", "/nonexistent", []string{"PATH=" + os.Getenv("PATH")})
	g.git.Reaped, g.limits.ask = true, time.Hour
	_, err = g.resolve(context.Background(), (&GitSource{URL: url, Ref: "main"}).operators())
	return err
}
