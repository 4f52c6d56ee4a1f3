package prflow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// ListRequest asks for the open pull requests of a repository, a page at a time.
type ListRequest struct {
	RepoOwner string `json:"repo_owner" required:"true" doc:"Repository owner"`
	RepoName  string `json:"repo_name" required:"true" doc:"Repository name"`
	CloneURL  string `json:"clone_url,omitempty" doc:"Settles the provider"`
	Limit     int    `json:"limit,omitempty" minimum:"1" maximum:"100" doc:"Page size"`
	After     int    `json:"after,omitempty" minimum:"1" doc:"next of the page before"`
	State     string `json:"state_of_review,omitempty" enum:"none,approved,changes_requested" doc:"Only ours" fix:"leave it out for all"`
}

// ListResult is the answer to a ListRequest (design §4).
type ListResult struct {
	PRs       []PRSummary `json:"prs" brief:"true"`
	Total     int         `json:"total" brief:"true" doc:"Open ones in all, whatever the filter"`
	Next      int         `json:"next,omitempty" brief:"true" doc:"What after is for the next page; left out on the last"`
	Untrusted string      `json:"untrusted"`
	Warnings  []string    `json:"warnings,omitempty"` // which of them lack the label
}

// PRSummary is one open pull request.
type PRSummary struct {
	Number    int      `json:"number"`
	Title     string   `json:"title"`
	URL       string   `json:"url"`
	Branch    string   `json:"branch"`
	CreatedAt string   `json:"created_at"` // RFC 3339, UTC
	Files     []string `json:"files"`
	Ours      bool     `json:"ours,omitempty" brief:"true" doc:"Has our mark: create_pr may revise it after a review"`
	State     string   `json:"state_of_review,omitempty" doc:"Of ours: none, approved or changes_requested, by those who may write"`
}

// Bounds of a page.
const (
	maxListBytes = 4096 // of JSON, without a limit
	maxListRead  = gitprovider.MaxReviewStates
	maxListAsks  = 40 // requests about single pull requests: their files, and their reviews where each costs one
	// listFrame is the number of bytes reserved in a page beside its entries: names of members, the note about untrusted
	// text, the numbers.
	listFrame = 256
)

// readTimeout bounds one list, whatever it costs: what a read of a provider may take.
const readTimeout = 30 * time.Second

// reviewNone is the state of our pull requests that have neither an approval nor a request for changes.
const reviewNone = "none"

// listOpenPage returns a page of the open pull requests that carry the label claude-ops, and of those that lack it and
// have our mark, oldest first. Every tier may ask for it. A filtered page looks at up to maxListRead pull requests, and
// may have fewer entries than there are: as long as Next is set, there may be more.
func (s *Service) listOpenPage(ctx context.Context, req ListRequest) (ListResult, error) {
	reader := s.Reader()
	resolution, err := reader.findRepository(req.RepoOwner, req.RepoName, req.CloneURL, s.Registry.Resolve)
	if err != nil {
		return ListResult{}, err
	}
	known, err := keptOf(ctx).list(resolution, func() (gitprovider.KnownList, error) {
		return reader.listKnown(ctx, resolution)
	})
	if err != nil {
		return ListResult{}, err
	}
	marks, err := reader.marks(resolution.Provider.Name(), resolution.Repo)
	if err != nil {
		return ListResult{}, err
	}
	page := listPage{Reader: reader, at: resolution, marks: marks, req: req, known: known}
	return page.build(ctx, known.PRs)
}

// keptList is what the first page of a listing has read, for the pages after it.
type keptList struct {
	of    string // provider and repository; "" before the first page
	known gitprovider.KnownList
}

type keptListKey struct{}

// OneListing returns a context whose calls of list_prs are the pages of one listing, one call after the other: the
// first reads the open pull requests, and the others go on in what it has read.
func OneListing(ctx context.Context) context.Context {
	return context.WithValue(ctx, keptListKey{}, &keptList{})
}

// keptOf returns what the listing under way has read; nil for a page that stands alone.
func keptOf(ctx context.Context) *keptList {
	kept, _ := ctx.Value(keptListKey{}).(*keptList)
	return kept
}

// list returns the open pull requests of a repository, read once for a listing.
func (k *keptList) list(at gitprovider.Resolution, read func() (gitprovider.KnownList, error)) (
	gitprovider.KnownList, error) {
	of := at.Provider.Name() + " " + at.Repo.String()
	if k != nil && k.of == of {
		return k.known, nil
	}
	known, err := read()
	if k != nil && err == nil {
		k.of, k.known = of, known
	}
	return known, err
}

// listPage makes a page of a list.
type listPage struct {
	Reader
	at    gitprovider.Resolution
	marks markReader
	req   ListRequest
	known gitprovider.KnownList
	size  int // bytes of the entries so far
}

