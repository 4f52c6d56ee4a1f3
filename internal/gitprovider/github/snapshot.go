package github

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// snapshots reads what the gates need to know of a repository.
type snapshots struct {
	api   *api
	pulls pulls
	facts *repositoryFacts
	trees *forge.LRU[string, string] // root tree by commit, which commitWriter needs
	now   func() time.Time
}

// snapshotQuery is one Snapshot at work: what is asked, and what GitHub answered.
type snapshotQuery struct {
	gitprovider.SnapshotQuery
	dirs         []string // folders above the paths, without the root
	open, closed pullList
	recent       pullList // the last updated open ones; unused when the files come along with all
	small        bool     // the first try was too much for GitHub
	repository   repositoryNode
	dynamic      map[string]json.RawMessage // the fields with numbered aliases
}

// repositoryNode is a repository as GraphQL answers the snapshot's query.
type repositoryNode struct {
	ID, Name             string
	DatabaseID           int64
	Owner                userNode
	URL                  string
	IsArchived, IsLocked bool
	IsDisabled, IsFork   bool
	DefaultBranchRef     *baseNode
	Base                 *baseNode
	Labels               *labelList
	Open, Recent, Closed *pullConnection
	Newest               *struct{ Nodes []struct{ Number int } }
}

// baseNode is the base branch with what is read of its commit.
type baseNode struct {
	Name   string
	Target map[string]json.RawMessage
}

// How many pull requests come along with their files although most were seen before. A head that moved, or a pull
// request that was closed, was updated last, so the first page of the order shows what is new.
const (
	recentOpen   = 20
	recentClosed = 20
)

func (s snapshots) readSnapshot(ctx context.Context, query gitprovider.SnapshotQuery) (*gitprovider.Snapshot, error) {
	q := newSnapshotQuery(query)
	if query.FilesOnly {
		return s.readFiles(ctx, q)
	}
	q.open.files = !s.facts.cached(query.Repo).filesRead
	err := s.querySnapshot(ctx, q)
	if tooMuch(err) { // then only ours are compared, afterwards
		q.open, q.closed, q.small = q.open.smaller(), q.closed.smaller(), true
		err = s.querySnapshot(ctx, q)
	}
	if err != nil {
		return nil, err
	}
	out, err := s.snapshotFromQuery(q)
	if err != nil {
		return nil, err
	}
	reads := []func(context.Context) error{func(ctx context.Context) error { return s.readOpen(ctx, q, out) }}
	if !q.ClosedSince.IsZero() {
		reads = append(reads, func(ctx context.Context) error { return s.readClosed(ctx, q, out) })
	}
	if q.Contents {
		reads = append(reads, func(ctx context.Context) (err error) {
			out.Contents, err = s.contents(ctx, out.Repo, q.base().Target, q.Paths)
			return err
		})
	}
	err = forge.Each(ctx, reads, func(ctx context.Context, _ int,
		read func(context.Context) error) error {
		return read(ctx)
	})
	if err != nil {
		return nil, err
	}
	s.facts.noteFilesRead(out.Repo)
	return out, nil
}

// readFiles reads a branch without pull requests.
func (s snapshots) readFiles(ctx context.Context, q *snapshotQuery) (*gitprovider.Snapshot, error) {
	if err := s.querySnapshot(ctx, q); err != nil {
		return nil, err
	}
	out, err := s.snapshotFromQuery(q)
	if err == nil && q.Contents {
		out.Contents, err = s.contents(ctx, out.Repo, q.base().Target, q.Paths)
	}
	return out, err
}

