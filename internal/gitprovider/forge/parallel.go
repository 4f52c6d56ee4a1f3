package forge

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
)

// sideBySide limits the concurrent requests of one call.
const sideBySide = 8

// Together runs independent reads side by side, all of them to their end, and returns the error of the first in order
// that failed: which one is reported must not depend on which answer came first.
func Together(reads ...func() error) error {
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

// Into returns a read for Together that keeps its value.
func Into[T any](value *T, read func() (T, error)) func() error {
	return func() (err error) {
		*value, err = read()
		return err
	}
}

// Each does the same for every item, sideBySide of them at a time. The first failure ends the others.
func Each[T any](ctx context.Context, items []T, do func(ctx context.Context, i int, item T) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sideBySide)
	for i, item := range items {
		group.Go(func() error { return do(ctx, i, item) })
	}
	return group.Wait()
}
