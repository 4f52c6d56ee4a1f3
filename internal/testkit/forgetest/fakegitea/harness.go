package fakegitea

import (
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
)

// Harness runs the contract suite over a Server of its own for every repository.
type Harness struct {
	// NewProvider makes the provider under test, for the Owner's token.
	NewProvider func(t testing.TB, s *Server) gitprovider.Provider
}

var _ providertest.Harness = Harness{}

// NewRepo implements providertest.Harness.
func (h Harness) NewRepo(t testing.TB, files ...providertest.File) providertest.World {
	t.Helper()
	s := New(t)
	ref := s.AddRepo(files...)
	s.Configure(ref, func(set *Settings) { set.Collaborators = map[string]string{"ann": "write", "bob": "write"} })
	return s.Host().World(t, ref, h.NewProvider(t, s))
}

// ManyPRs implements providertest.Harness: three pages of the largest size.
func (Harness) ManyPRs() int { return 2*maxLimit + 20 }
