// Package demo shows the product at work: it makes a repository, drives a real `claudeops mcp-server` through a real
// MCP client, plays the person who reviews, and prints what happens. It needs git and this binary, no token, no
// network.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/git"
)

// Options of a run.
type Options struct {
	Binary     string    // the claudeops binary to drive
	Dir        string    // where repository and records go; made if missing, must be empty
	Procedures fs.FS     // checks/, playbooks/ and CLAUDE-OPS.md
	Out        io.Writer // the transcript
	Path       string    // PATH of the child processes, to find git
	Command    string    // how a shell in the person's folder calls this binary: "claudeops", or a path
}

// Repository names, below Dir.
const (
	owner = "demo"
	repo  = "home-cluster"
)

// sandbox is the folder of a demo, with a repository and a state folder, and the programs that run in it.
type sandbox struct {
	Options
	transcript
	root   string // local root
	state  string // state folder
	runner *git.Runner
	more   map[string]string // files of the repository beside the procedures
}

// story is the course of a demo: what the agent asks for, and what the person does.
type story struct {
	*sandbox
	served bool // a server was started, and has made itself a token
}

// Run plays the whole demo. The error says which step failed.
func Run(ctx context.Context, o Options) error {
	s, err := begin(ctx, o, nil)
	if err != nil {
		return err
	}
	if err := s.play(ctx, s.steps()); err != nil {
		return err
	}
	s.say("\nThe demo is done. Its repository and records stay in %s\n", s.Dir)
	s.sayCommands("Look around at the command line")
	return nil
}

// begin makes the repository, with more files than the procedures.
func begin(ctx context.Context, o Options, more map[string]string) (*story, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	b := &sandbox{
		Options: o, transcript: transcript{out: o.Out},
		root: filepath.Join(o.Dir, "repositories"), state: filepath.Join(o.Dir, "state"),
		runner: &git.Runner{Home: o.Dir, Env: []string{"PATH=" + o.Path}}, more: more,
	}
	return &story{sandbox: b}, b.prepare(ctx)
}

func (s *story) play(ctx context.Context, steps []step) error {
	for _, step := range steps {
		s.heading(step.title)
		if err := step.play(ctx); err != nil {
			return fmt.Errorf("step %d (%s): %w", s.step, step.title, err)
		}
	}
	return nil
}

// FolderError is a folder that no demo can be made in.
type FolderError struct{ error }

// Unwrap gives the reason.
func (e FolderError) Unwrap() error { return e.error }

func (b *sandbox) prepare(ctx context.Context) error {
	if err := files.MkdirAll(b.Dir, 0o755); err != nil {
		return FolderError{fmt.Errorf("the folder of the demo cannot be made (%w); name another one with --dir", err)}
	}
	root, err := files.OpenDir(b.Dir)
	var entries []fs.DirEntry
	if err == nil {
		entries, _, err = root.Entries(".", 1)
		err = errors.Join(err, root.Close())
	}
	if err != nil {
		return FolderError{fmt.Errorf("the folder of the demo cannot be read (%w); name another one with --dir", err)}
	}
	if len(entries) > 0 {
		return FolderError{fmt.Errorf("%s is not empty; name an empty or missing folder with --dir", b.Dir)}
	}
	b.say("Claude Ops demo, in %s\n", b.Dir)
	b.say("A repository %s/%s is made from the project's own checks, playbooks and manifest.\n", owner, repo)
	return b.makeRepository(ctx)
}

// sayCommands says what to type next. Without these variables, commands are about the person's own records.
func (b *sandbox) sayCommands(title string) {
	b.say("\n%s:\n\n", title)
	b.say("  export CLAUDEOPS_STATE_DIR=%s\n  export CLAUDEOPS_LOCAL_ROOT=%s\n  export CLAUDEOPS_TIER=2\n",
		quoted(b.state), quoted(b.root))
	for _, command := range []string{
		"audit list", "pr list --repo " + owner + "/" + repo, "review show 1 --repo " + owner + "/" + repo,
		"token create --name NAME --max-tier 2 --scopes propose,review,read",
	} {
		b.say("  %s %s\n", b.Command, command)
	}
}

// quoted returns a word as a shell takes it.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

func (b *sandbox) repository() string { return filepath.Join(b.root, owner, repo+".git") }

// environment returns all that the child processes get.
func (b *sandbox) environment(tier string, dryRun bool) []string {
	return []string{
		"PATH=" + b.Path, "HOME=" + b.Dir, "USER=demo-person",
		"CLAUDEOPS_LOCAL_ROOT=" + b.root, "CLAUDEOPS_STATE_DIR=" + b.state, "CLAUDEOPS_REPOS_DIR=" + b.Dir,
		"CLAUDEOPS_TIER=" + tier, fmt.Sprintf("CLAUDEOPS_DRY_RUN=%t", dryRun),
	}
}

var errUnexpected = errors.New("not what must happen")
