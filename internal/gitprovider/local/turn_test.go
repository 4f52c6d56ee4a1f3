//go:build unix

package local

import (
	"context"
	"io"
	"testing"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

func repositoryIn(dir string) *repository {
	return &repository{ref: gitprovider.RepoRef{Owner: "demo", Name: "home-cluster"}, gitDir: dir}
}

func mustTake(t *testing.T, repo *repository) *turn {
	t.Helper()
	mine, err := takeTurn(t.Context(), repo)
	if err != nil {
		t.Fatal(err)
	}
	return mine
}

func isFree(t *testing.T, repo *repository) bool {
	t.Helper()
	mine, err := tryTurn(repo.gitDir)
	if err != nil {
		t.Fatal(err)
	}
	if mine != nil {
		mine.end()
	}
	return mine != nil
}

func TestOneWriterHasTheTurn(t *testing.T) {
	t.Parallel()
	repo := repositoryIn(t.TempDir())
	mine := mustTake(t, repo)
	if isFree(t, repo) {
		t.Error("two have the turn at once")
	}
	mine.end()
	if !isFree(t, repo) {
		t.Error("the turn did not end")
	}
}

func TestWaitingForATurnEndsWithTheContext(t *testing.T) {
	t.Parallel()
	repo := repositoryIn(t.TempDir())
	defer mustTake(t, repo).end()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := takeTurn(ctx, repo); fault.CodeOf(err) != fault.Timeout {
		t.Errorf("got %v, want a timeout", err)
	}
}

// What a killed process leaves behind is a git command that has inherited its turn.
func TestATurnLastsUntilTheCommandThatInheritedItHasEnded(t *testing.T) {
	t.Parallel()
	repo := repositoryIn(t.TempDir())
	mine := mustTake(t, repo)
	g := &git{timeout: turnPatience}
	cmd, err := g.prepare(t.Context(), command{args: []string{"stripspace"}, turn: mine})
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	mine.end()
	if isFree(t, repo) {
		t.Error("the turn ended while the command was at work")
	}
	if _, err := io.WriteString(in, "done\n"); err != nil {
		t.Fatal(err)
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if !isFree(t, repo) {
		t.Error("the turn outlasted the command")
	}
}

func TestAFolderThatIsGoneGivesNoTurn(t *testing.T) {
	t.Parallel()
	_, err := takeTurn(t.Context(), repositoryIn(t.TempDir()+"/gone"))
	if fault.CodeOf(err) != fault.UpstreamError {
		t.Errorf("got %v, want an upstream error", err)
	}
}
