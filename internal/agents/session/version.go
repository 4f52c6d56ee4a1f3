package session

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/processtree"
)

// minVersion returns the oldest CLI that is known to have the options that we rely on.
func minVersion() [3]int { return [3]int{2, 1, 329} }

// versions remembers what a binary said, for as long as it stays the same file.
type versions struct {
	mu      sync.Mutex
	path    string
	size    int64
	changed time.Time
	version string
}

// probe finds the CLI and asks for its version. Errors say what the operator has to do.
func (r *Runner) probe(ctx context.Context) (path, version string, err error) {
	s := r.Settings
	if path, err = processtree.Find(s.Claude.Binary); err != nil {
		return "", "",
			fmt.Errorf("there is no claude to run (%s); install Claude Code, or name its binary in CLAUDEOPS_CLAUDE_BIN",
				s.Claude.Binary)
	}
	info, err := files.Stat(path)
	if err != nil {
		return path, "", fmt.Errorf("the binary %s cannot be looked at; check CLAUDEOPS_CLAUDE_BIN", path)
	}
	r.versions.mu.Lock()
	defer r.versions.mu.Unlock()
	v := &r.versions
	if v.path == path && v.size == info.Size() && v.changed.Equal(info.ModTime()) {
		return path, v.version, nil
	}
	if version, err = s.askVersion(ctx, path); err != nil {
		return path, version, err
	}
	v.path, v.size, v.changed, v.version = path, info.Size(), info.ModTime(), version
	return path, version, nil
}

// askVersion runs claude --version, bounded in time and in what is read.
func (s Settings) askVersion(ctx context.Context, path string) (string, error) {
	ran, err := processtree.Run(ctx, processtree.Spec{
		Command: processtree.Command{Path: path, Args: []string{path, "--version"}, Env: s.Claude.Env},
		Time:    s.Limits.Version, Output: maxStderr,
	})
	switch {
	case err == nil && (ran.TimedOut || ran.Canceled):
		return "", fmt.Errorf("%s --version did not answer within %s", path, s.Limits.Version)
	case err != nil, ran.Exit.Code != 0:
		return "", fmt.Errorf("%s --version failed: is it Claude Code, and does it run on this machine?", path)
	}
	return checkVersion(path, ran.Stdout.Text)
}

// checkVersion reads "2.1.329 (Claude Code)".
func checkVersion(path string, out []byte) (string, error) {
	m := regexp.MustCompile(`^(\d{1,6})\.(\d{1,6})\.(\d{1,6})\b[^\n]*\(Claude Code\)`).FindSubmatch(bytes.TrimSpace(out))
	if m == nil {
		return "", fmt.Errorf("%s --version does not answer as Claude Code does; check CLAUDEOPS_CLAUDE_BIN", path)
	}
	var got [3]int
	for i := range got {
		got[i], _ = strconv.Atoi(string(m[i+1])) // at most six digits
	}
	version, want := fmt.Sprintf("%d.%d.%d", got[0], got[1], got[2]), minVersion()
	for i := range got {
		if got[i] != want[i] {
			if got[i] < want[i] {
				return version, fmt.Errorf("claude is %s, and %d.%d.%d or newer is needed; update it", version, want[0], want[1],
					want[2])
			}
			break
		}
	}
	return version, nil
}
