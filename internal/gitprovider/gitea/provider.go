// Package gitea is the provider for Gitea and Forgejo. Types and most calls are those of Gitea's SDK; plain requests
// stand in where it lacks a route (labels by name), leaves out a part of the answer, wraps a route in a way that costs
// requests, or pages wrongly. HTTP itself (token, retries, redirects, limits) is internal/system/transport's.
//
// provider.go has the methods of the port. Each hands on to the part that does it (snapshots, commitWriter, opener,
// labels, ...), and makes a fault of what comes back; errors.go says what a refusal means.
//
// # What the methods cost
//
// n is the number of pull requests of ours whose commits were not seen before; lists of more than 50 cost one request
// for each further page.
//
//	Snapshot         1 of the files alone, contents apart; else
//	                 4 + n requests in 2 rounds (1 more for each branch name, contents apart; with the pull requests of
//	                 others one for each that was not seen, at most gitprovider.MaxForeign, in the second round)
//	Commit           1 (1 more when more than 30 files cannot be proven by the tree's id; 2 when the base had moved)
//	OpenPullRequest  1 for a branch that this process has just made, else 4 in 3 rounds (2 in one if it is open)
//	Label            1 (3 where labels are taken by id alone; 2 more for labels that have to be made)
//	FindByHead       1 when there is one, else every page of the list
//	BranchTip        1 (2 when there is no such branch)
//	DeleteBranch     2
//	ListOpen         1 + n
//	Append           1 (2 when it is refused); Comment 1
//	Details          2 in one round; SetText 1; Remarks 3 in one round
//	Status           4 in 2 rounds (3 when its files are known), and at most 3 more looks in 3 s when it cannot be merged
//
// So a proposal costs 7 + n requests in 5 rounds, whatever the number of its files, and 6 + n when the label's id was
// seen before. A repository whose tree has more than 1000 entries costs further pages, or one request for each folder.
//
// # What the server does not guard
//
// A commit takes the base branch as it is when the request arrives: the answer is checked, and a branch made on another
// base is removed again. The deletion of a branch cannot name the commit it expects. Two creations of one pull request
// that are under way together both succeed. Each of these is closed as far as looking can close it; see Commit,
// DeleteBranch and OpenPullRequest.
package gitea

