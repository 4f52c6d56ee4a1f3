package deploy

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/system/change"
)

// Standing says what a target has of a repository's file.
type Standing string

// What there is.
const (
	AsProposed     Standing = "as proposed"
	AnotherVersion Standing = "another version"  // as it was deployed
	ChangedInPlace Standing = "changed in place" // neither of these
	NotThere       Standing = "not there"
)

// Whereabouts is a file of a repository in a target.
type Whereabouts struct {
	File   string // of the repository
	Target change.TargetName
	Path   string // of the target's file
	Has    Standing
}

// WhereIs says what the targets have of files of a repository; hashes are the SHA-256 of their proposed contents, by
// path. Files that no module has are left out. It changes nothing, and may fetch modules of other repositories.
func (s *Service) WhereIs(ctx context.Context, provider, owner, name string,
	hashes map[string]string) (out []Whereabouts, err error) {
	t, err := s.traced(ctx, Request{})
	if err != nil {
		return nil, faultOf(err)
	}
	p, err := s.engine.Plan(ctx, t.Desired)
	if err != nil {
		return nil, faultOf(err)
	}
	_, list, _, err := s.Status(ctx, Request{})
	if err != nil {
		return nil, faultOf(err)
	}
	drifted := map[change.FileKey]bool{}
	for _, item := range list {
		drifted[change.FileKey{Target: item.Target, Path: item.Path}] = item.Kind == change.Modified
	}
	own, err := s.configuration(ctx, provider, owner, name)
	if err != nil {
		return nil, faultOf(err)
	}
	keys := slices.SortedFunc(maps.Keys(t.files), func(a, b change.FileKey) int {
		return strings.Compare(string(a.Target)+"\x00"+a.Path, string(b.Target)+"\x00"+b.Path)
	})
	for _, key := range keys {
		of := t.files[key]
		for i, part := range of.parts {
			kept := s.placeOf(t.from, part.module, part.file)
			hash, asked := hashes[kept.path]
			if !asked || kept.address == "" && !own || kept.address != "" && !sameRepository(kept.address, owner, name) {
				continue
			}
			has, err := standing(p, key, of, i, hash, drifted[key])
			if err != nil {
				return nil, faultOf(err)
			}
			out = append(out, Whereabouts{kept.path, key.Target, key.Path, has})
		}
	}
	return out, nil
}

// standing compares a part of a target's file with a proposed content. drifted says that the file is not as it was
// deployed.
func standing(p *change.Plan, key change.FileKey, of madeOf, i int, hash string, drifted bool) (Standing, error) {
	content, err := p.Read(key.Path)
	if err != nil {
		return "", ioError(key.Path, err)
	}
	now, whole := of.apart(string(content))
	same := func(text string) bool { return change.Hash([]byte(text)) == hash }
	switch {
	case content == nil:
		return NotThere, nil
	case whole && (same(now[i]) || of.parts[i].line && same(strings.TrimSuffix(now[i], "\n"))):
		return AsProposed, nil
	case drifted:
		return ChangedInPlace, nil
	}
	return AnotherVersion, nil
}
