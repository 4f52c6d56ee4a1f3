package app

import (
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/settings/config"
)

// newSecrets makes what reads the secrets that come from files, again and again.
func newSecrets(a *App, p *Parts) *config.Secrets {
	sources := a.Options().Sources
	if sources == nil { // of tests
		sources = func() (config.Sources, error) { return a.sources(), nil }
	}
	return config.NewSecrets(config.SecretsOptions{
		Sources: sources, Drivers: forges.All(), Learn: func(secret string) { p.Scanner.Learn(secret) },
		Changed: func(is []config.SecretProblem) {
			for _, one := range is {
				p.Log.Error(one.Detail, "variable", one.Name)
			}
			if len(is) == 0 {
				p.Log.Warn("every secret can be read again, and is the one that this process goes by")
			}
		},
		Now: time.Now,
	})
}
