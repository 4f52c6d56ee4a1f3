package gitea

import (
	"net/url"
	"strings"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// Driver is Gitea and Forgejo.
func Driver() forge.Driver {
	return forge.Driver{
		Name: Name,
		Variables: []forge.Variable{
			{Name: urlVariable, Meaning: "address of a Gitea or Forgejo server", Server: true, Needed: true},
			{Name: tokenVariable, Meaning: "token of Gitea or Forgejo; without it the provider is off", Secret: true,
				Server: true, Needed: true},
		},
		Read: readSettings, Hosts: hosts, New: fromSettings,
		Webhooks: forge.Source{
			Name: Name, Title: "Gitea or Forgejo",
			Signatures: []forge.Signature{{Header: "X-Gitea-Signature"}, {Header: "X-Forgejo-Signature"}},
			Headers:    []string{"X-Gitea-", "X-Forgejo-"},
			Events: []string{"push", "pull_request", "pull_request_sync", "pull_request_approved", "pull_request_rejected",
				"issues", "issue_comment"},
		},
	}
}

func readSettings(e forge.Environment) forge.Settings {
	out := forge.AddressAndToken(e, urlVariable, "", tokenVariable)
	if out.URL != nil && strings.HasSuffix(out.URL.Path, "/api/v1/") {
		out.URL, out.Problem = nil, urlVariable+" is the address of the API; give that of the installation, without api/v1"
	}
	return out
}

func hosts(base *url.URL) []string {
	if base == nil {
		return nil
	}
	return forge.Hosts(base)
}

func fromSettings(s forge.Settings, r forge.Runtime) (gitprovider.Provider, *transport.Transport, error) {
	client, err := r.Client(s, transport.Options{Name: Name,
		Variables: transport.Variables{Token: tokenVariable, Address: urlVariable}, Scheme: "token"})
	if err != nil {
		return nil, nil, err
	}
	return New(Options{
		Base: s.URL, Client: client, CreateLabels: r.CreateLabels, Paths: r.Paths, Now: r.Now, Sleep: r.Sleep,
	}), client, nil
}
