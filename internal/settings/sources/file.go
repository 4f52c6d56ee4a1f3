package sources

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/claudeops/claudeops/internal/base/strictyaml"
	"github.com/claudeops/claudeops/internal/system/filelock"
	"github.com/claudeops/claudeops/internal/system/files"
)

// Bounds of a list.
const (
	maxSources   = 1000
	maxFileBytes = 1 << 20
)

// ErrListed and ErrNotListed say that a file has a source already, or does not have it.
var (
	ErrListed    = errors.New("is on the list already")
	ErrNotListed = errors.New("is not on the list")
)

// File is the sources that persons have allowed by a command: a YAML file with one key, sources. It is safe for
// concurrent use, by several processes too.
type File struct{ Path string }

// form is the content of a File.
type form struct {
	Sources List `yaml:"sources"`
}

// Load reads the list. A file that does not exist is an empty one; one that is broken is an error, and no list.
func (f File) Load() (List, error) {
	if f.Path == "" {
		return nil, nil
	}
	text, _, err := files.ReadPath(f.Path, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the list of sources cannot be read: %w", err)
	}
	var read form
	if _, err := strictyaml.Decode(text, &read, strictyaml.Options{}); err != nil {
		return nil, fmt.Errorf("the list of sources %s is no YAML with the key sources, and in it origin, token_env and "+
			"private alone: %w", f.Path, err)
	}
	if err := read.Sources.Check(); err != nil {
		return nil, fmt.Errorf("the list of sources %s is broken: %w", f.Path, err)
	}
	return read.Sources, nil
}

// Check says what is wrong with a list: a source that is none, one that is there twice, too many.
func (l List) Check() error {
	if len(l) > maxSources {
		return fmt.Errorf("there are %d sources; %d is the most", len(l), maxSources)
	}
	seen := map[string]bool{}
	for i, s := range l {
		if err := s.Check(); err != nil {
			return fmt.Errorf("sources[%d]: %w", i, err)
		}
		if seen[s.Origin] {
			return fmt.Errorf("sources[%d]: %s is there twice", i, s.Origin)
		}
		seen[s.Origin] = true
	}
	return nil
}

// Add puts a source on the list; ErrListed if its origin is there with the same settings. Other settings replace those
// that were there.
func (f File) Add(s Source) error {
	if err := s.Check(); err != nil {
		return err
	}
	return f.change(func(l List) (List, error) {
		at := slices.IndexFunc(l, func(o Source) bool { return o.Origin == s.Origin })
		switch {
		case at < 0:
			return append(l, s), nil
		case l[at] == s:
			return nil, fmt.Errorf("%s %w", s.Origin, ErrListed)
		}
		l[at] = s
		return l, nil
	})
}

// Remove takes a source off the list; ErrNotListed if it is not there.
func (f File) Remove(origin string) error {
	return f.change(func(l List) (List, error) {
		at := slices.IndexFunc(l, func(o Source) bool { return o.Origin == origin })
		if at < 0 {
			return nil, fmt.Errorf("%s %w", origin, ErrNotListed)
		}
		return slices.Delete(l, at, at+1), nil
	})
}

// change replaces the file at once, while no other process changes it. The folder must exist.
func (f File) change(edit func(List) (List, error)) error {
	lock, err := files.OpenLock(f.Path + ".lock")
	if err != nil {
		return err
	}
	defer lock.Close()
	if taken, err := filelock.Try(lock, true); err != nil || !taken {
		return errors.Join(err, errors.New("another process changes the list of sources; try again"))
	}
	l, err := f.Load()
	if err != nil {
		return err
	}
	if l, err = edit(l); err != nil {
		return err
	}
	if err := l.Check(); err != nil {
		return err
	}
	text, err := yaml.Marshal(form{l})
	if err != nil {
		return err
	}
	return files.Replace(f.Path, text, 0o600)
}
