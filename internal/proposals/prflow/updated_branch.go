package prflow

import (
	"context"
	"fmt"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// ownFile is what we last wrote at a path, over all that made a pull request.
type ownFile struct {
	content string
	deleted bool
}

// ownFiles is what a pull request changes by our records; nil if they do not tell all of it.
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
			out[path] = ownFile{f.Content, f.Action == gitprovider.ActionDelete}
		}
	}
	return out
}

// changesOursAlone reports whether a pull request changes what we have proposed and nothing else, although its head is
// no commit of ours: a person has merged the base branch into it, or the forge has made our commits anew on top of
// that. Each file has the text that we last wrote. A file that was merged with changes of the base branch has another
// one.
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
		return p.Snapshot(ctx, gitprovider.SnapshotQuery{Repo: repo, Base: branch, Paths: paths, FilesOnly: true})
	}
	head, err := read(pr.Branch)
	if err != nil || head.BaseCommit != pr.HeadCommit {
		return false, err
	}
	executable := false
	for path, file := range own {
		entry, there := head.Tree[path.String()]
		switch {
		case there == file.deleted:
			return false, nil
		case there && (entry.Kind != gitprovider.KindFile || entry.ID != gitprovider.BlobID([]byte(file.content), entry.ID)):
			return false, nil
		}
		executable = executable || entry.Executable
	}
	if !executable {
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
	return true, nil
}

// pushedBy says whose the commit at the head is.
func pushedBy(info gitprovider.CommitInfo) string {
	who := "a person"
	if name := clean(info.Author, maxName); name != "" {
		who = quote(name)
	}
	return fmt.Sprintf("has the commit %s of %s on its branch, which changes more than we proposed", short(info.ID), who)
}
