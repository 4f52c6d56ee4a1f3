package github

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

// newObjects remembers what was made a moment ago: by this process, or by another one, if GitHub has shown or said so.
// GitHub needs some seconds until each of its servers knows a new branch, commit or pull request. Until then it refuses
// as if there were none; such a refusal proves nothing.
type newObjects struct {
	made  *forge.LRU[string, time.Time]
	now   func() time.Time
	sleep func(context.Context, time.Duration)
}

const (
	// newFor is how long an object counts as new.
	newFor = time.Minute
	// maxNew bounds the objects that are remembered.
	maxNew = 4096
)

// objectKey names a branch, a git object or a pull request of a repository.
func objectKey(repo gitprovider.RepoRef, name string) string {
	return forge.RepoKey(repo) + "\n" + name
}

func branchObject(repo gitprovider.RepoRef, branch string) string {
	return objectKey(repo, branchRef(branch))
}

func pullObject(repo gitprovider.RepoRef, number int) string {
	return objectKey(repo, "#"+strconv.Itoa(number))
}

func (o newObjects) add(object string) { o.made.Put(object, o.now()) }

// addPull notes a pull request of the repository itself and its branch, if they are new. One server of GitHub has shown
// them, others may not know them yet.
func (o newObjects) addPull(repo gitprovider.RepoRef, n *pullNode) {
	if o.now().Sub(n.CreatedAt).Abs() >= newFor {
		return
	}
	o.add(pullObject(repo, n.Number))
	if branch := branchObject(repo, n.HeadRefName); !n.IsCrossRepository && !o.wasShown(branch) {
		o.add(branch)
	}
}

// gone notes that the object was removed.
func (o newObjects) gone(object string) { o.made.Take(object) }

// markShown notes that GitHub knows the object.
func (o newObjects) markShown(object string) { o.made.Put(object, time.Time{}) }

// wasShown reports whether GitHub is known to know it.
func (o newObjects) wasShown(object string) bool {
	made, known := o.made.Get(object)
	return known && made.IsZero()
}

func (o newObjects) has(object string) bool {
	made, known := o.made.Get(object)
	return known && o.now().Sub(made) < newFor
}

// retryUntilKnown calls do, and if GitHub does not know the new object yet, again after 1, 2 and 4 seconds. unknown
// tells whether what do came to can mean that. If another request was shown the object during a refusal, the refusal
// may be older than that, and proves nothing either. It returns what do came to last; late is true if that is still
// unknown.
func (o newObjects) retryUntilKnown(ctx context.Context, object string, unknown func(error) bool,
	do func() error) (late bool, err error) {
	shown := false
	return o.waitWhile(ctx,
		func(err error) bool { return unknown(err) && (o.has(object) || !shown && o.wasShown(object)) },
		func() error {
			shown = o.wasShown(object)
			return do()
		})
}

// waitWhile is wait for errors that unknown recognises.
func (o newObjects) waitWhile(ctx context.Context, unknown func(error) bool, do func() error) (late bool, err error) {
	for pause := time.Second; ; pause *= 2 {
		err = do()
		late = unknown(err)
		if !late || pause > 4*time.Second || ctx.Err() != nil {
			break
		}
		o.sleep(ctx, pause)
	}
	return late, err
}

// waitFor is wait with an error that says that the object may still appear: the caller has to look again later.
func (o newObjects) waitFor(ctx context.Context, object, what string, unknown func(error) bool, do func() error) error {
	late, err := o.retryUntilKnown(ctx, object, unknown, do)
	if late {
		return notYet(what, err)
	}
	return err
}

// notYet says that a refusal may come from a new object that GitHub does not know yet. It does not wrap the refusal,
// which would then count as definite.
func notYet(what string, refusal error) error {
	if refusal == nil { // GitHub only left it out
		return fault.New(fault.UpstreamError, "GitHub does not show %s yet, which was made a moment ago; try again later", what)
	}
	return fault.New(fault.UpstreamError, "GitHub does not show %s yet, which was made a moment ago: %s; try again "+
		"later", what, fault.From(refusal).Message)
}

// onPull does something to a pull request that may be new.
func (o newObjects) onPull(ctx context.Context, repo gitprovider.RepoRef, number int, do func() error) error {
	return o.waitFor(ctx, pullObject(repo, number), pullWords(number), pullUnknown, do)
}

func pullWords(number int) string { return "pull request " + strconv.Itoa(number) }

// unknownNode is in GitHub's words about something that it does not know, or that the token may not see.
const unknownNode = "could not resolve to a node"

// pullUnknown reports whether a refusal can mean that GitHub does not know a pull request.
func pullUnknown(err error) bool {
	no := asRefusal(err)
	switch {
	case no == nil:
		return false
	case no.status == http.StatusNotFound, no.kind == "NOT_FOUND":
		return true
	}
	return no.status == http.StatusUnprocessableEntity && no.says(unknownNode, "issue not found")
}

// facts caches the last known facts about a repository.
type facts struct {
	id        string          // GraphQL node id
	labels    map[string]bool // by labelKey
	seen      time.Time       // when labels was read
	filesRead bool            // the files of our open pull requests have been read
}

// maxRepositories bounds the repositories of which something is remembered.
const maxRepositories = 512

// repositoryFacts remembers the facts of repositories.
type repositoryFacts struct {
	known *forge.LRU[string, facts]
}

func newRepositoryFacts() *repositoryFacts {
	return &repositoryFacts{forge.NewLRU[string, facts](maxRepositories, nil)}
}

func (r *repositoryFacts) cached(repo gitprovider.RepoRef) facts {
	known, _ := r.known.Get(forge.RepoKey(repo))
	return known
}

func (r *repositoryFacts) updateFacts(repo gitprovider.RepoRef, change func(facts) facts) {
	r.known.Update(forge.RepoKey(repo), change)
}

// noteFilesRead notes that the files of our open pull requests have been read.
func (r *repositoryFacts) noteFilesRead(repo gitprovider.RepoRef) {
	r.updateFacts(repo, func(f facts) facts {
		f.filesRead = true
		return f
	})
}
