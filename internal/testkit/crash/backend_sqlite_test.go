//go:build linux && !postgres

package crash

import "testing"

// newDatabase is the value of CLAUDEOPS_DATABASE_URL for one world: none, so that the records are in its state folder.
func newDatabase(*testing.T) string { return "" }