func newSnapshotQuery(query gitprovider.SnapshotQuery) *snapshotQuery {
	q := &snapshotQuery{SnapshotQuery: query, open: openPulls()}
	for _, path := range query.Paths {
		q.dirs = append(q.dirs, path.Ancestors()...)
	}
	slices.Sort(q.dirs)
	q.dirs = slices.Compact(q.dirs)
	q.recent = pullList{arguments: "states: [OPEN], orderBy: {field: UPDATED_AT, direction: DESC}", files: true}
	q.closed = pullList{arguments: "states: [CLOSED], orderBy: {field: UPDATED_AT, direction: DESC}", size: pageSize,
		files: true, end: query.ClosedSince}
	return q
}

// querySnapshot sends the query.
func (s snapshots) querySnapshot(ctx context.Context, sq *snapshotQuery) error {
	q := newQuery(sq.Repo)
	q.selectField(
		"id databaseId name owner { login } url isArchived isLocked isDisabled isFork labels(first: 100) { nodes { name } }")
	commit := sq.commitFields(q)
	if sq.Base == "" {
		q.selectField("defaultBranchRef { name " + commit + " }")
	} else {
		q.selectField("defaultBranchRef { name }")
		q.textVariable("base", branchRef(sq.Base))
		q.selectField("base: ref(qualifiedName: $base) { name " + commit + " }")
	}
	for i, branch := range sq.Branches {
		if gitprovider.CheckBranchName(branch) != nil {
			continue // git has no such branch
		}
		alias := "tip" + strconv.Itoa(i)
		q.textVariable(alias, branchRef(branch))
		q.selectField(alias + ": ref(qualifiedName: $" + alias + ") { target { oid } }")
	}
	if sq.FilesOnly {
		return s.sendQuery(ctx, sq, q)
	}
	// Before the open ones, so that none is opened between them that is in neither.
	q.selectField("newest: pullRequests(first: 1, orderBy: {field: CREATED_AT, direction: DESC}) { nodes { number } }")
	q.selectField(sq.open.pageSelection("open", sq.open.size, ""))
	if !sq.open.files && !sq.small {
		q.selectField(sq.recent.pageSelection("recent", recentOpen, ""))
	}
	if !sq.ClosedSince.IsZero() {
		q.selectField(sq.closed.pageSelection("closed", recentClosed, ""))
	}
	q.fragment(pullFragment)
	if !sq.small {
		q.fragment(changedFragment)
	}
	return s.sendQuery(ctx, sq, q)
}

func (s snapshots) sendQuery(ctx context.Context, sq *snapshotQuery, q *query) error {
	q.tolerate = func(e graphError) bool { return e.Type == "NOT_FOUND" && e.under("target") } // a path that is not there
	read := func() error {
		sq.repository = repositoryNode{}
		answer, err := queryRepository[json.RawMessage](ctx, s.api, q, needContents)
		if err != nil {
			return err
		}
		if err := decodeJSON(*answer, &sq.repository); err != nil {
			return err
		}
		return decodeJSON(*answer, &sq.dynamic)
	}
	noBase := func(err error) bool { return err == nil && sq.base() == nil }
	_, err := s.api.fresh.retryUntilKnown(ctx, branchObject(sq.Repo, sq.Base), noBase, read)
	return err
}

