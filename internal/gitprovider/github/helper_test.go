package github_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/github"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
)

// setup makes a provider for an API root. Nothing waits: neither retries nor GitHub's delays.
func setup(t testing.TB, root, token string, change ...func(*github.Options)) *github.Provider {
	t.Helper()
	base, err := url.Parse(root)
	if err != nil {
		t.Fatal(err)
	}
	noWait := func(context.Context, time.Duration) {}
	client, err := transport.New(transport.Options{
		Name: github.Name, Variables: transport.Variables{Token: "GITHUB_TOKEN", Address: "GITHUB_API_URL"}, Base: base,
		Token: token, Clock: transport.Clock{Sleep: noWait},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	opts := github.Options{API: base, Client: client, Sleep: noWait}
	for _, c := range change {
		c(&opts)
	}
	return github.New(opts)
}

// script is a server that answers what a test says, and remembers what it was asked.
func script(t testing.TB, handler http.Handler) (*httpfault.Handler, string) {
	t.Helper()
	faults := httpfault.New(handler)
	server := httptest.NewServer(faults)
	t.Cleanup(server.Close)
	return faults, server.URL
}

// always answers every request in the same way.
func always(status int, header http.Header, body string) httpfault.Fault {
	return httpfault.Fault{Kind: httpfault.Status, Status: status, Header: header, Body: body}
}

func repo() gitprovider.RepoRef { return gitprovider.RepoRef{Owner: "octo", Name: "cluster"} }

// wantCode demands an error of the port's type with the code.
func wantCode(t testing.TB, err error, want fault.Code) *fault.Error {
	t.Helper()
	e, ok := err.(*fault.Error) //nolint:errorlint // the port promises the type itself
	if !ok || e.Code != want {
		t.Fatalf("got %v (%T), want code %s", err, err, want)
	}
	return e
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v (cause: %v)", err, fault.From(err).Cause)
	}
}
