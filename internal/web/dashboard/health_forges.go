package dashboard

import (
	"context"
	"net/url"
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
	"github.com/claudeops/claudeops/internal/web/views"
)

// healthPages shows the server's health and, if asked, what the forges have of the repositories that we know.
type healthPages struct {
	*renderer
	reader  Reader
	summary views.Summary
	records views.Pulls
	policy  func() (policy.Policy, error)
	turn    *httpx.Turns // of reading
	memo    pullsMemo
}

// Bounds of what the listing of open pull requests asks providers for.
const (
	pullsTimeout = 10 * time.Second // all repositories together
	pullsAtOnce  = 4
	maxPullRepos = 30
	maxStrangers = 100 // pull requests of one repository that the records lack
	pullsAge     = 15 * time.Second
)

// pullsRead is the result of one reading.
type pullsRead struct {
	number   int    // of the reading
	position string // of the record, before it began
	At       time.Time
	Repos    []*repoPulls
	More     int // repositories left out
}

// repoPulls counts the open pull requests of one repository, or says why they cannot be read.
type repoPulls struct {
	Repo      record.RepoName
	Failed    *fault.Error
	Open      int
	Strangers []openPull // open there, and not in these records
	More      int        // strangers left out
}

// openPull is one open pull request.
type openPull struct {
	gitprovider.PullRequest
	Page string // address of our page, without the base
}

// Waiting returns the address of the repository's changes that wait, without the base.
func (r repoPulls) Waiting() string {
	return changesPath + "?" + url.Values{"tab": {"waiting"}, "repo": {r.Repo.Owner + "/" + r.Repo.Name}}.Encode()
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

// readPulls reads them now, or shares a reading: one that began after the request came, and for a page that refreshes
// itself one that is of the same record and not old, so that many pages cost the providers no more than one does.
func (h *healthPages) readPulls(req *httpx.Request) (pullsRead, error) {
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

// askProviders reads every repository.
func (h *healthPages) askProviders(ctx context.Context, read *pullsRead) error {
	repos, err := h.knownRepositories(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pullsTimeout)
	defer cancel()
	read.More = max(0, len(repos)-maxPullRepos)
	repos = repos[:min(len(repos), maxPullRepos)]
	read.Repos = make([]*repoPulls, len(repos))
	var group errgroup.Group
	group.SetLimit(pullsAtOnce)
	for i, repo := range repos {
		group.Go(func() (err error) {
			read.Repos[i], err = h.loadRepoPulls(ctx, repo)
			return err
		})
	}
	return group.Wait()
}

// knownRepositories returns the repositories of the record and those that the allowlists name one by one.
func (h *healthPages) knownRepositories(ctx context.Context) ([]record.RepoName, error) {
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

// loadRepoPulls asks for the pull requests of one repository. The error is that of the records.
func (h *healthPages) loadRepoPulls(ctx context.Context, repo record.RepoName) (*repoPulls, error) {
	out := &repoPulls{Repo: repo}
	prs, err := h.reader.ListAt(ctx, repo.Provider, repo.Owner, repo.Name)
	if err != nil {
		out.Failed = fault.From(err)
		return out, nil
	}
	out.Open = len(prs)
	keys := make([]record.PullKey, len(prs))
	for i, pr := range prs {
		keys[i] = record.PullKey{Provider: repo.Provider, Owner: repo.Owner, Repo: repo.Name, Number: pr.Number}
	}
	known, err := h.records.PullRecords(ctx, keys)
	if err != nil {
		return nil, err
	}
	for i, pr := range prs {
		link := pullLinkOf(keys[i], "", "")
		if _, is := known[keys[i]]; is || link == nil || link.Page == "" {
			continue
		}
		if len(out.Strangers) == maxStrangers {
			out.More++
			continue
		}
		out.Strangers = append(out.Strangers, openPull{pr, link.Page})
	}
	return out, nil
}