func (p *listPage) build(ctx context.Context, prs []gitprovider.PullRequest) (ListResult, error) {
	out := ListResult{PRs: []PRSummary{}, Total: len(prs), Untrusted: untrustedList}
	slices.SortFunc(prs, func(a, b gitprovider.PullRequest) int { return a.Number - b.Number })
	rest := slices.DeleteFunc(slices.Clone(prs), func(pr gitprovider.PullRequest) bool { return pr.Number <= p.req.After })
	chosen, looked := p.selectPulls(rest)
	chosen, looked, err := p.withPaths(ctx, chosen, looked)
	if err != nil {
		return out, err
	}
	states, err := p.states(ctx, chosen)
	if err != nil {
		if p.req.State != "" {
			return out, err
		}
		p.log.warn("not seen how the reviews stand", err)
		out.Warnings = append(out.Warnings, "how the reviews stand could not be read: "+p.log.redactedMessage(err))
	}
	last := p.req.After
	for _, pr := range chosen {
		entry := p.summarize(pr, states)
		if !p.fits(entry, len(out.PRs)) {
			looked = false
			break
		}
		last = pr.Number
		if p.req.State != "" && entry.State != p.req.State {
			continue
		}
		p.size += entrySize(entry)
		out.PRs = append(out.PRs, entry)
		if !isLabelled(pr) {
			out.Warnings = append(out.Warnings, fmt.Sprintf("#%d lacks the label %s and was found by the mark in its body; "+
				"the same create_pr again puts the label back, if the repository has it", pr.Number, gitprovider.LabelOurs))
		}
	}
	if !looked && last > 0 {
		out.Next = last
	}
	return out, nil
}

// selectPulls returns the pull requests for a page, and whether they are all of the rest. With a filter it returns the
// candidates to look at.
func (p *listPage) selectPulls(rest []gitprovider.PullRequest) (chosen []gitprovider.PullRequest, all bool) {
	if p.req.State != "" { // of ours alone anything is known
		rest = slices.DeleteFunc(rest, func(pr gitprovider.PullRequest) bool { return !p.isOurs(pr) })
		most := min(len(rest), maxListRead)
		return rest[:most], most == len(rest)
	}
	size := 0
	for i, pr := range rest {
		if p.req.Limit > 0 && i == p.req.Limit {
			return rest[:i], false
		}
		// The state is not known yet; the longest takes the room.
		size += entrySize(p.summarize(pr, map[int]gitprovider.ReviewState{pr.Number: gitprovider.ReviewChangesRequested}))
		if p.req.Limit == 0 && i > 0 && size > maxListBytes-listFrame {
			return rest[:i], false
		}
	}
	return rest, true
}

// withPaths reads the files of those that were chosen, if they are not known. The page ends where more than maxListAsks
// requests would be needed. What was read is remembered.
func (p *listPage) withPaths(ctx context.Context, chosen []gitprovider.PullRequest,
	all bool) ([]gitprovider.PullRequest, bool, error) {
	var unread []int
	asks := 0
	for i, pr := range chosen {
		isUnread := slices.Contains(p.known.Unread, pr.Number)
		if isUnread {
			asks++
		}
		if p.known.EachReview && !pr.Unreviewed && p.isOurs(pr) {
			asks++
		}
		if asks > maxListAsks {
			chosen, all = chosen[:i], false
			break
		}
		if isUnread {
			unread = append(unread, pr.Number)
		}
	}
	if len(unread) == 0 {
		return chosen, all, nil
	}
	paths, err := p.known.ReadPaths(ctx, unread)
	chosen = slices.Clone(chosen)
	for i, pr := range chosen {
		if read, done := paths[pr.Number]; done {
			chosen[i].Paths = read
		}
	}
	return chosen, all, err
}

// fits reports whether a page with n entries has room for another one.
func (p *listPage) fits(entry PRSummary, n int) bool {
	if p.req.Limit > 0 {
		return n < p.req.Limit
	}
	return n == 0 || p.size+entrySize(entry) <= maxListBytes-listFrame
}

func (p *listPage) isOurs(pr gitprovider.PullRequest) bool {
	_, ours := p.marks.firstSigned(pr)
	return ours
}

// states reads how the reviews of those that are ours stand.
func (p *listPage) states(ctx context.Context, prs []gitprovider.PullRequest) (map[int]gitprovider.ReviewState, error) {
	states := map[int]gitprovider.ReviewState{}
	var numbers []int
	for _, pr := range prs {
		switch {
		case !p.isOurs(pr):
		case pr.Unreviewed:
			states[pr.Number] = ""
		default:
			numbers = append(numbers, pr.Number)
		}
	}
	lister, can := p.at.Provider.(gitprovider.ReviewLister)
	if !can && len(numbers) > 0 {
		return nil, fault.New(fault.ProviderDisabled, "the provider %s does not tell", p.at.Provider.Name())
	}
	for some := range slices.Chunk(numbers, gitprovider.MaxReviewStates) {
		of, err := lister.ReviewStates(ctx, p.at.Repo, some)
		if err != nil {
			return nil, err
		}
		for _, number := range some {
			states[number] = of[number]
		}
	}
	return states, nil
}

// summarize returns a pull request as the page has it. states has those whose state was read.
func (p *listPage) summarize(pr gitprovider.PullRequest, states map[int]gitprovider.ReviewState) PRSummary {
	out := PRSummary{
		Ours:   p.isOurs(pr),
		Number: pr.Number, Title: clean(pr.Title, maxTitle), URL: pr.URL, Branch: clean(pr.Branch, maxTitle),
		CreatedAt: timestamp(pr.CreatedAt), Files: cleanAll(pr.Paths, gitprovider.MaxPathBytes),
	}
	if state, read := states[pr.Number]; read && out.Ours {
		out.State = string(state)
		if state == "" {
			out.State = reviewNone
		}
	}
	return out
}

// entrySize returns the room of an entry in the answer, with the comma after it.
func entrySize(entry PRSummary) int {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(entry); err != nil {
		return maxListBytes
	}
	return b.Len()
}
