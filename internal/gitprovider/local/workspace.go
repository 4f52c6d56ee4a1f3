package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/files"
)

// workspace is a private, temporary git directory of ours that borrows the objects of a repository; see the package
// comment. What is written to a workspace goes away with it, unless the workspace keeps. That of a process which was
// killed is removed by another process a day later.
type workspace struct {
	git   *runner
	dir   string
	env   []string
	idLen int // length of an object id, in hexadecimal digits
}

const (
	sha1Len   = 40
	sha256Len = 64
)

// workspace makes a workspace for a repository. sample is any object id of the repository: its length tells the object
// format. With keep, new objects go to the repository.
func (repo *repository) workspace(sample string, keep bool) (*workspace, error) {
	repo.git.tidied.Do(func() { removeForgotten(repo.git.temp, time.Now()) })
	dir, err := files.MakeTemporary(repo.git.temp, workspacePrefix)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal,
			"no temporary folder could be made; the operator has to make room or to set TMPDIR")
	}
	w := &workspace{git: repo.git, dir: dir.Path, idLen: len(sample)}
	objects := filepath.Join(repo.gitDir, "objects")
	if keep {
		w.env = []string{"GIT_OBJECT_DIRECTORY=" + objects}
	}
	if err := w.fill(objects, filepath.Join(repo.gitDir, "shallow")); err != nil {
		w.close()
		return nil, fault.Wrap(err, fault.Internal,
			"the temporary folder could not be written; the operator has to make room or to set TMPDIR")
	}
	return w, nil
}

// fill writes the files of the workspace. shallow is the file in which a shallow clone notes where its history ends,
// which git has to know of.
func (w *workspace) fill(objects, shallow string) error {
	info, err := files.Stat(objects)
	if err != nil {
		return err
	}
	for _, sub := range []string{"refs", filepath.Join("objects", "info")} {
		if err := files.MkdirAll(filepath.Join(w.dir, sub), 0o700); err != nil {
			return err
		}
	}
	contents := map[string]string{
		"HEAD":                    "ref: refs/heads/none\n",
		"objects/info/alternates": objects + "\n",
		"config":                  configuration(w.idLen, info.Mode().Perm()),
	}
	ends, _, err := files.ReadUnlinked(shallow, maxSettings)
	switch {
	case err == nil:
		contents["shallow"] = string(ends)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	for name, content := range contents {
		if err := files.Create(filepath.Join(w.dir, filepath.FromSlash(name)), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// configuration returns all the configuration of a workspace. Loose objects are flushed to disk once per batch: a
// reference, which git flushes by default, must not survive a power cut that its objects do not.
func configuration(idLen int, objects fs.FileMode) string {
	format := "sha1"
	if idLen == sha256Len {
		format = "sha256"
	}
	return fmt.Sprintf(`[core]
	repositoryFormatVersion = 1
	bare = true
	hooksPath = /dev/null
	sharedRepository = 0%o
	fsync = loose-object
	fsyncMethod = batch
[extensions]
	objectFormat = %s
[gc]
	auto = 0
[protocol]
	allow = never
`, objects&0o666|0o600, format)
}

// close removes the workspace. A leftover in the temporary folder does no harm.
func (w *workspace) close() { _ = files.Temporary{Path: w.dir}.Remove() }

// run runs git in the workspace.
func (w *workspace) run(ctx context.Context, stdin io.Reader, accept []int, args ...string) ([]byte, int, error) {
	return w.git.run(ctx, w.command(stdin, accept, args...))
}

func (w *workspace) command(stdin io.Reader, accept []int, args ...string) command {
	return command{gitDir: w.dir, env: w.env, args: args, stdin: stdin, accept: accept}
}

// id runs a command that answers one object id.
func (w *workspace) id(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	out, _, err := w.run(ctx, stdin, nil, args...)
	if err != nil {
		return "", err
	}
	return w.parseID(out)
}

func (w *workspace) parseID(out []byte) (string, error) {
	id := string(bytes.TrimSpace(out))
	if !isID(id) || len(id) != w.idLen {
		return "", fault.Wrap(fmt.Errorf("answer %.100q", id), fault.Internal,
			"git answered something else than an object id")
	}
	return id, nil
}

// isID reports whether s is a full object id.
func isID(s string) bool {
	return (len(s) == sha1Len || len(s) == sha256Len) && strings.Trim(s, "0123456789abcdef") == ""
}

// isAncestor reports whether commit a is b or an ancestor of b. A commit a that the repository no longer has is none.
func (w *workspace) isAncestor(ctx context.Context, a, b string) (bool, error) {
	if !isID(a) {
		return false, nil
	}
	if _, code, err := w.run(ctx, nil, []int{1}, "cat-file", "-e", a); err != nil || code != 0 {
		return false, err
	}
	_, code, err := w.run(ctx, nil, []int{1}, "merge-base", "--is-ancestor", a, b)
	return err == nil && code == 0, err
}
