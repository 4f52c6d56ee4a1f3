package gitea_test

import (
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegitea"
)

func harness() fakegitea.Harness {
	return fakegitea.Harness{NewProvider: func(t testing.TB, s *fakegitea.Server) gitprovider.Provider {
		return newProvider(t, s.URL(), s.Token())
	}}
}

func TestGiteaFulfilsTheContract(t *testing.T) {
	t.Parallel()
	providertest.Run(t, harness())
}
