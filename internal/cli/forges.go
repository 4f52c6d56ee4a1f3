package cli

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/credentialfile"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/gitea"
	"github.com/claudeops/claudeops/internal/gitprovider/github"
	"github.com/claudeops/claudeops/internal/gitprovider/transport"
)

// maxCAFile bounds CLAUDEOPS_CA_FILE, in bytes.
const maxCAFile = 4 << 20

// githubEntry is the registration of GitHub, or of a GitHub Enterprise server.
func (p *parts) githubEntry() gitprovider.Registration {
	entry := gitprovider.Registration{Name: "github", Hosts: []string{"github.com"}}
	if u := p.cfg.Forges.GitHub.URL; u != nil {
		entry.Hosts = githubHosts(u)
	}
	o := transport.Options{Name: "github", Variables: transport.Variables{Token: "GITHUB_TOKEN", Address: "GITHUB_API_URL"}, Scheme: "Bearer"}
	app, problem := p.githubApp()
	if app != nil {
		o.Variables.Token, o.Credential = "the token of the GitHub App", app
	}
	var client *transport.Transport
	if problem == "" {
		client, problem = p.transport(p.cfg.Forges.GitHub, o)
	}
	if entry.Disabled = problem; problem == "" {
		p.clients[o.Name] = client
		entry.Provider = github.New(github.Options{
			API: p.cfg.Forges.GitHub.URL, Client: client, CreateLabels: p.policy.Pulls.CreateLabels, App: app, Now: time.Now, Sleep: sleep,
		})
	}
	return entry
}

// githubHosts are the hosts of clone URLs that the API serves: github.com for api.github.com, the same with data residency
// (api.NAME.ghe.com), and an Enterprise Server's own host.
func githubHosts(api *url.URL) []string {
	if web, isAPI := strings.CutPrefix(api.Hostname(), "api."); isAPI {
		return []string{web}
	}
	return hostsOf(api)
}

// giteaEntry is the registration of a Gitea or Forgejo server.
func (p *parts) giteaEntry() gitprovider.Registration {
	entry := gitprovider.Registration{Name: "gitea"}
	if u := p.cfg.Forges.Gitea.URL; u != nil {
		entry.Hosts = hostsOf(u)
	}
	client, problem := p.transport(p.cfg.Forges.Gitea, transport.Options{
		Name: "gitea", Variables: transport.Variables{Token: "GITEA_TOKEN", Address: "GITEA_URL"}, Scheme: "token",
	})
	if entry.Disabled = problem; problem == "" {
		p.clients["gitea"] = client
		entry.Provider = gitea.New(gitea.Options{
			Base: p.cfg.Forges.Gitea.URL, Client: client, CreateLabels: p.policy.Pulls.CreateLabels,
			Paths: p.store.PullPaths("gitea"), Now: time.Now, Sleep: sleep,
		})
	}
	return entry
}

// hostsOf are the hosts of clone URLs that lead to the server: with its port, and, as in ssh URLs, without.
func hostsOf(u *url.URL) []string {
	if u.Port() == "" {
		return []string{u.Host}
	}
	return []string{u.Host, u.Hostname()}
}

// transport makes the HTTP client of a forge, or says why it cannot be used.
func (p *parts) transport(f config.Forge, o transport.Options) (client *transport.Transport, problem string) {
	if f.Problem != "" {
		return nil, f.Problem
	}
	roots, err := certificates(p.cfg.Forges.CAFile)
	if err != nil {
		return nil, "CLAUDEOPS_CA_FILE " + err.Error()
	}
	o.Base, o.Token = f.URL, f.Token
	o.Network = transport.Network{RootCAs: roots, Proxy: http.ProxyFromEnvironment, AllowPlainHTTP: p.cfg.Forges.AllowPlainHTTP}
	if o.Credential == nil && f.TokenFile != "" {
		o.Credential = transport.Replaceable(credentialfile.New(f.TokenFile, f.Token, func(token string) { p.learn(token) }))
	}
	o.UserAgent, o.Log = "claudeops", p.log
	o.Clock = transport.Clock{Now: time.Now, Sleep: sleep}
	o.Observe = func(outcome string, took time.Duration) { p.latency.Observe(o.Name, outcome, took) }
	if client, err = transport.New(o); err != nil {
		return nil, err.Error()
	}
	return client, ""
}

// remaining is how many requests each forge last said are left.
func (p *parts) remaining() map[string]int {
	out := map[string]int{}
	for name, client := range p.clients {
		if n, known := client.Remaining(); known {
			out[name] = n
		}
	}
	return out
}

// certificates are the system's and those of the file; nil, the system's alone, without a file.
func certificates(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	info, err := os.Stat(file)
	if err != nil || info.Size() > maxCAFile {
		return nil, fmt.Errorf("names a file that cannot be read or is larger than %d bytes", maxCAFile)
	}
	text, err := os.ReadFile(file) // #nosec G304: the operator names the file
	if err != nil {
		return nil, fmt.Errorf("names a file that cannot be read")
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("names a file without a PEM certificate")
	}
	return pool, nil
}
