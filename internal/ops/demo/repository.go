package demo

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/git"
)

// makeRepository makes the bare repository with one commit that holds the procedures, by one git fast-import.
func (b *sandbox) makeRepository(ctx context.Context) error {
	if err := files.MkdirAll(b.repository(), 0o755); err != nil {
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
	result, err := b.runner.Run(ctx, git.Call{Dir: b.repository(), Stdin: bytes.NewReader(stdin), Args: args},
		git.Limits{})
	if err == nil && result.Code != 0 {
		err = fmt.Errorf("git %s: exit status %d: %s", args[0], result.Code, result.Said)
	}
	return string(result.Out), err
}
