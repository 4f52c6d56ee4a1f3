package app

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/gitprovider/githubapp"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// Bounds of waiting for a person in their browser. GitHub's code is good for an hour.
const (
	appWait = 15 * time.Minute // for the app, and then for its installation
	appLook = 2 * time.Second  // between two looks whether it is installed
	appNew  = 15 * time.Second // in which not all of GitHub's servers know a new app: they refuse its signature
)

// NewGitHubApp says which GitHub App a person makes in their browser.
type NewGitHubApp struct {
	Owner        string // of the repository that it is for
	Organisation bool   // the owner is an organisation, which is to own the app
	// Show shows the person an address to open in a browser of this machine, and what happens there.
	Show func(address, what string)
	// Keep keeps id and private key, which GitHub gives this once.
	Keep func(id, key string) error
}

// MakeGitHubApp has a person make an app at GitHub from a manifest, and install it for the owner of their repository. A
// page of this machine posts the manifest; GitHub sends the browser back to it with a code, which is exchanged for the
// app. What was kept stays, whatever happens later. timeout if the person does not come back within appWait.
func MakeGitHubApp(ctx context.Context, p *Parts, o NewGitHubApp) error {
	at := slices.IndexFunc(p.Cfg.Forges.All, func(f config.Forge) bool { return f.Driver.Name == "github" })
	github := p.Cfg.Forges.All[at]
	api, err := forge.ParseURL("GITHUB_API_URL", github.URL.String())
	if err != nil {
		return err
	}
	web, err := url.Parse(CloneBase(api, github.Driver.Hosts(api)) + "/")
	if err != nil {
		return err
	}
	asked := transport.Options{Name: "github", Variables: transport.Variables{Token: "the app", Address: "GITHUB_API_URL"}}
	client, err := p.Providers.transport(p, forge.Settings{URL: api}, asked)
	if err != nil {
		return err
	}
	made, err := askForApp(ctx, o, p.namesTeams(), web, func(code string) (githubapp.Registered, error) {
		made, err := githubapp.Exchange(ctx, client, api, code)
		if err == nil {
			p.Scanner.Learn(made.Key)
			err = onPages(made.Page, web)
		}
		if err == nil {
			err = o.Keep(strconv.FormatInt(made.ID, 10), made.Key)
		}
		return made, err
	})
	if err != nil {
		return err
	}
	asked.Credential = githubapp.NewSigner(strconv.FormatInt(made.ID, 10),
		forge.Secret{Text: made.Key}.Source(nil), time.Now)
	if client, err = p.Providers.transport(p, forge.Settings{URL: api}, asked); err != nil {
		return err
	}
	o.Show(made.InstallPage(), "install the app there for "+o.Owner+", with access to the repository")
	return waitForInstallation(ctx, githubapp.New(githubapp.Options{API: api, Client: client}), o.Owner)
}

// onPages refuses the page of an app that is not one of GitHub's, where the browser would be sent.
func onPages(page string, web *url.URL) error {
	u, err := url.Parse(page)
	if err != nil || !transport.SameOrigin(u, web) {
		return fault.New(fault.UpstreamError, "the app's page is not at %s; check GITHUB_API_URL", web.Host)
	}
	return nil
}

// namesTeams reports whether the policy names a team as a reviewer.
func (p *Parts) namesTeams() bool {
	return slices.ContainsFunc(p.Rules.Now().Policy.Pulls.Reviewers,
		func(name string) bool { return strings.Contains(name, "/") })
}

// waitForInstallation asks GitHub again and again until the app is installed for the owner.
func waitForInstallation(ctx context.Context, app *githubapp.App, owner string) error {
	bound, cancel := context.WithTimeout(ctx, appWait)
	defer cancel()
	for began := time.Now(); ; {
		installed, err := app.Installed(bound, owner)
		if fault.CodeOf(err) == fault.ProviderDisabled && time.Since(began) < appNew {
			err = nil
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case bound.Err() != nil:
			return fault.New(fault.Timeout, "the app is not installed for %s yet; install it there, and go on then", owner)
		case err != nil || installed:
			return err
		}
		transport.Sleep(bound, appLook)
	}
}

