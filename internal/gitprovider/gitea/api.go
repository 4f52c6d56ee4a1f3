package gitea

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// api makes the requests, by the SDK or plainly, and says what their refusals mean; see toFault.
type api struct {
	base *url.URL
	http *transport.Transport
}

// exchange is one request with its answer. It keeps the answer, because the SDK gives neither the headers nor the body
// of an error, and because every call, the SDK's or a plain one, shall be judged by the same rules.
type exchange struct {
	next   http.RoundTripper
	answer *http.Response // nil when the last request got none
	body   []byte         // of answer
}

// RoundTrip implements http.RoundTripper. The transport below has bounded and read the body already.
func (e *exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	e.answer, e.body = nil, nil
	resp, err := e.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	e.answer, e.body = resp, body
	return resp, nil
}

// outcome classifies an exchange that ended with err: nil, a *fault.Error without a usable answer, or a *refusal.
func (a *api) outcome(e *exchange, err error) error {
	switch {
	case e.answer != nil && e.answer.StatusCode >= http.StatusMultipleChoices:
		return newRefusal(e.answer, e.body)
	case err == nil:
		return nil
	case e.answer == nil:
		return a.http.Failure(err)
	default:
		return forge.NotItsAPI(err, a.base.Host, urlVariable)
	}
}

// callSDK makes one SDK call. An SDK client holds one context, so each call has a client of its own, which costs
// nothing: the connections belong to the transport. The version is set to "unknown", so that the SDK does not ask for
// it.
func callSDK[T any](ctx context.Context, a *api, do func(*gitea.Client) (T, *gitea.Response, error)) (T, error) {
	value, _, err := callWithHeader(ctx, a, do)
	return value, err
}

func callWithHeader[T any](ctx context.Context, a *api, do func(*gitea.Client) (T, *gitea.Response, error)) (T,
	http.Header,
	error) {
	var none T
	e := &exchange{next: a.http}
	sdk, err := gitea.NewClient(strings.TrimSuffix(a.base.String(), "/"),
		gitea.SetHTTPClient(a.http.ClientOver(e)), gitea.SetContext(ctx), gitea.SetGiteaVersion(""))
	if err != nil {
		return none, nil, forge.NotBuilt(err)
	}
	value, _, err := do(sdk)
	if err := a.outcome(e, err); err != nil {
		return none, nil, err
	}
	return value, e.answer.Header, nil
}

// endpoint returns the address of an API route; each segment is escaped.
func (a *api) endpoint(segments ...string) *url.URL {
	return transport.URL(a.base, append([]string{"api", "v1"}, segments...)...)
}

// repoURL returns the address of a route of a repository.
func (a *api) repoURL(repo gitprovider.RepoRef, segments ...string) *url.URL {
	return a.endpoint(append([]string{"repos", repo.Owner, repo.Name}, segments...)...)
}

// get reads a route that the SDK lacks or gets wrong.
func (a *api) get(ctx context.Context, at *url.URL, query url.Values, into any) (http.Header, error) {
	at.RawQuery = query.Encode()
	return a.send(ctx, http.MethodGet, at, nil, into)
}

// post sends body as JSON to a route that the SDK lacks or gets wrong.
func (a *api) post(ctx context.Context, at *url.URL, body, into any) error {
	_, err := a.send(ctx, http.MethodPost, at, body, into)
	return err
}

// patch changes the fields named and no others, which the SDK cannot.
func (a *api) patch(ctx context.Context, at *url.URL, fields, into any) error {
	_, err := a.send(ctx, http.MethodPatch, at, fields, into)
	return err
}

