package fakegithub

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// conversionRoute exchanges the code of a manifest for the app.
const conversionRoute = "POST /app-manifests/{code}/conversions"

// appManifest holds the documented members of a manifest, as far as a client of the fake may send them.
type appManifest struct {
	Name        string            `json:"name"`
	URL         string            `json:"url"`
	RedirectURL string            `json:"redirect_url"`
	Public      bool              `json:"public"`
	Hook        *appHook          `json:"hook_attributes"`
	Permissions map[string]string `json:"default_permissions"`
	Events      []string          `json:"default_events"`
}

type appHook struct {
	URL    string `json:"url"`
	Active bool   `json:"active"`
}

// page answers a browser: it takes a manifest as if the person had pressed the button at once, and installs the app for
// all repositories. It reports whether the request was for one of these pages.
func (i *appInstallation) page(w http.ResponseWriter, r *http.Request) bool {
	newApp := []string{"/settings/apps/new", "/organizations/" + organisation + "/settings/apps/new"}
	switch {
	case r.Method == http.MethodPost && slices.Contains(newApp, r.URL.Path):
		i.takeManifest(w, r)
		return true
	case r.Method != http.MethodGet:
		return false
	}
	installs := false
	i.s.host.Locked(func() {
		if installs = i.app != nil && r.URL.Path == "/apps/"+i.app.Slug+"/installations/new"; installs {
			i.app.Uninstalled = false
		}
	})
	return installs
}

func (i *appInstallation) takeManifest(w http.ResponseWriter, r *http.Request) {
	var m appManifest
	decoder := json.NewDecoder(strings.NewReader(r.PostFormValue("manifest")))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&m); err != nil || m.Name == "" || len(m.Name) > 34 || m.URL == "" ||
		m.Hook != nil && m.Hook.URL == "" {
		i.s.t.Errorf("a manifest that GitHub would not take: %v %+v", err, m)
		http.Error(w, "Invalid GitHub App configuration", http.StatusUnprocessableEntity)
		return
	}
	to, err := url.Parse(m.RedirectURL)
	if err != nil {
		i.s.t.Error(err)
		return
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		i.s.t.Error(err)
	}
	i.s.host.Locked(func() {
		i.app = &App{ID: "67890", Slug: strings.ToLower(m.Name), Key: &key.PublicKey, Permissions: maps.Clone(m.Permissions),
			Uninstalled: true}
		i.code = rand.Text()
		i.key = string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
		to.RawQuery = url.Values{"code": {i.code}, "state": {r.URL.Query().Get("state")}}.Encode()
	})
	http.Redirect(w, r, to.String(), http.StatusFound)
}

// postConversion gives the app for its code, once.
func (i *appInstallation) postConversion(a *exchange) {
	i.s.host.Locked(func() {
		if i.code == "" || a.path["code"] != i.code {
			a.notFound()
			return
		}
		i.code = ""
		app := i.restApp()
		app["html_url"] = i.s.URL() + "/apps/" + i.app.Slug
		app["client_secret"], app["webhook_secret"], app["pem"] = "fake-client-secret", nil, i.key
		a.reply(http.StatusCreated, app)
	})
}
