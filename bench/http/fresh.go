package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/records/store"
)

// What fillOne makes of a number with this last digit.
const (
	openedDigit  = 0
	dryRunDigit  = 2
	refusedDigit = 6
)

// measureFresh prints a line for each kind of request of one client, with something recorded before each. Only the
// request is measured.
func measureFresh(ctx context.Context, s *server, state string, each time.Duration) error {
	recorder, err := store.Open(ctx, state, store.Options{})
	if err != nil {
		return err
	}
	defer func() { _ = recorder.Close() }()
	fmt.Printf("\n%-34s %10s %10s %10s %10s\n", "request after a record", "record", "median ms", "p99 ms", "x healthz")
	floor := 0.0
	for _, kind := range []struct {
		name, recorded string
		digit          int
		target         string
	}{
		{"GET /healthz", "refused", refusedDigit, "/healthz"},
		{"GET / (overview)", "refused", refusedDigit, "/"},
		{"GET / (overview)", "dry run", dryRunDigit, "/"},
		{"GET / (overview)", "opened", openedDigit, "/"},
		{"GET /changes", "refused", refusedDigit, "/changes"},
		{"GET /changes", "opened", openedDigit, "/changes"},
		{"GET /changes, that wait", "opened", openedDigit, "/changes?tab=waiting"},
		{"GET /changes, refused, by code", "refused", refusedDigit, "/changes?tab=refused&code=scope_denied"},
		{"GET /changes, of a repository", "refused", refusedDigit, "/changes?repo=filled/repo-7"},
		{"GET /audit", "refused", refusedDigit, "/audit"},
		{"GET /sessions", "refused", refusedDigit, "/sessions"},
		{"GET proposals, first page", "refused", refusedDigit, "/api/v1/proposals?limit=50"},
		{"GET proposals, first page", "opened", openedDigit, "/api/v1/proposals?limit=50"},
		{"GET proposals, q that finds none", "refused", refusedDigit, "/api/v1/proposals?q=nothing-is-called-so"},
		{"GET /healthz again", "refused", refusedDigit, "/healthz"},
	} {
		took, err := measureOneFresh(ctx, recorder, s.get(kind.target), kind.digit, each)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		ms := func(share float64) float64 {
			return float64(took[int(share*float64(len(took)-1))].Microseconds()) / 1000
		}
		if floor == 0 {
			floor = ms(.5)
		}
		fmt.Printf("%-34s %10s %10.2f %10.2f %10.1f\n", kind.name, kind.recorded, ms(.5), ms(.99), ms(.5)/floor)
	}
	return nil
}

// measureOneFresh returns what each request took, the shortest first.
func measureOneFresh(ctx context.Context, recorder *store.Store, make request, digit int,
	each time.Duration) (took []time.Duration, err error) {
	client := &http.Client{}
	defer client.CloseIdleConnections()
	first := int(time.Now().UnixMicro()) // nothing is recorded twice
	began := time.Now()
	for n := 0; len(took) == 0 || time.Since(began) < each; n++ {
		if err := fillOne(ctx, recorder, (first+n)*10+digit, time.Now()); err != nil {
			return nil, err
		}
		one, err := send(ctx, client, make, int64(n))
		if err != nil {
			return nil, err
		}
		if n > 0 { // the first request of all makes its connection
			took = append(took, one)
		}
	}
	slices.Sort(took)
	return took, nil
}
