package fakegithub

import (
	"maps"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// fileDiff is a pull request's change to one file.
type fileDiff struct {
	path, was            string // was is the former path of a renamed file
	status               string // added, removed, modified, renamed or changed (its mode only)
	additions, deletions int
	id                   string // of the blob; of a removed file the former one
}

// base finds the commit that a pull request's changes are counted from.
func (r *pullRules) base(pr *memhost.PR) string {
	if merge := r.mergeCommit(pr); merge != "" {
		return r.at.repo.MergeBase(r.at.repo.Commits[merge].Parents[0], pr.HeadCommit)
	}
	return r.at.repo.MergeBase(r.at.repo.Branches[pr.Base], pr.HeadCommit)
}

// mergeCommit returns the commit that merged a pull request, or "".
func (r *pullRules) mergeCommit(pr *memhost.PR) string {
	if pr.State != gitprovider.StateMerged {
		return ""
	}
	for id, c := range r.at.repo.Commits {
		if len(c.Parents) == 2 && c.Parents[1] == pr.HeadCommit && !r.at.trials[id] {
			return id
		}
	}
	return ""
}

// diff lists the files that a pull request changes, by path. A removed and an added file with half of their lines in
// common are one renamed file.
func (r *pullRules) diff(pr *memhost.PR) []fileDiff {
	before, after := r.at.repo.Tree(r.base(pr)), r.at.repo.Tree(pr.HeadCommit)
	var out []fileDiff
	removed := map[string]bool{}
	for path, f := range before {
		if _, kept := after[path]; !kept && f.Kind == gitprovider.KindFile {
			removed[path] = true
		}
	}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		f, was := after[path], before[path]
		switch {
		case f == was:
			continue
		case was.Path != "":
			d := newDiff("modified", path, was, f)
			if was.Content == f.Content {
				d.status = "changed"
			}
			out = append(out, d)
		default:
			d := newDiff("added", path, was, f)
			if old := renamedFrom(f, before, removed); old != "" {
				d = newDiff("renamed", path, before[old], f)
				d.was = old
				delete(removed, old)
			}
			out = append(out, d)
		}
	}
	for path, f := range before {
		if _, kept := after[path]; !kept && (removed[path] || f.Kind != gitprovider.KindFile) {
			out = append(out, newDiff("removed", path, f, memhost.File{}))
		}
	}
	slices.SortFunc(out, func(a, b fileDiff) int { return strings.Compare(a.path, b.path) })
	return out
}

func newDiff(status, path string, was, now memhost.File) fileDiff {
	d := fileDiff{path: path, status: status, id: gitprovider.BlobID([]byte(now.Content), "")}
	if status == "removed" {
		d.id = gitprovider.BlobID([]byte(was.Content), "")
	}
	same := sameLines(was.Content, now.Content)
	d.additions, d.deletions = len(lines(now.Content))-same, len(lines(was.Content))-same
	return d
}

// renamedFrom finds the removed file that an added one comes from: the one most like it, if it is like enough.
func renamedFrom(f memhost.File, before map[string]memhost.File, removed map[string]bool) string {
	best, most := "", 0
	for _, path := range slices.Sorted(maps.Keys(removed)) {
		a, b := before[path].Content, f.Content
		same := sameLines(a, b)
		if same > most && 2*same >= max(len(lines(a)), len(lines(b))) && f.Kind == gitprovider.KindFile {
			best, most = path, same
		}
	}
	return best
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.SplitAfter(strings.TrimSuffix(s, "\n"), "\n")
}

// sameLines counts the lines that two texts have in common, wherever they are.
func sameLines(a, b string) int {
	count := map[string]int{}
	for _, line := range lines(a) {
		count[strings.TrimSuffix(line, "\n")]++
	}
	same := 0
	for _, line := range lines(b) {
		line = strings.TrimSuffix(line, "\n")
		if count[line] > 0 {
			count[line]--
			same++
		}
	}
	return same
}

// mergeable tells whether a pull request can be merged: nil while that is not known, which it is not for the first
// reads after a change. Each call is one read. To know it GitHub tries the merge, and keeps the commit of the last
// success.
func (r *pullRules) mergeable(pr *memhost.PR) *bool {
	st := r.at.pull(pr)
	base := r.at.repo.Branches[pr.Base]
	if now := base + " " + pr.HeadCommit; st.mergeOf != now {
		st.mergeOf, st.unknown = now, r.at.set.Delays.MergeableReads
	}
	if pr.State != gitprovider.StateOpen {
		return nil
	}
	if st.unknown > 0 {
		st.unknown--
		return nil
	}
	files, ok := r.at.repo.Merge(base, pr.HeadCommit)
	if ok && st.trialOf != st.mergeOf {
		st.trialOf = st.mergeOf
		st.trial = r.at.repo.Add(&memhost.Commit{
			Parents: []string{base, pr.HeadCommit}, Files: files, Message: "Merge " + pr.HeadCommit + " into " + base,
		})
		r.at.trials[st.trial] = true
	}
	return &ok
}
