package gitea

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
)

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
	return read.after(ctx, first)
}

// after reads the remaining pages after the first one.
func (read pageReader[T]) after(ctx context.Context, first page[T]) (items []T, settled bool, err error) {
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
