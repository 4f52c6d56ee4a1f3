package dashboard

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/policy"
	"github.com/claudeops/claudeops/internal/prflow"
	"github.com/claudeops/claudeops/internal/record"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/records"
)

// pullList shows the open pull requests of all repositories that we know.
type pullList struct {
	*renderer
	reader  Reader
	summary records.Summary
	policy  func() (policy.Policy, error)
	turn    *handler.Turns // of reading
	memo    pullsMemo
}

// Bounds of what the listing of open pull requests asks providers for.
const (
	pullsTimeout = 10 * time.Second // all repositories together
	pullsAtOnce  = 4
	maxPullRepos = 30
	maxPullRows  = 100 // of one repository
	maxStatuses  = 30  // whose checks and reviews are read, the newest
	pullsAge     = 15 * time.Second
)

// pullsRead is what one reading has found.
type pullsRead struct {
	number   int // of the reading
	at       time.Time
	position string // of the record, before it began
	repos    []pages.RepoPulls
	more     int // repositories left out
	open     int // pull requests
	failed   int // repositories that could not be read
}

// pullsMemo is the last reading. Readings go one by one.
type pullsMemo struct {
	mu    sync.Mutex
	begun int
	last  pullsRead // number 0: none yet
}

// seen is the last reading and how many have begun.
func (m *pullsMemo) seen() (last pullsRead, begun int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last, m.begun
}

// pullsPage shows the open pull requests of every repository that we know. One that fails says so; the others are shown.
func (h *pullList) show(req *handler.Request) (handler.Response, error) {
	read, err := h.readPulls(req)
	if err != nil {
		return handler.Response{}, err
	}
	return h.html("pulls", pages.Pulls{
		Page: h.frame(req, "Pull requests", "/pulls"), Repos: read.repos, More: read.more, At: pages.WhenOf(read.at, h.env.Now()),
	})
}

// readPulls reads them now, or shares a reading: one that began after the request came, and for a page that refreshes itself
// one that is of the same record and not old, so that many pages cost the providers no more than one does.
func (h *pullList) readPulls(req *handler.Request) (pullsRead, error) {
	_, begun := h.memo.seen()
	waiting, cancel := context.WithTimeout(req.Context(), pullsTimeout)
	defer cancel()
	done, err := h.turn.Wait(waiting)
	if err != nil {
		return pullsRead{}, err
	}
	defer done()
	last, _ := h.memo.seen()
	record, _, _ := strings.Cut(req.Position, ",") // the topic of the audit is the first one
	fresh := last.number > 0 && h.env.Now().Sub(last.at) < pullsAge && last.position == record
	if last.number > begun || fresh && req.Header.Get("HX-Request") != "" {
		return last, nil
	}
	h.memo.mu.Lock()
	h.memo.begun++
	read := pullsRead{number: h.memo.begun, at: h.env.Now(), position: record}
	h.memo.mu.Unlock()
	if err := h.askProviders(context.WithoutCancel(req.Context()), &read); err != nil {
		return pullsRead{}, err
	}
	h.memo.mu.Lock()
	defer h.memo.mu.Unlock()
	h.memo.last = read
	return read, nil
}

// askProviders reads every repository, and then the checks and reviews of the newest pull requests.
func (h *pullList) askProviders(ctx context.Context, read *pullsRead) error {
	repos, err := h.knownRepositories(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pullsTimeout)
	defer cancel()
	read.more = max(0, len(repos)-maxPullRepos)
	repos = repos[:min(len(repos), maxPullRepos)]
	read.repos = make([]pages.RepoPulls, len(repos))
	rows := make([][]openPull, len(repos))
	h.sideBySide(len(repos), func(i int) { read.repos[i], rows[i] = h.repoPulls(ctx, repos[i]) })
	newest := slices.Concat(rows...)
	slices.SortStableFunc(newest, func(a, b openPull) int { return b.pr.CreatedAt.Compare(a.pr.CreatedAt) })
	newest = newest[:min(len(newest), maxStatuses)]
	h.sideBySide(len(newest), func(i int) { h.askStatus(ctx, newest[i]) })
	for _, r := range read.repos {
		read.open += len(r.Pulls) + r.More
		if r.Failed != "" {
			read.failed++
		}
	}
	return nil
}

// sideBySide does n things, a few at a time. What fails is part of the page.
func (h *pullList) sideBySide(n int, do func(i int)) {
	var group errgroup.Group
	group.SetLimit(pullsAtOnce)
	for i := range n {
		group.Go(func() error {
			do(i)
			return nil
		})
	}
	_ = group.Wait()
}

// knownRepositories are those of the record and those that the allowlists name one by one.
func (h *pullList) knownRepositories(ctx context.Context) ([]record.RepoName, error) {
	repos, err := h.summary.Repositories(ctx)
	if err != nil {
		return nil, err
	}
	rules, err := h.policy()
	if err != nil {
		rules = policy.Policy{} // only what is recorded
	}
	return prflow.KnownRepositories(repos, rules, h.reader.ProviderOf), nil
}

// openPull is a row of the page with what it is made of.
type openPull struct {
	repo record.RepoName
	pr   gitprovider.PullRequest
	row  *pages.PullRow
}

func (h *pullList) repoPulls(ctx context.Context, repo record.RepoName) (out pages.RepoPulls, open []openPull) {
	out.Name = h.env.Line(repo.String())
	prs, err := h.reader.ListAt(ctx, repo.Provider, repo.Owner, repo.Name)
	if err != nil {
		e := fault.From(err)
		out.Code, out.Failed = string(e.Code), h.env.Message(e.Message)
		return out, nil
	}
	for i, pr := range prs {
		if i == maxPullRows {
			out.More = len(prs) - i
			break
		}
		p := pullOf(repo.Provider, repo.Owner, repo.Name, pr.Number, pr.URL)
		if p == nil {
			continue
		}
		row := &pages.PullRow{
			Pull: *p, Title: h.env.Line(pr.Title), Branch: h.env.Line(pr.Branch), At: pages.WhenOf(pr.CreatedAt, h.env.Now()),
			Files: pages.ListOf(pr.Paths, h.env.Line),
		}
		out.Pulls = append(out.Pulls, row)
		open = append(open, openPull{repo, pr, row})
	}
	return out, open
}

// askStatus reads the checks and reviews of a row.
func (h *pullList) askStatus(ctx context.Context, p openPull) {
	status, err := h.reader.StatusAt(ctx, p.repo.Provider, p.repo.Owner, p.repo.Name, p.pr.Number)
	if err != nil {
		p.row.Failed = string(fault.CodeOf(err))
		return
	}
	p.row.Asked, p.row.Checks = true, string(status.Checks.State)
	p.row.Approvals, p.row.Objections = gitprovider.Opinions(status.Reviews)
}
