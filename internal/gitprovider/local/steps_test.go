package local_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

func bare() kind { return kind{format: "sha1"} }

func ordinary() kind { return kind{ordinary: true, format: "sha1"} }

// home makes a repository with one check.
func home(t testing.TB, k kind) *world {
	t.Helper()
	return newWorld(t, k, providertest.File{Path: "checks/disk.md", Content: "# Disk\n\none\ntwo\nthree\n"},
		providertest.File{Path: "README.md", Content: "# Home\n"})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("unexpected error: %v (cause: %v)", err, fault.From(err).Cause)
	}
}

// refused demands the code and that the message holds the words.
func (w *world) refused(err error, want fault.Code, words ...string) {
	w.t.Helper()
	if fault.CodeOf(err) != want {
		w.t.Fatalf("got %v (cause: %v), want the code %s", err, causeOf(err), want)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			w.t.Errorf("the message %q does not say %q", err, word)
		}
	}
}

func causeOf(err error) error {
	if err == nil {
		return nil
	}
	return fault.From(err).Cause
}

func (w *world) snapshot(p *local.Provider, paths ...string) *gitprovider.Snapshot {
	w.t.Helper()
	q := gitprovider.SnapshotQuery{Repo: w.Ref(), Base: providertest.MainBranch}
	for _, path := range paths {
		q.Paths = append(q.Paths, providertest.Path(w.t, path))
	}
	snap, err := p.Snapshot(w.t.Context(), q)
	w.must(err)
	return snap
}

func (w *world) request(branch string, files ...gitprovider.FileChange) gitprovider.CommitRequest {
	w.t.Helper()
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path)
	}
	return gitprovider.CommitRequest{
		Snapshot: w.snapshot(w.p, paths...), Branch: branch, Changes: providertest.ChangeSet(w.t,
			files...), Message: "Change\n",
	}
}

// propose commits and opens a pull request.
func (w *world) propose(branch string, files ...gitprovider.FileChange) gitprovider.PullRequest {
	w.t.Helper()
	made, err := w.p.Commit(w.t.Context(), w.request(branch, files...))
	w.must(err)
	pr, err := w.p.OpenPullRequest(w.t.Context(), gitprovider.PullRequestSpec{
		Repo: w.Ref(), Base: providertest.MainBranch, Head: made.Branch, Title: "Title of " + branch,
		Labels: []string{gitprovider.LabelOurs},
	})
	w.must(err)
	return pr
}

// disk is a change of the check.
func disk(content string) gitprovider.FileChange {
	return providertest.Update("checks/disk.md", content)
}

func (w *world) state(number int) gitprovider.Status {
	w.t.Helper()
	status, err := w.p.Status(w.t.Context(), w.Ref(), number)
	w.must(err)
	return status
}

// program writes a shell script. No other test may start a process meanwhile: the child would inherit the file opened
// for writing, and the system would refuse to run the script (ETXTBSY, golang.org/issue/22315).
func (w *world) program(path, script string) {
	w.t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	w.must(os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755)) //nolint:gosec // has to be executable
}
