package prflow_test

import (
	"testing"

	"github.com/claudeops/claudeops/internal/settings/policy"
)

func mustPolicy(t *testing.T, rules string) policy.Policy {
	t.Helper()
	p, err := policy.Parse("test.yaml", []byte("version: 1\n"+rules+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
