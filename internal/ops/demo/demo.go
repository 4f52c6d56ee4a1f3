// Package demo shows the product at work: it makes a repository, drives a real `claudeops mcp-server` through a real
// MCP client, plays the person who reviews, and prints what happens. It needs git and this binary, no token, no
// network.
package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/git"
	"github.com/claudeops/claudeops/internal/system/processtree"
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
	s, err := newStory(ctx, o, nil)
	if err != nil {
		return err
	}
	if err := s.play(ctx, s.steps()); err != nil {
		return err
	}
	s.printf("\nThe demo is done. Its repository and records stay in %s\n", s.Dir)
	s.sayCommands("Look around at the command line")
	return nil
}

// newStory makes the repository, with more files than the procedures.
func newStory(ctx context.Context, o Options, more map[string]string) (*story, error) {
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

func (s *story) play(ctx context.Context, steps []demoStep) error {
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
	b.printf("Claude Ops demo, in %s\n", b.Dir)
	b.printf("A repository %s/%s is made from the project's own checks, playbooks and manifest.\n", owner, repo)
	return b.makeRepository(ctx)
}

// sayCommands says what to type next. Without these variables, commands are about the person's own records.
func (b *sandbox) sayCommands(title string) {
	b.printf("\n%s:\n\n", title)
	b.printf("  export CLAUDEOPS_STATE_DIR=%s\n  export CLAUDEOPS_LOCAL_ROOT=%s\n  export CLAUDEOPS_TIER=2\n",
		shellQuote(b.state), shellQuote(b.root))
	for _, command := range []string{
		"audit list", "pr list --repo " + owner + "/" + repo, "review show 1 --repo " + owner + "/" + repo,
		"token create --name NAME --max-tier 2 --scopes propose,review,read",
	} {
		b.printf("  %s %s\n", b.Command, command)
	}
}

// shellQuote returns a word as a shell takes it.
func shellQuote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

func (b *sandbox) repositoryPath() string { return filepath.Join(b.root, owner, repo+".git") }

// childEnv returns all that the child processes get.
func (b *sandbox) childEnv(tier string, dryRun bool) []string {
	return []string{
		"PATH=" + b.Path, "HOME=" + b.Dir, "USER=demo-person",
		"CLAUDEOPS_LOCAL_ROOT=" + b.root, "CLAUDEOPS_STATE_DIR=" + b.state, "CLAUDEOPS_REPOS_DIR=" + b.Dir,
		"CLAUDEOPS_TIER=" + tier, fmt.Sprintf("CLAUDEOPS_DRY_RUN=%t", dryRun),
	}
}

var errUnexpected = errors.New("not what must happen")

// makeRepository makes the bare repository with one commit that holds the procedures, by one git fast-import.
func (b *sandbox) makeRepository(ctx context.Context) error {
	if err := files.MkdirAll(b.repositoryPath(), 0o755); err != nil {
		return err
	}
	if _, err := b.git(ctx, nil, "init", "--quiet", "--bare", "--initial-branch=main"); err != nil {
		return err
	}
	stream, err := b.importStream()
	if err != nil {
		return err
	}
	_, err = b.git(ctx, stream, "fast-import", "--quiet")
	return err
}

func (b *sandbox) importStream() ([]byte, error) {
	var stream bytes.Buffer
	stream.WriteString("commit refs/heads/main\ncommitter Demo Operator <operator@demo.invalid> 1767225600 +0000\n")
	data(&stream, []byte("Procedures of the home cluster\n"))
	err := fs.WalkDir(b.Procedures, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(b.Procedures, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&stream, "M 100644 inline %s\n", path)
		data(&stream, content)
		return nil
	})
	for _, path := range slices.Sorted(maps.Keys(b.more)) {
		fmt.Fprintf(&stream, "M 100644 inline %s\n", path)
		data(&stream, []byte(b.more[path]))
	}
	return stream.Bytes(), err
}

// data writes one data command of git-fast-import(1).
func data(b *bytes.Buffer, content []byte) {
	fmt.Fprintf(b, "data %d\n%s\n", len(content), content)
}

// git runs git in the demo repository.
func (b *sandbox) git(ctx context.Context, stdin []byte, args ...string) (string, error) {
	result, err := b.runner.Run(ctx, git.Call{Dir: b.repositoryPath(), Stdin: bytes.NewReader(stdin), Args: args},
		git.Limits{})
	if err == nil && result.Code != 0 {
		err = fmt.Errorf("git %s: exit status %d: %s", args[0], result.Code, result.Said)
	}
	return string(result.Out), err
}

