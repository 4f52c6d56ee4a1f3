// Package must gives tests the results of calls that have to succeed, and ends a test whose call fails.
package must

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// Get returns the value of a call that has to succeed: must.Get(os.ReadFile(name))(t).
func Get[T any](value T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Do(t, err)
		return value
	}
}

// Do ends the test at the first error, and reports its cause with it.
func Do(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatalf("%v (cause: %v)", err, fault.From(err).Cause)
		}
	}
}

// Contain reports each part that is not in the text.
func Contain(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %s", part, text)
		}
	}
}

// Equal reports how a value differs from the one that is wanted.
func Equal[T any](t testing.TB, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("difference (-want +got):\n%s", diff)
	}
}