import (
	"context"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// Name is the provider's name in configuration and records. Forgejo goes by it too.
const Name = "gitea"

// Variables that messages tell people to look at.
const (
	urlVariable   = "GITEA_URL"
	tokenVariable = "GITEA_TOKEN" // #nosec G101: the name of a variable
)

// Options are the settings of a Provider. Base and Client are required.
type Options struct {
	// Base is the address of the installation (GITEA_URL); one below a path is fine. The API is at api/v1 below it.
	Base *url.URL
	// Client carries the token and everything about HTTP.
	Client *transport.Transport
	// CreateLabels lets Label make the labels that a repository lacks. Without it they are not_found.
	CreateLabels func() bool // asked each time; nil: they are not
	// Paths remembers the files of pull requests beyond the process; nil keeps them in the process alone.
	Paths forge.PathMemory
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Sleep waits for d or until ctx ends; nil means to wait by a timer.
	Sleep func(ctx context.Context, d time.Duration)
}

// Provider implements gitprovider.Provider, and what a provider can do besides (gitprovider.Assigner, Editor,
// RemarkReader, Examiner and Pinger), for one Gitea or Forgejo. Each of its methods hands on to the part that does it,
// and makes of what the server refuses the codes of the port.
type Provider struct {
	api        *api
	branches   branches
	trees      trees
	pulls      pulls
	snapshots  snapshots
	commits    commitWriter
	opener     opener
	labels     labels
	status     statusReader
	discussion discussion
	assigner   assigner
	examiner   examiner
	issues     issues
}

var (
	_ gitprovider.Provider     = (*Provider)(nil)
	_ gitprovider.Assigner     = (*Provider)(nil)
	_ gitprovider.Editor       = (*Provider)(nil)
	_ gitprovider.RemarkReader = (*Provider)(nil)
	_ gitprovider.Reviser      = (*Provider)(nil)
	_ gitprovider.Examiner     = (*Provider)(nil)
	_ gitprovider.Lister       = (*Provider)(nil)
	_ gitprovider.Pinger       = (*Provider)(nil)
)

// New makes a Provider. It makes no call.
func New(opts Options) *Provider {
	clock := transport.Clock{Now: opts.Now, Sleep: opts.Sleep}.WithDefaults()
	a := &api{base: opts.Base, http: opts.Client}
	ids, fresh, paths := newLabelIDs(), newFreshBranches(), forge.NewPaths()
	branches := branches{a}
	trees := trees{a, branches, new(atomic.Bool)}
	pulls := pulls{
		api: a, files: changedFiles{api: a, trees: trees, known: paths, memory: opts.Paths}, labels: ids, now: clock.Now,
		reviews: reviewNumbers{a, new(atomic.Bool)},
	}
	discussion := discussion{a, pulls}
	labels := labels{a, ids, opts.CreateLabels}
	examiner := examiner{a, branches, labels}
	return &Provider{
		api: a, branches: branches, trees: trees, pulls: pulls, labels: labels, discussion: discussion,
		snapshots: snapshots{a, trees, branches, pulls},
		commits:   commitWriter{api: a, branches: branches, trees: trees, paths: paths, fresh: fresh, now: clock.Now},
		opener:    opener{a, pulls, ids, fresh},
		status:    statusReader{a, pulls, discussion, clock.Sleep},
		assigner:  assigner{a, pulls},
		examiner:  examiner,
		issues:    issues{a, examiner},
	}
}

// Name returns "gitea".
func (p *Provider) Name() string { return Name }

// Snapshot implements gitprovider.Provider. The first round reads repository, tree, open and closed pull requests (and
// branch tips, if asked for) side by side; the second the files of the pull requests that may be ours and were not seen
// at their present commits before (and contents, if asked for).
//
// Beside the port's codes: repo_not_allowed for a repository whose pull requests are switched off.
func (p *Provider) Snapshot(ctx context.Context, q gitprovider.SnapshotQuery) (*gitprovider.Snapshot, error) {
	snap, err := p.snapshots.readSnapshot(ctx, q)
	return snap, p.api.toFault(err, q.Repo, "")
}

// Commit implements gitprovider.Provider. One request makes branch and commit. The server takes the base as it is at
// that moment, so the answer is checked: a commit with another parent, or with other files, is undone. The commit
// belongs to the token's user.
//
// Beside the port's codes: repo_not_allowed if the repository is archived, the user may not write, or a rule protects
// branches of this name.
func (p *Provider) Commit(ctx context.Context, req gitprovider.CommitRequest) (gitprovider.Commit, error) {
	id, err := p.commits.commit(ctx, req)
	if err != nil {
		return gitprovider.Commit{}, err
	}
	return gitprovider.Commit{ID: id, Branch: req.Branch}, nil
}

// OpenPullRequest implements gitprovider.Provider; see opener for when it looks before and after.
//
// The answer has no Paths, since the caller knows them. Labels whose ids are known by then are set with the creation.
// Beside the port's codes: repo_not_allowed if the repository is archived or the user may not open pull requests.
func (p *Provider) OpenPullRequest(ctx context.Context, spec gitprovider.PullRequestSpec) (gitprovider.PullRequest,
	error) {
	pr, err := p.opener.submitPull(ctx, spec)
	if err != nil {
		return gitprovider.PullRequest{}, p.api.toFault(err, spec.Repo, "the branch "+spec.Head+" or "+spec.Base)
	}
	return p.pulls.convert(pr), nil
}

// Label implements gitprovider.Provider. One request adds labels by their names; those that are there already stay as
// they are. What the repository lacks is made first if that is allowed (Options.CreateLabels), else it is not_found and
// named, and the others are set all the same.
//
// A number that belongs to an issue is not told from a pull request.
func (p *Provider) Label(ctx context.Context, repo gitprovider.RepoRef, number int, labels []string) error {
	if err := forge.CheckNumber(repo, number); err != nil {
		return err
	}
	if len(labels) == 0 {
		_, err := p.pulls.readPull(ctx, repo, number)
		return p.api.toFault(err, repo, pullName(number))
	}
	return p.api.toFault(p.labels.set(ctx, repo, number, labels), repo, pullName(number))
}

// FindByHead implements gitprovider.Provider.
func (p *Provider) FindByHead(ctx context.Context, repo gitprovider.RepoRef, branch string) (*gitprovider.PullRequest,
	error) {
	pr, err := p.pulls.byHead(ctx, repo, branch)
	return pr, p.api.toFault(err, repo, "")
}

// BranchTip implements gitprovider.Provider.
func (p *Provider) BranchTip(ctx context.Context, repo gitprovider.RepoRef, branch string) (string, error) {
	return p.branches.Tip(ctx, repo, branch)
}

// DeleteBranch implements gitprovider.Provider; see branches.Remove for what it cannot guard. Beside the port's codes:
// repo_not_allowed for a protected branch or an archived repository.
func (p *Provider) DeleteBranch(ctx context.Context, repo gitprovider.RepoRef, branch, tip string) error {
	return forge.DeleteBranch(ctx, p.branches, repo, branch, tip)
}

// ListOpen implements gitprovider.Provider. The label is compared here, by its exact name. Beside the port's codes:
// repo_not_allowed for a repository whose pull requests are switched off.
func (p *Provider) ListOpen(ctx context.Context, repo gitprovider.RepoRef, label string) ([]gitprovider.PullRequest,
	error) {
	prs, err := p.pulls.openOf(ctx, repo, func(pr gitprovider.PullRequest) bool { return gitprovider.Listed(pr, label) })
	return prs, p.api.toFaultOfPull(ctx, err, repo, "", true)
}

// ListKnown implements gitprovider.Lister with one request for each 50 open pull requests, and ReadPaths of its answer
// with one for each pull request and one for each commit that several start from.
func (p *Provider) ListKnown(ctx context.Context, repo gitprovider.RepoRef, label string) (gitprovider.KnownList,
	error) {
	list, err := p.pulls.listKnown(ctx, repo,
		func(pr gitprovider.PullRequest) bool { return gitprovider.Listed(pr, label) })
	if err != nil {
		return list, p.api.toFaultOfPull(ctx, err, repo, "", true)
	}
	read := list.ReadPaths
	list.ReadPaths = func(ctx context.Context, numbers []int) (map[int][]string, error) {
		paths, err := read(ctx, numbers)
		return paths, p.api.toFaultOfPull(ctx, err, repo, "", false)
	}
	return list, nil
}

// Status implements gitprovider.Provider: pull request and reviews in one round, files, checks and the comments
// on lines of at most gitprovider.MaxCommentedReviews reviews in a second. What the server
// may still be working on is asked for again; see inTransit.
func (p *Provider) Status(ctx context.Context, repo gitprovider.RepoRef, number int) (gitprovider.Status, error) {
	if err := forge.CheckNumber(repo, number); err != nil {
		return gitprovider.Status{}, err
	}
	status, err := p.status.readStatus(ctx, repo, number)
	if err != nil {
		return gitprovider.Status{}, p.api.toFaultOfPull(ctx, err, repo, pullName(number), false)
	}
	return status, nil
}

// OurBranches implements gitprovider.Settler. It costs a request, and one more where there are none.
func (p *Provider) OurBranches(ctx context.Context, repo gitprovider.RepoRef) (map[string]string, error) {
	tips, err := p.branches.ours(ctx, repo)
	return tips, p.api.toFault(err, repo, "")
}

// OpenOurs implements gitprovider.Settler.
func (p *Provider) OpenOurs(ctx context.Context, repo gitprovider.RepoRef, below int) ([]gitprovider.PullRequest,
	error) {
	prs, err := p.pulls.openOf(ctx, repo, func(pr gitprovider.PullRequest) bool {
		return pr.Number < below && gitprovider.MayBeOurs(pr)
	})
	return prs, p.api.toFault(err, repo, "")
}

// ReadCommit implements gitprovider.Settler with one request, and one for each page of the two trees.
func (p *Provider) ReadCommit(ctx context.Context, repo gitprovider.RepoRef, id string) (gitprovider.CommitInfo,
	error) {
	info, err := p.trees.readCommit(ctx, repo, id)
	return info, p.api.toFault(err, repo, "the commit "+id)
}

// ReadBlob implements gitprovider.BlobReader with one request.
func (p *Provider) ReadBlob(ctx context.Context, repo gitprovider.RepoRef, id string) ([]byte, error) {
	content, err := p.trees.blob(ctx, repo, id)
	return content, p.api.toFault(err, repo, "the blob "+id)
}

// ListFiles implements gitprovider.FileLister with one request for each 1000 entries.
func (p *Provider) ListFiles(ctx context.Context, at *gitprovider.Snapshot, folder string) ([]gitprovider.ListedFile,
	bool, error) {
	files, complete, err := p.trees.listTree(ctx, at, folder)
	return files, complete, p.api.toFault(err, at.Repo, "the folder "+folder)
}

// Withdraw implements gitprovider.Settler: it looks, and then closes and writes the body in one request.
func (p *Provider) Withdraw(ctx context.Context, repo gitprovider.RepoRef, w gitprovider.Withdrawal) error {
	if err := forge.CheckNumber(repo, w.Number); err != nil {
		return err
	}
	return p.api.toFault(p.pulls.withdraw(ctx, repo, w), repo, pullName(w.Number))
}

// Close implements gitprovider.Provider: it looks, and then closes and writes the body in one request.
func (p *Provider) Close(ctx context.Context, repo gitprovider.RepoRef, c gitprovider.Closing) (gitprovider.State,
	error) {
	if err := forge.CheckNumber(repo, c.Number); err != nil {
		return "", err
	}
	state, err := p.pulls.close(ctx, repo, c)
	return state, p.api.toFault(err, repo, pullName(c.Number))
}

// Lateness implements gitprovider.Settler.
func (p *Provider) Lateness() time.Duration { return gitprovider.ForgeLateness }

// Assign implements gitprovider.Assigner. The assignees are set as given: the API replaces them. Teams are those of the
// organization that owns the repository.
func (p *Provider) Assign(ctx context.Context, repo gitprovider.RepoRef, number int,
	reviewers, assignees []string) error {
	if err := forge.CheckNumber(repo, number); err != nil {
		return err
	}
	return p.api.toFault(p.assigner.assign(ctx, repo, number, reviewers, assignees), repo, pullName(number))
}

// Details implements gitprovider.Editor: pull request and reviews side by side.
func (p *Provider) Details(ctx context.Context, repo gitprovider.RepoRef, number int) (gitprovider.Details, error) {
	if err := forge.CheckNumber(repo, number); err != nil {
		return gitprovider.Details{}, err
	}
	details, err := p.discussion.details(ctx, repo, number)
	return details, p.api.toFaultOfPull(ctx, err, repo, pullName(number), false)
}

// Append implements gitprovider.Reviser: one request, and one more when it is refused.
//
// Beside the port's codes: repo_not_allowed if the repository is archived, the user may not write, or a rule protects
// branches of this name.
func (p *Provider) Append(ctx context.Context, req gitprovider.CommitRequest) (gitprovider.Commit, error) {
	return p.commits.append(ctx, req)
}

// SetText implements gitprovider.Editor.
func (p *Provider) SetText(ctx context.Context, repo gitprovider.RepoRef, number int,
	title, body string) (gitprovider.State, error) {
	if err := forge.CheckNumber(repo, number); err != nil {
		return "", err
	}
	state, err := p.pulls.editPull(transport.Repeatable(ctx), repo, number, forge.TextFields(title, body))
	return state, p.api.toFault(err, repo, pullName(number))
}

// Comment implements gitprovider.Reviser.
func (p *Provider) Comment(ctx context.Context, repo gitprovider.RepoRef, number int, text string) error {
	if err := forge.CheckNumber(repo, number); err != nil {
		return err
	}
	return p.api.toFault(p.discussion.postComment(ctx, repo, number, text), repo, pullName(number))
}

// Checks implements gitprovider.CheckReader with one request for each page of statuses.
func (p *Provider) Checks(ctx context.Context, repo gitprovider.RepoRef, _ int, head string) (gitprovider.Checks,
	error) {
	checks, err := p.api.checks(ctx, repo, head)
	return checks, p.api.toFault(err, repo, "the checks of "+head)
}

// Reply implements gitprovider.Replier with one request. The API has no way to answer in a conversation: it is one
// review with a comment on the line of each, which the pages show together.
func (p *Provider) Reply(ctx context.Context, repo gitprovider.RepoRef, number int,
	replies []gitprovider.LineReply) error {
	if err := forge.CheckNumber(repo, number); err != nil {
		return err
	}
	return p.api.toFault(p.discussion.postReplies(ctx, repo, number, replies), repo, pullName(number))
}

// Remarks implements gitprovider.RemarkReader with three requests side by side, and then one for each of at most
// gitprovider.MaxCommentedReviews reviews with comments on lines. Where the server does not tell who may write, no
// author counts as one who may.
func (p *Provider) Remarks(ctx context.Context, repo gitprovider.RepoRef, number int) ([]gitprovider.Remark, error) {
	if err := forge.CheckNumber(repo, number); err != nil {
		return nil, err
	}
	remarks, err := p.discussion.remarks(ctx, repo, number)
	return remarks, p.api.toFaultOfPull(ctx, err, repo, pullName(number), false)
}

// Examine implements gitprovider.Examiner. It costs up to twelve requests in three rounds. Scopes are known only of a
// token that lacks one; see examiner.scopes.
func (p *Provider) Examine(ctx context.Context, repo gitprovider.RepoRef, base string,
	labels []string) (gitprovider.Access,
	error) {
	access, err := p.examiner.examine(ctx, repo, base, labels)
	return access, p.api.toFault(err, repo, "")
}

// Ping implements gitprovider.Pinger by GET /version.
func (p *Provider) Ping(ctx context.Context) error {
	return p.api.toFault(p.api.ping(ctx), gitprovider.RepoRef{}, "")
}
