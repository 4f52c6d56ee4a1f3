package dashboard

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/web/httpx"
	"github.com/claudeops/claudeops/internal/web/pages"
	"github.com/claudeops/claudeops/internal/web/views"
)

// pullList shows the open pull requests of all repositories that we know.
type pullList struct {
	*renderer
	reader  Reader
	summary views.Summary
	policy  func() (policy.Policy, error)
	turn    *httpx.Turns // of reading
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

// pullsRead is the result of one reading.
type pullsRead struct {
	number   int    // of the reading
	position string // of the record, before it began
	At       time.Time
	Repos    []*repoPulls
	More     int // repositories left out
	Open     int // pull requests
	Failed   int // repositories that could not be read
}

// repoPulls are the open pull requests of one repository, or why they cannot be read.
type repoPulls struct {
	Repo   record.RepoName
	Failed *fault.Error
	Pulls  []*openPull
	More   int // left out
}

// openPull is one open pull request.
type openPull struct {
	gitprovider.PullRequest
	Page string // address of our page, without the base; "" if there is none

	Asked                 bool       // what follows was asked for, and answered
	Failed                fault.Code // why it was not answered
	Checks                gitprovider.ChecksState
	Approvals, Objections int // reviewers who approve, and who ask for changes
}

// pullsMemo is the last reading. Readings go one by one.
type pullsMemo struct {
	mu    sync.Mutex
	begun int
	last  pullsRead // number 0: none yet
}

// seen returns the last reading and how many have begun.
func (m *pullsMemo) seen() (last pullsRead, begun int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last, m.begun
}

// showPulls shows the open pull requests of every repository that we know. One that fails says so; the others are
// shown.
func (h *pullList) showPulls(req *httpx.Request) (httpx.Response, error) {
	read, err := h.readPulls(req)
	if err != nil {
		return httpx.Response{}, err
	}
	return h.html("pulls", struct {
		pages.Page
		pullsRead
	}{h.frame(req, "As the forges say", changesPath), read})
}

// readPulls reads them now, or shares a reading: one that began after the request came, and for a page that refreshes
// itself one that is of the same record and not old, so that many pages cost the providers no more than one does.
func (h *pullList) readPulls(req *httpx.Request) (pullsRead, error) {
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
	fresh := last.number > 0 && h.env.Now().Sub(last.At) < pullsAge && last.position == record
	if last.number > begun || fresh && req.Header.Get("HX-Request") != "" {
		return last, nil
	}
	h.memo.mu.Lock()
	h.memo.begun++
	read := pullsRead{number: h.memo.begun, At: h.env.Now(), position: record}
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
	read.More = max(0, len(repos)-maxPullRepos)
	repos = repos[:min(len(repos), maxPullRepos)]
	read.Repos = make([]*repoPulls, len(repos))
	sideBySide(len(repos), func(i int) { read.Repos[i] = h.loadRepoPulls(ctx, repos[i]) })
	type row struct {
		repo record.RepoName
		pull *openPull
	}
	var newest []row
	for _, r := range read.Repos {
		read.Open += len(r.Pulls) + r.More
		if r.Failed != nil {
			read.Failed++
		}
		for _, p := range r.Pulls {
			newest = append(newest, row{r.Repo, p})
		}
	}
	slices.SortStableFunc(newest, func(a, b row) int { return b.pull.CreatedAt.Compare(a.pull.CreatedAt) })
	newest = newest[:min(len(newest), maxStatuses)]
	sideBySide(len(newest), func(i int) { h.askStatus(ctx, newest[i].repo, newest[i].pull) })
	return nil
}

// sideBySide does n things, a few at a time. What fails is part of the page.
func sideBySide(n int, do func(i int)) {
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

// knownRepositories returns the repositories of the record and those that the allowlists name one by one.
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

func (h *pullList) loadRepoPulls(ctx context.Context, repo record.RepoName) *repoPulls {
	out := &repoPulls{Repo: repo}
	prs, err := h.reader.ListAt(ctx, repo.Provider, repo.Owner, repo.Name)
	if err != nil {
		out.Failed = fault.From(err)
		return out
	}
	for i, pr := range prs {
		if i == maxPullRows {
			out.More = len(prs) - i
			break
		}
		key := record.PullKey{Provider: repo.Provider, Owner: repo.Owner, Repo: repo.Name, Number: pr.Number}
		if link := pullLinkOf(key, "", ""); link != nil {
			out.Pulls = append(out.Pulls, &openPull{PullRequest: pr, Page: link.Page})
		}
	}
	return out
}

// askStatus reads the checks and reviews of a pull request.
func (h *pullList) askStatus(ctx context.Context, repo record.RepoName, p *openPull) {
	status, err := h.reader.StatusAt(ctx, repo.Provider, repo.Owner, repo.Name, p.Number)
	if err != nil {
		p.Failed = fault.CodeOf(err)
		return
	}
	p.Asked, p.Checks = true, status.Checks.State
	p.Approvals, p.Objections = gitprovider.Opinions(status.Reviews)
}