func (a *api) send(ctx context.Context, method string, at *url.URL, body, into any) (http.Header, error) {
	var encoded []byte
	if body != nil {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			return nil, forge.NotBuilt(err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(encoded))
	if err != nil {
		return nil, forge.NotBuilt(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	e := &exchange{next: a.http}
	resp, err := a.http.ClientOver(e).Do(req)
	if err == nil {
		defer resp.Body.Close()
		if resp.StatusCode < http.StatusMultipleChoices && into != nil {
			err = json.Unmarshal(e.body, into)
		}
	}
	if err := a.outcome(e, err); err != nil {
		return nil, err
	}
	return e.answer.Header, nil
}

// wrongAnswer is the error for an answer about something else than was requested.
func (a *api) wrongAnswer(what string, repo gitprovider.RepoRef) error {
	return fault.New(fault.UpstreamError, "%s gave something else for %s of %s", a.base.Host, what, repo)
}

const (
	// pageSize is the requested size of a page: the largest that a server gives unless it is configured otherwise
	// (MAX_RESPONSE_ITEMS). A server that is configured to give less does so silently, so the size of a page is the number
	// of its items.
	pageSize = 50
	// maxPages bounds how far a list is followed: 50,000 entries of the usual size. No list that this program reads is
	// that long, and a server that counts wrongly must not keep it busy for ever.
	maxPages = 1000
)

// page is one page of a list.
type page[T any] struct {
	items []T
	total int       // entries of the whole list; -1 when the server does not say
	date  time.Time // of the answer, by the server's clock; zero when the server does not say
}

// pageReader reads one page of a list, 1 being the first.
type pageReader[T any] func(ctx context.Context, number int) (page[T], error)

// pagesOf reads a list by the SDK.
func pagesOf[T any](a *api, do func(*gitea.Client, gitea.ListOptions) ([]*T, *gitea.Response, error)) pageReader[*T] {
	return func(ctx context.Context, number int) (page[*T], error) {
		items, header, err := callWithHeader(ctx, a, func(c *gitea.Client) ([]*T, *gitea.Response, error) {
			return do(c, gitea.ListOptions{Page: number, PageSize: pageSize})
		})
		date, _ := http.ParseTime(header.Get("Date"))
		return page[*T]{items: withoutNulls(items), total: totalOf(header), date: date}, err
	}
}

// atPage returns the query for one page of a list.
func atPage(number int) url.Values {
	return url.Values{"page": {strconv.Itoa(number)}, "limit": {strconv.Itoa(pageSize)}}
}

// totalOf reads X-Total-Count; -1 when the server does not say.
func totalOf(h http.Header) int {
	n, err := strconv.Atoi(h.Get("X-Total-Count"))
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// all reads a list to its end: the first page alone, the others side by side. settled is false when the list changed
// while it was read, so that entries may be missing or doubled.
func (read pageReader[T]) all(ctx context.Context) (items []T, settled bool, err error) {
	first, err := read(ctx, 1)
	if err != nil {
		return nil, false, err
	}
	return read.remainingPages(ctx, first)
}

// remainingPages reads the remaining pages after the first one.
func (read pageReader[T]) remainingPages(ctx context.Context, first page[T]) (items []T, settled bool, err error) {
	if first.total < 0 {
		items, err = read.untilEmpty(ctx, first.items)
		return items, true, err
	}
	per := len(first.items)
	if per == 0 {
		per = pageSize // all of the page is hidden from us; later pages may not be
	}
	count := (first.total + per - 1) / per
	if count > maxPages {
		return nil, false, tooLong()
	}
	pages := make([]page[T], max(count, 1))
	pages[0] = first
	err = forge.Each(ctx, pages[1:], func(ctx context.Context, i int, _ page[T]) (err error) {
		pages[i+1], err = read(ctx, i+2)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	settled = true
	for _, p := range pages {
		items = append(items, p.items...)
		settled = settled && p.total == first.total
	}
	return items, settled && len(items) == first.total, nil
}

func (read pageReader[T]) untilEmpty(ctx context.Context, items []T) ([]T, error) {
	items = slices.Clone(items)
	for number := 2; len(items) > 0; number++ {
		if number > maxPages {
			return nil, tooLong()
		}
		next, err := read(ctx, number)
		if err != nil {
			return nil, err
		}
		if len(next.items) == 0 {
			break
		}
		items = append(items, next.items...)
	}
	return items, nil
}

// withoutNulls removes the meaningless nulls that a server may send in a list.
func withoutNulls[T any](items []*T) []*T {
	return slices.DeleteFunc(items, func(item *T) bool { return item == nil })
}

func tooLong() error {
	return fault.New(fault.UpstreamError, "the server's list has no end within %d pages; the server may be at fault",
		maxPages)
}
