//go:build !postgres

package web_test

import (
	"testing"

	"github.com/claudeops/claudeops/internal/records/store"
	"github.com/claudeops/claudeops/internal/records/store/storetest"
)

// emptyRecords is the database of a store without records.
var emptyRecords storetest.Template

// openRecords opens records without any, on the engine that the build tag postgres chooses; see
// records_postgres_test.go.
func openRecords(t testing.TB, dir string, o store.Options) *store.Store {
	t.Helper()
	return emptyRecords.Open(t, dir, o)
}
