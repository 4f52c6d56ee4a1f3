package gitea

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/claudeops/claudeops/internal/fault"
)

const (
	// pageSize is what lists are asked for: the largest page that a server gives unless it is configured otherwise
	// (MAX_RESPONSE_ITEMS). One that is configured to give less does so without a word, so the size of a page is what came.
	pageSize = 50
	// maxPages bounds how far a list is followed: 50,000 entries of the usual size. No list that this program reads is
	// that long, and a server that counts wrongly must not keep it busy for ever.
	maxPages = 1000
	// sideBySide is how many independent reads run at once.
	sideBySide = 8
)

// page is one page of a list.
type page[T any] struct {
	items []T
	total int // entries of the whole list; -1 when the server does not say
}

// readAll reads a list to its end: the first page alone, the others side by side. settled is false when the list changed
// while it was read, so that entries may be missing or doubled.
func readAll[T any](ctx context.Context, read func(ctx context.Context, number int) (page[T], error)) (items []T,
	settled bool, err error) {
	first, err := read(ctx, 1)
	if err != nil {
		return nil, false, err
	}
	if first.total < 0 {
		items, err = readUntilEmpty(ctx, first.items, read)
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
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sideBySide)
	for i := 1; i < count; i++ {
		group.Go(func() (err error) {
			pages[i], err = read(ctx, i+1)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, false, err
	}
	settled = true
	for _, p := range pages {
		items = append(items, p.items...)
		settled = settled && p.total == first.total
	}
	return items, settled && len(items) == first.total, nil
}

func readUntilEmpty[T any](ctx context.Context, items []T,
	read func(ctx context.Context, number int) (page[T], error)) ([]T, error) {
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

// present leaves out the nulls of a list, which a server may send and nobody means.
func present[T any](items []*T) []*T {
	return slices.DeleteFunc(items, func(item *T) bool { return item == nil })
}

func tooLong() error {
	return fault.New(fault.UpstreamError, "the server's list has no end within %d pages; the server may be at fault", maxPages)
}

// together runs independent reads side by side, all of them to their end, and returns the error of the first in order
// that failed: which one is told of must not depend on which answer came first.
func together(reads ...func() error) error {
	errs := make([]error, len(reads))
	var group sync.WaitGroup
	for i, read := range reads {
		group.Go(func() { errs[i] = read() })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