// snapshotFromQuery fills in what the query has answered already, and remembers what later calls need.
func (s snapshots) snapshotFromQuery(q *snapshotQuery) (*gitprovider.Snapshot, error) {
	r := q.repository
	ref := gitprovider.RepoRef{Owner: r.Owner.Login, Name: r.Name, Remote: q.Repo.Remote}
	base := q.base()
	switch {
	case r.DefaultBranchRef == nil && base == nil:
		return nil, forge.NoFirstCommit(ref)
	case base == nil:
		known := ""
		if r.DefaultBranchRef != nil {
			known = r.DefaultBranchRef.Name
		}
		return nil, forge.NoBase(ref, q.Base, known)
	case r.Open == nil && !q.FilesOnly:
		return nil, notShown("pull requests", ref)
	}
	out := &gitprovider.Snapshot{
		Repo: ref, RepoID: repoID(r.DatabaseID), URL: r.URL, Base: base.Name,
		Archived: r.IsArchived || r.IsLocked || r.IsDisabled, Fork: r.IsFork,
		Tips: map[string]string{}, Contents: map[gitprovider.Path][]byte{},
	}
	if r.Newest != nil && len(r.Newest.Nodes) > 0 {
		out.LastNumber = r.Newest.Nodes[0].Number
	}
	if r.DefaultBranchRef != nil {
		out.DefaultBranch = r.DefaultBranchRef.Name
	}
	var root string
	var err error
	if out.BaseCommit, root, out.Tree, err = q.tree(); err != nil {
		return nil, err
	}
	s.trees.Put(out.BaseCommit, root)
	for i, branch := range q.Branches {
		var tip *refNode
		if err := decodeField(q.dynamic, "tip"+strconv.Itoa(i), &tip); err != nil {
			return nil, err
		}
		if tip != nil {
			out.Tips[branch] = tip.tip()
		}
	}
	s.facts.updateFacts(ref, func(f facts) facts {
		f.id, f.labels, f.seen = r.ID, labelKeys(r.Labels.names()), s.now()
		return f
	})
	if r.Recent != nil {
		s.pulls.files.cachePaths(ref, r.Recent.Nodes)
	}
	return out, nil
}

// readClosed reads the list to its end and keeps those pull requests that may be ours and were closed since.
func (s snapshots) readClosed(ctx context.Context, q *snapshotQuery, out *gitprovider.Snapshot) error {
	if q.repository.Closed == nil {
		return notShown("pull requests", out.Repo)
	}
	all, err := s.pulls.readOn(ctx, out.Repo, q.closed, q.repository.Closed)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(n *pullNode) bool {
		pr := n.pullRequest()
		return !gitprovider.MayBeOurs(pr) || pr.ClosedAt.Before(q.ClosedSince)
	})
	out.Closed, err = s.pulls.files.convert(ctx, out.Repo, all)
	return err
}

// treeEntry is an entry of a folder. Mode is git's mode as a decimal number: 33188 is 0100644.
type treeEntry struct {
	Name string
	Mode int
	Oid  string
}

// The types in git's modes, and the executable bit.
const (
	modeType       = 0o170000
	modeDir        = 0o040000
	modeSymlink    = 0o120000
	modeSubmodule  = 0o160000
	modeExecutable = 0o111
)

func (e treeEntry) toEntry() gitprovider.Entry {
	switch e.Mode & modeType {
	case modeDir:
		return gitprovider.Entry{Kind: gitprovider.KindDir, ID: e.Oid}
	case modeSymlink:
		return gitprovider.Entry{Kind: gitprovider.KindSymlink, ID: e.Oid}
	case modeSubmodule:
		return gitprovider.Entry{Kind: gitprovider.KindSubmodule, ID: e.Oid}
	}
	return gitprovider.Entry{Kind: gitprovider.KindFile, Executable: e.Mode&modeExecutable != 0, ID: e.Oid}
}

// fileNode is GraphQL's answer for Commit.file: a folder's entries or a file's text.
type fileNode struct {
	treeEntry
	Object *struct {
		Entries  []treeEntry
		ByteSize int64
		Text     *string
	}
}

// commitFields selects all that is read of the base commit: everything hangs on this one commit, so that nothing can
// move between the reads.
func (s *snapshotQuery) commitFields(q *query) string {
	var b strings.Builder
	file := func(alias, path, object string) {
		q.textVariable(alias, path)
		b.WriteString(" " + alias + ": file(path: $" + alias + ") { name mode oid object { " + object + " } }")
	}
	b.WriteString("target { oid ... on Commit { tree { oid entries { name mode oid } }")
	for i, dir := range s.dirs {
		file("dir"+strconv.Itoa(i), dir, "... on Tree { entries { name mode oid } }")
	}
	if s.Contents {
		for i, path := range s.Paths {
			file("file"+strconv.Itoa(i), path.String(), "... on Blob { byteSize text }")
		}
	}
	b.WriteString(" } }")
	return b.String()
}