// connection is one spawned `claudeops mcp-server` and its client, as Claude Code would have it.
type connection struct{ client *client.Client }

// connect spawns the server at a tier and shakes hands.
func (b *sandbox) connect(ctx context.Context, tier string, dryRun bool) (*connection, error) {
	env := b.childEnv(tier, dryRun)
	spawn := func(ctx context.Context, command string, _ []string, args []string) (*exec.Cmd, error) {
		return processtree.Cmd(ctx, processtree.Command{Path: command, Args: append([]string{command}, args...), Env: env}),
			nil
	}
	c, err := client.NewStdioMCPClientWithOptions(b.Binary, env, []string{"mcp-server"}, transport.WithCommandFunc(spawn))
	if err != nil {
		return nil, err
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "claudeops-demo", Version: "1"}
	if _, err := c.Initialize(ctx, hello); err != nil {
		return nil, fmt.Errorf("the server did not answer: %w", err)
	}
	return &connection{c}, nil
}

func (c *connection) close() error { return c.client.Close() }

// toolAnswer is a tool's answer.
type toolAnswer struct {
	isError    bool
	text       string
	structured map[string]any
	err        fault.Wire // when isError
}

// callTool calls a tool and decodes its structured content.
func (c *connection) callTool(ctx context.Context, tool string, arguments map[string]any) (toolAnswer, error) {
	var req mcp.CallToolRequest
	req.Params.Name = tool
	req.Params.Arguments = arguments
	result, err := c.client.CallTool(ctx, req)
	if err != nil {
		return toolAnswer{}, err
	}
	out := toolAnswer{isError: result.IsError}
	for _, part := range result.Content {
		if text, ok := part.(mcp.TextContent); ok {
			out.text += text.Text
		}
	}
	raw, err := json.Marshal(result.StructuredContent)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(raw, &out.structured); err != nil {
		return out, fmt.Errorf("the answer has no structured content: %w", err)
	}
	var wrapped struct {
		Error fault.Wire `json:"error"`
	}
	if err := json.Unmarshal(raw, &wrapped); err != nil {
		return out, err
	}
	out.err = wrapped.Error
	return out, nil
}

// runAsPerson runs a claudeops command as the person at the keyboard would, and returns what it prints.
func (s *story) runAsPerson(ctx context.Context, args ...string) (string, error) {
	s.printf("$ claudeops %s\n", shellWords(args))
	return s.runCommand(ctx, "", s.childEnv("1", false), args)
}

// runCommand runs claudeops in a folder, "" for the one that the demo was started in, and shows what it prints.
func (s *story) runCommand(ctx context.Context, dir string, env, args []string) (string, error) {
	const most = 1 << 20 // bytes of its answer
	ran, err := processtree.Run(ctx, processtree.Spec{
		Command: processtree.Command{Path: s.Binary, Args: append([]string{s.Binary}, args...), Dir: dir, Env: env,
			Stderr: os.Stderr}, Output: most,
	})
	if err == nil && ran.Exit != (processtree.Exit{}) {
		err = errors.New(ran.Exit.Text)
	}
	out := string(ran.Stdout.Text)
	s.indent(out)
	return out, err
}

// shellWords quotes words for display.
func shellWords(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w
		if strings.ContainsAny(w, " '\"$#*") {
			out[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(out, " ")
}

// transcript is the output of the demo.
type transcript struct {
	out  io.Writer
	step int // number of the last heading
}

func (t *transcript) printf(format string, args ...any) { fmt.Fprintf(t.out, format, args...) }

func (t *transcript) heading(title string) {
	t.step++
	t.printf("\n=== %d. %s\n", t.step, title)
}

// indent prints a block, each line behind two spaces.
func (t *transcript) indent(text string) {
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		t.printf("  %s\n", line)
	}
}

// printCall prints a tool call in short: file contents are cut to their size.
func (t *transcript) printCall(tool string, arguments map[string]any) {
	t.printf("agent> %s %v/%v\n", tool, arguments["repo_owner"], arguments["repo_name"])
	if title, ok := arguments["title"]; ok {
		t.printf("         title: %v\n", title)
	}
	files, _ := arguments["files"].([]map[string]any)
	for _, f := range files {
		content, _ := f["content"].(string)
		t.printf("         %v %v (%d bytes)\n", f["action"], f["path"], len(content))
	}
}
