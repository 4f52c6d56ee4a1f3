package github_test

import (
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/github"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
)

func TestGitHubKeepsTheContract(t *testing.T) {
	providertest.Run(t, fakegithub.Harness{NewProvider: func(t testing.TB, s *fakegithub.Server) gitprovider.Provider {
		return setup(t, s.URL(), s.Token(), makingLabels)
	}})
}

func makingLabels(o *github.Options) { o.CreateLabels = true }

func TestAGitHubAppKeepsTheContract(t *testing.T) {
	providertest.Run(t, fakegithub.Harness{NewProvider: func(t testing.TB, s *fakegithub.Server) gitprovider.Provider {
		return setupApp(t, s, makingLabels)
	}})
}