// base returns the base branch, or nil.
func (s *snapshotQuery) base() *baseNode {
	if s.Base == "" {
		return s.repository.DefaultBranchRef
	}
	return s.repository.Base
}

// tree reads the base commit, the id of its root tree, and the folders out of the answer.
func (s *snapshotQuery) tree() (commit, rootID string, tree gitprovider.Tree, err error) {
	target := s.base().Target
	var root struct {
		Oid     string
		Entries []treeEntry
	}
	if err := decodeField(target, "oid", &commit); err != nil {
		return "", "", nil, err
	}
	if err := decodeField(target, "tree", &root); err != nil {
		return "", "", nil, err
	}
	if commit == "" || root.Oid == "" {
		return "", "", nil, fault.New(fault.UpstreamError, "GitHub did not show the commit of the branch %s; try again later",
			forge.Clean(s.base().Name))
	}
	tree = gitprovider.Tree{}
	for _, e := range root.Entries {
		tree[e.Name] = e.toEntry()
	}
	for i, dir := range s.dirs {
		var folder fileNode
		if err := decodeField(target, "dir"+strconv.Itoa(i), &folder); err != nil {
			return "", "", nil, err
		}
		if folder.Mode&modeType != modeDir || folder.Object == nil {
			continue
		}
		for _, e := range folder.Object.Entries {
			tree[dir+"/"+e.Name] = e.toEntry()
		}
	}
	return commit, root.Oid, tree, nil
}

// contents gives the bytes of the paths that are regular files within the limit. A text from GraphQL counts only if it
// hashes to the blob's id: what GitHub cut off or could not show as text is read by REST.
func (s snapshots) contents(ctx context.Context, repo gitprovider.RepoRef, target map[string]json.RawMessage,
	paths []gitprovider.Path) (map[gitprovider.Path][]byte, error) {
	var mu sync.Mutex
	out := map[gitprovider.Path][]byte{}
	return out, forge.Each(ctx, paths, func(ctx context.Context, i int, path gitprovider.Path) error {
		var file fileNode
		if err := decodeField(target, "file"+strconv.Itoa(i), &file); err != nil {
			return err
		}
		if file.toEntry().Kind != gitprovider.KindFile || file.Object == nil ||
			file.Object.ByteSize > gitprovider.MaxContentRead {
			return nil
		}
		content, err := s.content(ctx, repo, file)
		mu.Lock()
		defer mu.Unlock()
		out[path] = content
		return err
	})
}

func (s snapshots) content(ctx context.Context, repo gitprovider.RepoRef, file fileNode) ([]byte, error) {
	if text := file.Object.Text; text != nil && gitprovider.BlobID([]byte(*text), file.Oid) == file.Oid {
		return []byte(*text), nil
	}
	var raw []byte
	_, err := s.api.send(ctx, restRequest{
		method: http.MethodGet, url: s.api.repoURL(repo, "git", "blobs", file.Oid), accept: rawBlob, need: needContents,
	}, &raw)
	if err != nil {
		return nil, err
	}
	if gitprovider.BlobID(raw, file.Oid) != file.Oid {
		return nil, fault.New(fault.UpstreamError, "GitHub answered with other bytes than the file's; try again later")
	}
	return raw, nil
}

// blob reads one blob by its id.
func (s snapshots) blob(ctx context.Context, repo gitprovider.RepoRef, id string) ([]byte, error) {
	if id == "" || strings.Trim(id, "0123456789abcdef") != "" {
		return nil, fault.New(fault.NotFound, "%.100q is not an object id", id)
	}
	var raw []byte
	_, err := s.api.send(ctx, restRequest{
		method: http.MethodGet, url: s.api.repoURL(repo, "git", "blobs", id), accept: rawBlob, need: needContents,
	}, &raw)
	switch {
	case err != nil:
		return nil, err
	case len(raw) > gitprovider.MaxContentRead:
		return nil, gitprovider.BlobTooLarge(id)
	case gitprovider.BlobID(raw, id) != id:
		return nil, fault.New(fault.UpstreamError, "GitHub answered with other bytes than the file's; try again later")
	}
	return raw, nil
}

