// Package demo shows the product at work: it makes a repository, drives a real `claudeops mcp-server` through a real MCP
// client, plays the person who reviews, and prints what happens. It needs git and this binary, no token, no network.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Options of a run.
type Options struct {
	Binary     string    // the claudeops binary to drive
	Dir        string    // where repository and records go; made if missing, must be empty
	Procedures fs.FS     // checks/, playbooks/ and CLAUDE-OPS.md
	Out        io.Writer // the transcript
	Path       string    // PATH of the child processes, to find git
}

// Repository names, below Dir.
const (
	owner = "demo"
	repo  = "home-cluster"
)

// run is the state of one demo.
type run struct {
	Options
	root  string // local root
	state string // state folder
	step  int

	served bool // a server was started, and has made itself a token
}

// Run plays the whole demo. The error says which step did not happen as it must.
func Run(ctx context.Context, o Options) error {
	r, err := begin(ctx, o)
	if err != nil {
		return err
	}
	if err := r.play(ctx, r.steps()); err != nil {
		return err
	}
	r.say("\nAll of it happened. Everything is still there to look at, in %s\n", r.Dir)
	return nil
}

// begin makes the repository.
func begin(ctx context.Context, o Options) (*run, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	r := &run{Options: o, root: filepath.Join(o.Dir, "repositories"), state: filepath.Join(o.Dir, "state")}
	return r, r.prepare(ctx)
}

func (r *run) play(ctx context.Context, steps []step) error {
	for _, step := range steps {
		r.heading(step.title)
		if err := step.play(ctx); err != nil {
			return fmt.Errorf("step %d (%s): %w", r.step, step.title, err)
		}
	}
	return nil
}

// FolderError is a folder that no demo can be made in.
type FolderError struct{ error }

// Unwrap gives the reason.
func (e FolderError) Unwrap() error { return e.error }

func (r *run) prepare(ctx context.Context) error {
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return FolderError{fmt.Errorf("the folder of the demo cannot be made (%w); name another one with --dir", err)}
	}
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		return FolderError{fmt.Errorf("the folder of the demo cannot be read (%w); name another one with --dir", err)}
	}
	if len(entries) > 0 {
		return FolderError{fmt.Errorf("%s is not empty; name an empty or missing folder with --dir", r.Dir)}
	}
	r.say("Claude Ops demo, in %s\n", r.Dir)
	r.say("A repository %s/%s is made from the project's own checks, playbooks and manifest.\n", owner, repo)
	return r.makeRepository(ctx)
}

func (r *run) repository() string { return filepath.Join(r.root, owner, repo+".git") }

// environment is all that the child processes get.
func (r *run) environment(tier string, dryRun bool) []string {
	return []string{
		"PATH=" + r.Path, "HOME=" + r.Dir, "USER=demo-person",
		"CLAUDEOPS_LOCAL_ROOT=" + r.root, "CLAUDEOPS_STATE_DIR=" + r.state, "CLAUDEOPS_REPOS_DIR=" + r.Dir,
		"CLAUDEOPS_TIER=" + tier, fmt.Sprintf("CLAUDEOPS_DRY_RUN=%t", dryRun),
	}
}

var errUnexpected = errors.New("not what must happen")
