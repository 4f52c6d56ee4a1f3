package github_test

import (
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/github"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
)

func asUser(t testing.TB, s *fakegithub.Server) gitprovider.Provider {
	return setup(t, s.URL(), s.Token(), makingLabels)
}

func asApp(t testing.TB, s *fakegithub.Server) gitprovider.Provider {
	a := setupApp(t, s, makingLabels)
	s.ConfigureApp(func(app *fakegithub.App) { app.NotYet = []int{401, 403} })
	return a
}

func makingLabels(o *github.Options) { o.CreateLabels = func() bool { return true } }

func TestGitHubKeepsTheContract(t *testing.T) {
	providertest.Run(t, fakegithub.Harness{NewProvider: asUser})
}

// Nothing of the contract depends on GitHub's knowing at once what it has made.
func TestALaggingGitHubKeepsTheContract(t *testing.T) {
	providertest.Run(t, fakegithub.Harness{NewProvider: asUser, Lag: true})
}

func TestAGitHubAppKeepsTheContract(t *testing.T) {
	providertest.Run(t, fakegithub.Harness{NewProvider: asApp, Lag: true})
}
