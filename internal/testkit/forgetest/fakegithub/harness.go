package fakegithub

import (
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

// Harness runs the contract suite over fake GitHubs, one for each repository.
type Harness struct {
	// NewProvider makes the provider under test for a server.
	NewProvider func(t testing.TB, s *Server) gitprovider.Provider
	// Lag makes new objects unknown for a while; see Server.Lag.
	Lag bool
}

var _ providertest.Harness = Harness{}

// NewRepo implements providertest.Harness.
func (h Harness) NewRepo(t testing.TB, files ...memhost.File) providertest.World {
	s := New(t)
	if h.Lag {
		s.Lag()
	}
	ref := s.AddRepo(files...)
	s.Configure(ref, func(set *Settings) { set.People.Collaborators = []string{"ann", "bob"} })
	return s.host.World(t, ref, h.NewProvider(t, s))
}

// ManyPRs implements providertest.Harness: more than the largest page, which has 100.
func (Harness) ManyPRs() int { return 120 }
