package deploy

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/claudeops/claudeops/internal/system/change"
	sysgit "github.com/claudeops/claudeops/internal/system/git"
)

// gitLimits bound what git may do.
type gitLimits struct {
	ask     time.Duration // how long a server may take to say which commits it has
	fetch   time.Duration // how long a fetch may take
	silence time.Duration // how long a server may say nothing, where git or ssh can see that
	scratch int64         // bytes that a fetch may write
	cache   int64         // bytes of all commits that are kept; see room
	files   int           // of a commit
	bytes   int64         // of all files of a commit
	file    int64         // bytes of each of them
}

func defaultGitLimits() gitLimits {
	return gitLimits{
		ask: 30 * time.Second, fetch: 5 * time.Minute, silence: 30 * time.Second, scratch: maxCommitBytes,
		cache: defaultCacheBytes,
		files: maxCommitFiles, bytes: maxCommitBytes, file: change.MaxFileBytes,
	}
}

const (
	// maxGitOutput bounds what git may answer, in bytes.
	maxGitOutput = 32 << 20
	// maxGitError bounds what is kept of git's own words, in bytes.
	maxGitError = 64 << 10
)

// run runs git in a folder, "" for one outside of every repository, and returns its output; failure is its message if
// it failed.
func (g *Git) run(ctx context.Context, dir string, input []byte, args ...string) (out []byte, failure string,
	err error) {
	return g.call(ctx, sysgit.Call{Dir: dir, Stdin: bytes.NewReader(input), Args: args})
}

// call is run with all options.
func (g *Git) call(ctx context.Context, c sysgit.Call) (out []byte, failure string, err error) {
	result, err := g.git.Run(ctx, c, sysgit.Limits{Output: maxGitOutput, Said: maxGitError})
	switch {
	case err != nil:
		return nil, "", err
	case result.Code != 0:
		return nil, cmp.Or(result.Said, fmt.Sprintf("git ended with code %d", result.Code)), nil
	}
	return result.Out, "", nil
}

// lateError says that another repository took too long.
type lateError struct {
	address string
	limit   time.Duration
}

func (e lateError) Error() string {
	return fmt.Sprintf("%s did not answer to the end within %s", e.address, e.limit)
}

// within bounds a call to another repository.
func within(ctx context.Context, s *GitSource, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, lateError{shown(s.URL), limit})
}

// fits returns an error if a commit has more than is taken. entries may be folders, too.
func (l gitLimits) fits(entries, most int, size, largest int64, name string) error {
	switch {
	case largest > l.file:
		return tooMuch("%s has more than %d bytes", change.Short(name), l.file)
	case entries > most:
		return tooMuch("it has more than %d files", most)
	case size > l.bytes:
		return tooMuch("it has more than %d bytes", l.bytes)
	}
	return nil
}
