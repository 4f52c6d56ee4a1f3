package cli

import (
	"time"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/credentialfile"
	"github.com/claudeops/claudeops/internal/gitprovider/githubapp"
	"github.com/claudeops/claudeops/internal/gitprovider/transport"
)

// githubApp is the GitHub App in whose name requests are made, nil without one, or says why it cannot be used. Its tokens are
// redacted like those of the configuration.
func (p *parts) githubApp() (app *githubapp.App, problem string) {
	forge := p.cfg.Forges.GitHub
	if forge.App == nil || forge.Problem != "" {
		return nil, ""
	}
	if _, err := githubapp.ParseKey(forge.App.Key); err != nil {
		return nil, "GITHUB_APP_PRIVATE_KEY " + err.Error()
	}
	signer := githubapp.NewSigner(forge.App.ID, p.privateKey(*forge.App), time.Now)
	client, problem := p.transport(forge, transport.Options{
		Name: "github", Variables: transport.Variables{Token: "GITHUB_APP_PRIVATE_KEY", Address: "GITHUB_API_URL"}, Scheme: "Bearer", Credential: signer,
	})
	if problem != "" {
		return nil, problem
	}
	return githubapp.New(githubapp.Options{
		API: forge.URL, Client: client, Now: time.Now,
		Learn: func(token string) (forget func()) { return p.scanner.Learn(token) },
	}), ""
}

func (p *parts) privateKey(app config.GitHubApp) transport.Source {
	if app.KeyFile == "" {
		return constant(app.Key)
	}
	return credentialfile.New(app.KeyFile, app.Key, func(key string) { p.learn(config.KeySecret(key)) })
}

// constant is a secret that was given in a variable, and stays.
type constant string

// Value implements transport.Source.
func (c constant) Value() string { return string(c) }

// Reread implements transport.Source.
func (c constant) Reread() string { return string(c) }

// learn has values that a file of a secret came to hold redacted from now on, for good.
func (p *parts) learn(values ...string) { p.scanner.Learn(values...) }