// askForApp serves the page with the manifest on an address of this machine until GitHub has sent the browser back, and
// returns what exchange made of the code.
func askForApp(ctx context.Context, o NewGitHubApp, members bool, web *url.URL,
	exchange func(code string) (githubapp.Registered, error)) (made githubapp.Registered, err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return made, fault.Wrap(err, fault.Internal, "no address of this machine is free for the browser to come back to: %s",
			err)
	}
	form, err := newAppForm(o, members, web, "http://"+listener.Addr().String())
	if err != nil {
		return made, errors.Join(err, listener.Close())
	}
	form.exchange = exchange
	server := &http.Server{Handler: form, ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10}
	go func() { _ = server.Serve(listener) }()
	defer func() {
		bound, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second) // the browser is being sent on
		defer cancel()
		if server.Shutdown(bound) != nil {
			_ = server.Close()
		}
	}()
	o.Show(form.own+form.start, "GitHub shows there what the app may do: make it there")
	timer := time.NewTimer(appWait)
	defer timer.Stop()
	select {
	case <-form.done:
		return form.made, form.err
	case <-timer.C:
		return made, fault.New(fault.Timeout, "nobody has made the app within %d minutes", int(appWait.Minutes()))
	case <-ctx.Done():
		return made, ctx.Err()
	}
}

// appForm serves the page that posts the manifest, and takes the browser back, once.
type appForm struct {
	own, start, back string // origin, and paths; both are secret, so that no other page can begin or end it
	state            string
	manifest         string
	github           *url.URL // where the manifest is posted
	exchange         func(code string) (githubapp.Registered, error)

	once sync.Once
	done chan struct{} // closed when there is a result
	made githubapp.Registered
	err  error
}

func newAppForm(o NewGitHubApp, members bool, web *url.URL, own string) (*appForm, error) {
	f := &appForm{
		own:   own,
		start: "/" + rand.Text(),
		back:  "/" + rand.Text(),
		state: rand.Text(),
		done:  make(chan struct{}),
	}
	organisation := ""
	if o.Organisation {
		organisation = o.Owner
	}
	manifest, err := json.Marshal(githubapp.NewManifest("claude-ops-"+o.Owner, own+f.back, members))
	f.manifest, f.github = string(manifest), githubapp.NewAppPage(web, organisation, f.state)
	return f, err
}

// ServeHTTP implements http.Handler. What a browser asks in the name of another host is not answered.
func (f *appForm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action "+
		f.github.Scheme+"://"+f.github.Host)
	switch {
	case "http://"+r.Host != f.own || r.Method != http.MethodGet:
		http.NotFound(w, r)
	case r.URL.Path == f.start:
		f.renderPage(w, appPage{Action: f.github.String(), Manifest: f.manifest, Host: f.github.Host})
	case r.URL.Path == f.back:
		f.takeBack(w, r)
	default:
		http.NotFound(w, r)
	}
}

// takeBack takes the code that GitHub has given the browser, and sends it on to where the app is installed.
func (f *appForm) takeBack(w http.ResponseWriter, r *http.Request) {
	code, state := r.URL.Query().Get("code"), r.URL.Query().Get("state")
	good := regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`).MatchString(code)
	if !good || subtle.ConstantTimeCompare([]byte(state), []byte(f.state)) != 1 {
		w.WriteHeader(http.StatusBadRequest)
		f.renderPage(w, appPage{Problem: "This is not the answer that claudeops init waits for."})
		return
	}
	first := false
	f.once.Do(func() {
		first = true
		defer close(f.done)
		f.made, f.err = f.exchange(code)
	})
	switch {
	case !first:
		w.WriteHeader(http.StatusGone)
		f.renderPage(w, appPage{Problem: "The app was made already."})
	case f.err != nil:
		w.WriteHeader(http.StatusBadGateway)
		f.renderPage(w, appPage{Problem: fault.From(f.err).Message})
	default:
		http.Redirect(w, r, f.made.InstallPage(), http.StatusSeeOther)
	}
}

// appPage holds the page's contents: the form, or a problem.
type appPage struct{ Action, Manifest, Host, Problem string }

func (f *appForm) renderPage(w http.ResponseWriter, page appPage) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = template.Must(template.New("").Parse(`<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"><title>Claude Ops</title>
{{if .Problem}}<h1>Not done</h1><p>{{.Problem}}</p><p>Look at the terminal.</p>{{else}}
<h1>Make a GitHub App for Claude Ops</h1>
<p>{{.Host}} shows its name, and asks whether to make it. Then you choose the repositories that it may see.</p>
<form method="post" action="{{.Action}}"><input type="hidden" name="manifest" value="{{.Manifest}}">
<button autofocus>Go to {{.Host}}</button></form>{{end}}</html>
`)).Execute(w, page) // the browser may have gone
}
