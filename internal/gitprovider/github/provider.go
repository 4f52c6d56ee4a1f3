// Package github implements gitprovider.Provider for GitHub and GitHub Enterprise Server.
//
// Reads go through GraphQL, because one query sees a repository at one moment: a Snapshot is one request, and a second
// one only if a pull request appeared whose files were never seen. Branches and commits are written through GraphQL as
// well (createRef, then createCommitOnBranch, which signs the commit and is guarded by the expected head); a commit
// that must keep an executable bit goes through REST's git data, which can say so. Pull requests, labels and reviewers
// are written through REST. What a create_pr costs: Snapshot 1 or 2 requests, Commit 2 (3 by git data), OpenPullRequest
// 1, Label 1.
//
// Branch and commit are two requests on purpose. Both as root fields of one mutation would save a round trip, but
// GraphQL runs the second field also after the first has failed: if the branch exists already at the base commit, the
// commit would land on somebody else's branch.
//
// provider.go has the methods of the port. Each hands on to the part that does it (snapshots, commitWriter, opener,
// labels, ...), and gives the codes of the port; refusal.go says what a refusal means.
//
// Every URL is built by transport.URL; what callers name travels there as one escaped segment or in JSON.
package github

import (
	"context"
	"net/url"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/gitprovider/githubapp"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// Name is the provider's name in configuration and records.
const Name = "github"

// Options are the settings of a Provider. API and Client are required.
type Options struct {
	// API is the root of the REST API: https://api.github.com/, or https://HOST/api/v3/ of an Enterprise Server.
	API *url.URL
	// Client carries the requests, and with them the token.
	Client *transport.Transport
	// CreateLabels says that labels which the repository lacks are made when a pull request is labelled.
	CreateLabels func() bool // asked each time; nil: they are not
	// App provides Client's tokens if they are those of a GitHub App; nil for a token of a user.
	App   *githubapp.App
	Now   func() time.Time                     // nil means time.Now
	Sleep func(context.Context, time.Duration) // nil waits for the time to pass or the context to end
}

// Provider implements gitprovider.Provider, and what a provider can do besides: gitprovider.Assigner, Editor,
// RemarkReader, Examiner and Pinger. Each of its methods notes which repository its requests are about, hands on to the
// part that does it, and gives the codes of the port.
type Provider struct {
	branches   branches
	pulls      pulls
	snapshots  snapshots
	lists      pullLists
	commits    commitWriter
	history    history
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
	_ gitprovider.Pinger       = (*Provider)(nil)
)

// maxTrees bounds the commits whose root tree is remembered.
const maxTrees = 512

// New makes a Provider. It sends no request.
func New(opts Options) *Provider {
	clock := transport.Clock{Now: opts.Now, Sleep: opts.Sleep}.WithDefaults()
	token := tokenVariable
	if opts.App != nil {
		token = "the GitHub App"
	}
	a := newAPI(opts, refusals{transport: opts.Client, token: token, isApp: opts.App != nil, now: clock.Now}, clock)
	facts, trees := newRepositoryFacts(), forge.NewLRU[string, string](maxTrees, nil)
	branches := branches{a, facts}
	files := changedFiles{a, forge.NewPaths()}
	pulls := pulls{a, files}
	labels := labels{api: a, facts: facts, create: opts.CreateLabels, now: clock.Now}
	examiner := examiner{a, labels, opts.App}
	return &Provider{
		branches: branches, pulls: pulls, labels: labels, history: history{a}, assigner: assigner{a, opts.App != nil},
		snapshots: snapshots{api: a, pulls: pulls, facts: facts, trees: trees, now: clock.Now},
		lists: pullLists{pulls: pulls, facts: facts, kept: forge.NewLRU[string](maxListings, weightOfListing),
			now: clock.Now},
		commits:    commitWriter{api: a, branches: branches, files: files, trees: trees},
		opener:     opener{a, pulls},
		status:     statusReader{pulls, clock.Sleep},
		discussion: discussion{pulls, writers{a, forge.NewLRU[string, writer](maxWriters, nil), clock.Now}},
		examiner:   examiner,
		issues:     issues{a, examiner},
	}
}

// Name returns "github".
func (p *Provider) Name() string { return Name }

// about notes which repository the requests made with the context are about. Whether a request may change something is
// noted where it is sent.
func about(ctx context.Context, repo gitprovider.RepoRef) context.Context {
	return transport.For(ctx, transport.Use{Owner: repo.Owner, Repo: repo.Name})
}

// publish makes of an error the one that the port promises.
func publish(err error) error {
	if err == nil {
		return nil
	}
	return fault.From(err)
}

// Snapshot implements gitprovider.Provider with one query. Further requests follow only for further pages of pull
// requests, for the files of those that were never seen before, and for contents that GraphQL cannot carry.
func (p *Provider) Snapshot(ctx context.Context, q gitprovider.SnapshotQuery) (*gitprovider.Snapshot, error) {
	snapshot, err := p.snapshots.readSnapshot(about(ctx, q.Repo), q)
	return snapshot, publish(err)
}

// Commit implements gitprovider.Provider. The branch is created at the snapshot's commit, and the commit is made on it
// under the condition that it is still there; the author is the token's user, and GitHub sets the time. Whatever stops
// this half-way, a base branch that has moved included, removes the branch again. Beside the codes of the port:
// repo_not_allowed if a rule forbids the branch, or the repository is archived.
func (p *Provider) Commit(ctx context.Context, req gitprovider.CommitRequest) (gitprovider.Commit, error) {
	if err := req.Check(); err != nil {
		return gitprovider.Commit{}, err
	}
	id, err := p.commits.commit(about(ctx, req.Snapshot.Repo), req)
	if err != nil {
		return gitprovider.Commit{}, publish(err)
	}
	return gitprovider.Commit{ID: id, Branch: req.Branch}, nil
}

// OpenPullRequest implements gitprovider.Provider. GitHub sets no labels at a creation: see Label. A draft is opened as
// ready for review where the repository has no drafts. Beside the codes of the port: repo_not_allowed for an archived
// repository, invalid_argument for what GitHub takes for malformed.
func (p *Provider) OpenPullRequest(ctx context.Context, spec gitprovider.PullRequestSpec) (gitprovider.PullRequest,
	error) {
	pr, err := p.opener.submitPull(about(ctx, spec.Repo), spec)
	return pr, publish(err)
}

// Label implements gitprovider.Provider. Unless Options.CreateLabels says so, labels that the repository lacks are not
// set: the others are, and the error, not_found, names the missing ones.
func (p *Provider) Label(ctx context.Context, repo gitprovider.RepoRef, number int, labels []string) error {
	if len(labels) == 0 {
		return nil
	}
	if err := forge.CheckNumber(repo, number); err != nil {
		return err
	}
	return publish(p.labels.set(about(ctx, repo), repo, number, labels))
}

// FindByHead implements gitprovider.Provider. A fork's branch of the same name is another branch.
func (p *Provider) FindByHead(ctx context.Context, repo gitprovider.RepoRef, branch string) (*gitprovider.PullRequest,
	error) {
	pr, err := p.pulls.byHead(about(ctx, repo), repo, branch)
	return pr, publish(err)
}

// BranchTip implements gitprovider.Provider.
func (p *Provider) BranchTip(ctx context.Context, repo gitprovider.RepoRef, branch string) (string, error) {
	tip, err := p.branches.Tip(about(ctx, repo), repo, branch)
	return tip, publish(err)
}

// DeleteBranch implements gitprovider.Provider, under the condition that the tip is still the given one. Beside the
// codes of the port: repo_not_allowed if a rule or the archive keeps the branch.
func (p *Provider) DeleteBranch(ctx context.Context, repo gitprovider.RepoRef, branch, tip string) error {
	return publish(forge.DeleteBranch(about(ctx, repo), p.branches, repo, branch, tip))
}

// ListOpen implements gitprovider.Provider: one request for each 100 pull requests with the label; see lists.firstPage
// for those without. A list that this process read before costs one, whatever its length, and one more for each 50
// heads that are new; see lists.changed.
func (p *Provider) ListOpen(ctx context.Context, repo gitprovider.RepoRef, label string) ([]gitprovider.PullRequest,
	error) {
	prs, err := p.lists.readOpenPulls(about(ctx, repo), repo, label)
	return prs, publish(err)
}

// Status implements gitprovider.Provider with one query, and further ones for further pages of reviews and checks.
// Whether a pull request can be merged is asked up to three times more within 2.4 s, then Mergeable stays nil.
func (p *Provider) Status(ctx context.Context, repo gitprovider.RepoRef, number int) (gitprovider.Status, error) {
	status, err := p.status.readStatus(about(ctx, repo), repo, number)
	if err != nil {
		return gitprovider.Status{}, publish(err)
	}
	return status, nil
}

// OurBranches implements gitprovider.Settler, with one query for each hundred branches.
func (p *Provider) OurBranches(ctx context.Context, repo gitprovider.RepoRef) (map[string]string, error) {
	tips, err := p.branches.ours(about(ctx, repo), repo)
	return tips, publish(err)
}

// OpenOurs implements gitprovider.Settler.
func (p *Provider) OpenOurs(ctx context.Context, repo gitprovider.RepoRef, below int) ([]gitprovider.PullRequest,
	error) {
	prs, err := p.pulls.openOurs(about(ctx, repo), repo, below)
	return prs, publish(err)
}

// ReadCommit implements gitprovider.Settler. One query reads the commit, and one for each level of folders compares it
// with its parent.
func (p *Provider) ReadCommit(ctx context.Context, repo gitprovider.RepoRef, id string) (gitprovider.CommitInfo,
	error) {
	info, err := p.history.readCommitInfo(about(ctx, repo), repo, id)
	return info, publish(err)
}

// ReadBlob implements gitprovider.BlobReader with one request.
func (p *Provider) ReadBlob(ctx context.Context, repo gitprovider.RepoRef, id string) ([]byte, error) {
	content, err := p.snapshots.blob(about(ctx, repo), repo, id)
	return content, publish(err)
}

// ListFiles implements gitprovider.FileLister with one request, which tells of at most 100,000 entries.
func (p *Provider) ListFiles(ctx context.Context, at *gitprovider.Snapshot, folder string) ([]gitprovider.ListedFile,
	bool, error) {
	files, complete, err := p.snapshots.listTree(about(ctx, at.Repo), at, folder)
	return files, complete, publish(err)
}

// Withdraw implements gitprovider.Settler: it looks, and then closes and writes the body in one request.
func (p *Provider) Withdraw(ctx context.Context, repo gitprovider.RepoRef, w gitprovider.Withdrawal) error {
	return publish(p.pulls.withdraw(about(ctx, repo), repo, w))
}

// Close implements gitprovider.Provider: it looks, and then closes and writes the body in one request.
func (p *Provider) Close(ctx context.Context, repo gitprovider.RepoRef, c gitprovider.Closing) (gitprovider.State,
	error) {
	state, err := p.pulls.close(about(ctx, repo), repo, c)
	return state, publish(err)
}

// Lateness implements gitprovider.Settler.
func (p *Provider) Lateness() time.Duration { return gitprovider.ForgeLateness }

// Assign implements gitprovider.Assigner: one request for the reviewers, one for the assignees, and further ones only
// to tell which name GitHub did not take. not_found names them all.
func (p *Provider) Assign(ctx context.Context, repo gitprovider.RepoRef, number int,
	reviewers, assignees []string) error {
	if err := forge.CheckNumber(repo, number); err != nil {
		return err
	}
	return publish(p.assigner.assign(about(ctx, repo), repo, number, reviewers, assignees))
}

// Details implements gitprovider.Editor with one query. A team that the token may not see is left out.
func (p *Provider) Details(ctx context.Context, repo gitprovider.RepoRef, number int) (gitprovider.Details, error) {
	details, err := p.discussion.details(about(ctx, repo), repo, number)
	return details, publish(err)
}

// Append implements gitprovider.Reviser: one mutation, under the condition that the branch is where it was read. An
// executable file keeps its mode, which takes four requests.
func (p *Provider) Append(ctx context.Context, req gitprovider.CommitRequest) (gitprovider.Commit, error) {
	if err := req.CheckAppend(); err != nil {
		return gitprovider.Commit{}, err
	}
	id, err := p.commits.append(about(ctx, req.Snapshot.Repo), req)
	if err != nil {
		return gitprovider.Commit{}, publish(err)
	}
	return gitprovider.Commit{ID: id, Branch: req.Branch, Parent: req.Snapshot.BaseCommit}, nil
}

// SetText implements gitprovider.Editor.
func (p *Provider) SetText(ctx context.Context, repo gitprovider.RepoRef, number int,
	title, body string) (gitprovider.State, error) {
	ctx = transport.Repeatable(about(ctx, repo))
	state, err := p.pulls.api.changePull(ctx, repo, number, forge.TextFields(title, body))
	return state, publish(err)
}

// Comment implements gitprovider.Reviser.
func (p *Provider) Comment(ctx context.Context, repo gitprovider.RepoRef, number int, text string) error {
	return publish(p.discussion.postComment(about(ctx, repo), repo, number, text))
}

// Checks implements gitprovider.CheckReader with one query, and one for each further 100 contexts.
func (p *Provider) Checks(ctx context.Context, repo gitprovider.RepoRef, number int, head string) (gitprovider.Checks,
	error) {
	checks, err := p.status.checksOf(about(ctx, repo), repo, number, head)
	return checks, publish(err)
}

// Reply implements gitprovider.Replier with a request for each.
func (p *Provider) Reply(ctx context.Context, repo gitprovider.RepoRef, number int,
	replies []gitprovider.LineReply) error {
	return publish(p.discussion.postReplies(about(ctx, repo), repo, number, replies))
}

// Remarks implements gitprovider.RemarkReader with one query over the newest 50 comments, as many reviews, and the last
// opinion of each reviewer who may write. It needs one more request for each other author who is not cached from the
// last ten minutes, for at most ten authors.
func (p *Provider) Remarks(ctx context.Context, repo gitprovider.RepoRef, number int) ([]gitprovider.Remark, error) {
	remarks, err := p.discussion.remarks(about(ctx, repo), repo, number)
	return remarks, publish(err)
}

// Examine implements gitprovider.Examiner with three requests side by side (who the token is, what GitHub lets it do
// in the repository, whether there are workflows) and two for the rulesets of the base branch and of ours; for a token
// that names no scopes two more, see examiner.lacking.
func (p *Provider) Examine(ctx context.Context, repo gitprovider.RepoRef, base string,
	labels []string) (gitprovider.Access,
	error) {
	access, err := p.examiner.examine(about(ctx, repo), repo, base, labels)
	return access, publish(err)
}

// Ping implements gitprovider.Pinger; see examiner.ping.
func (p *Provider) Ping(ctx context.Context) error { return publish(p.examiner.ping(ctx)) }