// listTree reads every plain file below a folder in one request.
func (s snapshots) listTree(ctx context.Context, at *gitprovider.Snapshot, folder string) ([]gitprovider.ListedFile,
	bool,
	error) {
	id, prefix := at.BaseCommit, ""
	if folder != "" {
		id, prefix = at.Tree[folder].ID, folder+"/"
	}
	var answer struct {
		Tree []struct {
			Path, Mode, SHA string
			Size            int64
		}
		Truncated bool
	}
	where := s.api.repoURL(at.Repo, "git", "trees", id)
	where.RawQuery = "recursive=1"
	_, err := s.api.send(ctx, restRequest{method: http.MethodGet, url: where, need: needContents}, &answer)
	if err != nil {
		return nil, false, err
	}
	var files []gitprovider.ListedFile
	for _, e := range answer.Tree {
		if e.Mode == "100644" || e.Mode == "100755" {
			files = append(files, gitprovider.ListedFile{Path: prefix + e.Path, ID: e.SHA, Size: e.Size})
		}
	}
	sorted, complete := gitprovider.SortListed(files)
	return sorted, complete && !answer.Truncated, nil
}

// readOpen fills in the open pull requests: ours, and if they are asked for those of others. What the latter change is
// known from the list itself, from an earlier look, or from the one request that reads ours; REST is asked about ours
// alone.
func (s snapshots) readOpen(ctx context.Context, q *snapshotQuery, out *gitprovider.Snapshot) error {
	all, err := s.pulls.readOn(ctx, out.Repo, q.open, q.repository.Open)
	if err != nil {
		return err
	}
	files := s.pulls.files
	var ours, others []*pullNode
	for _, n := range all {
		switch {
		case gitprovider.MayBeOurs(n.pullRequest()):
			ours = append(ours, n)
		case q.Foreign && n.BaseRefName == out.Base:
			others = append(others, n)
		}
	}
	files.cachePaths(out.Repo, ours)
	files.cachePaths(out.Repo, others)
	unread := files.unread(out.Repo, ours)
	if more := newestPulls(files.unread(out.Repo, others)); len(more) > 0 {
		// Failing to read the files of others is not an error: those are counted as unread, and ours are read separately.
		if files.readChangedFiles(ctx, out.Repo, slices.Concat(unread, more)) == nil {
			unread = nil
		}
	}
	if err := files.readChangedFiles(ctx, out.Repo, unread); err != nil {
		return err
	}
	if out.Open, err = files.convert(ctx, out.Repo, ours); err != nil {
		return err
	}
	for _, n := range others {
		files.addForeign(out, n)
	}
	return nil
}

// newestPulls gives the latest MaxForeign of the nodes.
func newestPulls(nodes []*pullNode) []*pullNode {
	slices.SortFunc(nodes, func(a, b *pullNode) int { return cmp.Compare(b.Number, a.Number) })
	return nodes[:min(len(nodes), gitprovider.MaxForeign)]
}

// addForeign adds a pull request of others with what is known of its files.
func (f changedFiles) addForeign(out *gitprovider.Snapshot, n *pullNode) {
	pr := n.pullRequest()
	paths, known := f.recall(out.Repo, n)
	if !known {
		out.ForeignUnread++
		if n.Files == nil {
			return
		}
		for _, file := range n.Files.Nodes {
			paths = append(paths, file.Path)
		}
	}
	pr.Paths = paths
	out.Foreign = append(out.Foreign, pr)
}
