package deploy

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/system/files"
	sysgit "github.com/claudeops/claudeops/internal/system/git"
)

// tooMuchError says that a repository has more than is taken.
type tooMuchError struct{ what string }

func (e tooMuchError) Error() string { return e.what }

func tooMuch(format string, args ...any) error { return tooMuchError{fmt.Sprintf(format, args...)} }

// measure says how many bytes the files of a commit have. It is an error if they are more, or larger, than is taken.
func (g *Git) measure(ctx context.Context, repo, commit string) (size int64, err error) {
	err = g.streamed(ctx, func(out io.Reader) error {
		entries := bufio.NewScanner(out)
		entries.Buffer(nil, 1<<20)
		entries.Split(func(data []byte, _ bool) (int, []byte, error) {
			if i := slices.Index(data, 0); i >= 0 {
				return i + 1, data[:i], nil
			}
			return 0, nil, nil
		})
		files := 0
		for entries.Scan() { // MODE blob OBJECT SIZE<TAB>PATH
			about, name, _ := strings.Cut(entries.Text(), "\t")
			fields := strings.Fields(about)
			if len(fields) != 4 || fields[1] != "blob" {
				continue // another repository within this one
			}
			bytes, err := strconv.ParseInt(fields[3], 10, 64)
			if err != nil {
				return err
			}
			files, size = files+1, size+bytes
			if err := g.limits.fits(files, g.limits.files, size, bytes, name); err != nil {
				return err
			}
		}
		return entries.Err()
	}, sysgit.Call{Dir: repo, Args: []string{"ls-tree", "-r", "-l", "-z", commit}})
	return size, err
}

// extract writes the files of a commit below a new folder, as git gives them.
func (g *Git) extract(ctx context.Context, repo, commit, folder string) error {
	return g.streamed(ctx, func(out io.Reader) error { return extract(out, folder, g.limits) },
		sysgit.Call{Dir: repo, Config: largeFiles(), Args: []string{"archive", "--format=tar", commit}})
}

// largeFiles returns the settings by which large files go through git in parts.
func largeFiles() []string { return []string{"core.bigFileThreshold=1m"} }

// streamed runs git and has read what it prints. An error of read ends git, and is returned.
func (g *Git) streamed(ctx context.Context, read func(io.Reader) error, c sysgit.Call) error {
	err := g.git.Stream(ctx, c, sysgit.Limits{Said: maxGitError}, read)
	if exit := (*sysgit.ExitError)(nil); errors.As(err, &exit) {
		return errors.New(lastLine(exit.Error()))
	}
	return err
}

// extract writes the files of a tar below a new folder.
func extract(archive io.Reader, folder string, l gitLimits) error {
	if err := files.Mkdir(folder, 0o700); err != nil {
		return err
	}
	root, err := files.OpenWriting(folder)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	in, count, size := tar.NewReader(archive), 0, int64(0)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		// An attribute of the repository may have git write other bytes than the file has, so that the bounds are held here,
		// too.
		count, size = count+1, size+h.Size
		if err := l.fits(count, 2*l.files+1, size, h.Size, h.Name); err != nil {
			return err
		}
		name := path.Clean(h.Name)
		if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeReg:
			err = root.Extract(name, in, fs.FileMode(h.Mode).Perm()|0o600) //nolint:gosec // a mode of git has few bits
		case tar.TypeSymlink:
			err = root.Symlink(h.Linkname, name)
		}
		if err != nil {
			return err
		}
	}
}
