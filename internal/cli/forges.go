package cli

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/claudeops/claudeops/internal/config"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/driver"
	"github.com/claudeops/claudeops/internal/gitprovider/transport"
)

// maxCAFile bounds CLAUDEOPS_CA_FILE, in bytes.
const maxCAFile = 4 << 20

// forge is the registration of a forge: disabled, with the reason, if its settings or its client are no good.
func (p *parts) forge(f config.Forge) gitprovider.Registration {
	name := f.Driver.Name
	entry := gitprovider.Registration{Name: name, Hosts: f.Driver.Hosts(f.URL), Disabled: f.Problem}
	if entry.Disabled != "" {
		return entry
	}
	provider, client, err := f.Driver.New(f.Settings, driver.Runtime{
		Client: p.transport, Learn: func(secret string) (forget func()) { return p.scanner.Learn(secret) },
		CreateLabels: p.policy.Pulls.CreateLabels, Paths: p.store.PullPaths(name), Now: time.Now, Sleep: sleep,
	})
	if err != nil {
		entry.Disabled = err.Error()
		return entry
	}
	p.clients[name], entry.Provider = client, provider
	return entry
}

// transport makes an HTTP client of a forge. Its token is read again when it is in a file that is replaced.
func (p *parts) transport(s driver.Settings, o transport.Options) (*transport.Transport, error) {
	roots, err := certificates(p.cfg.Forges.CAFile)
	if err != nil {
		return nil, err
	}
	o.Base, o.Token = s.URL, s.Token.Text
	o.Network = transport.Network{RootCAs: roots, Proxy: http.ProxyFromEnvironment, AllowPlainHTTP: p.cfg.Forges.AllowPlainHTTP}
	if o.Credential == nil && s.Token.File != "" {
		o.Credential = transport.Replaceable(s.Token.Source(func(token string) func() { return p.scanner.Learn(token) }))
	}
	o.UserAgent, o.Log = "claudeops", p.log
	o.Clock = transport.Clock{Now: time.Now, Sleep: sleep}
	o.Observe = func(outcome string, took time.Duration) { p.latency.Observe(o.Name, outcome, took) }
	return transport.New(o)
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
		return nil, fmt.Errorf("CLAUDEOPS_CA_FILE names a file that cannot be read or is larger than %d bytes", maxCAFile)
	}
	text, err := os.ReadFile(file) // #nosec G304: the operator names the file
	if err != nil {
		return nil, errors.New("CLAUDEOPS_CA_FILE names a file that cannot be read")
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("CLAUDEOPS_CA_FILE names a file without a PEM certificate")
	}
	return pool, nil
}
