package prflow

import (
	"context"
	"fmt"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/textedit"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// ownFile is the last text that we wrote at a path, over all proposals that made a pull request.
type ownFile struct {
	content string
	deleted bool
	from    string // blob that the file was before the first of them; "" if there was none
}

// ownFiles returns the files that a pull request changes by our records; nil if the records are incomplete.
func ownFiles(made []record.Proposal) map[gitprovider.Path]ownFile {
	out := map[gitprovider.Path]ownFile{}
	for _, p := range made {
		if !p.PrunedAt.IsZero() {
			return nil
		}
		for _, f := range p.Files {
			path, err := gitprovider.ParsePath(f.Path)
			if err != nil {
				return nil
			}
			from := f.BaseSHA
			if before, again := out[path]; again {
				from = before.from
			}
			out[path] = ownFile{f.Content, f.Action == gitprovider.ActionDelete, from}
		}
	}
	return out
}

// changesOursAlone reports whether a pull request changes exactly what we proposed although its head is not our commit:
// a person has merged the base branch into it, or the forge has rebased our commits. Each file has the text that we
// last wrote, or the merge of that with the base branch's text.
func (r revisions) changesOursAlone(ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef,
	pr gitprovider.PullRequest,
	made []record.Proposal,
) (bool, error) {
	own := ownFiles(made)
	if len(own) == 0 {
		return false, nil
	}
	for _, name := range pr.Paths {
		path, err := gitprovider.ParsePath(name)
		if _, ours := own[path]; err != nil || !ours {
			return false, nil
		}
	}
	paths := make([]gitprovider.Path, 0, len(own))
	for path := range own {
		paths = append(paths, path)
	}
	read := func(branch string) (*gitprovider.Snapshot, error) {
		return p.Snapshot(ctx, gitprovider.SnapshotQuery{Repo: repo, Base: branch, Paths: paths, FilesOnly: true,
			Contents: branch == pr.Base})
	}
	head, err := read(pr.Branch)
	if err != nil || head.BaseCommit != pr.HeadCommit {
		return false, err
	}
	var merged []gitprovider.Path // with changes of the base branch, if they are ours
	executable := false
	for path, file := range own {
		entry, there := head.Tree[path.String()]
		switch {
		case there == file.deleted, there && entry.Kind != gitprovider.KindFile:
			return false, nil
		case there && entry.ID != gitprovider.BlobID([]byte(file.content), entry.ID):
			merged = append(merged, path)
		}
		executable = executable || entry.Executable
	}
	if !executable && len(merged) == 0 {
		return true, nil
	}
	base, err := read(pr.Base) // our commits leave the mode as it is
	if err != nil {
		return false, err
	}
	for path := range own {
		if name := path.String(); head.Tree[name].Executable && !base.Tree[name].Executable {
			return false, nil
		}
	}
	for _, path := range merged {
		ours, err := isMerge(ctx, p, repo, own[path], base.Contents[path], head.Tree[path.String()].ID)
		if err != nil || !ours {
			return false, err
		}
	}
	return true, nil
}

// isMerge reports whether a blob is the merge of our text of a file with the base branch's, whose common ancestor is
// the text that ours was made from.
func isMerge(ctx context.Context, p gitprovider.Provider, repo gitprovider.RepoRef, own ownFile, base []byte,
	blob string) (bool, error) {
	reader, can := p.(gitprovider.BlobReader)
	if !can || own.from == "" || base == nil {
		return false, nil
	}
	from, err := reader.ReadBlob(ctx, repo, own.from)
	switch code := fault.CodeOf(err); {
	case code == fault.NotFound, code == fault.ContentDenied:
		return false, nil
	case err != nil:
		return false, err
	}
	merged, clean := textedit.Merge(string(from), own.content, string(base))
	return clean && gitprovider.BlobID([]byte(merged), blob) == blob, nil
}

// pushedBy says whose the commit at the head is.
func pushedBy(info gitprovider.CommitInfo) string {
	who := "a person"
	if name := clean(info.Author, maxName); name != "" {
		who = quote(name)
	}
	return fmt.Sprintf("has the commit %s of %s on its branch, which changes more than we proposed", short(info.ID), who)
}
