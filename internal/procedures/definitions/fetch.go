package definitions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// Bounds of what is fetched.
const (
	maxFetchBytes = 16 << 20
	fetchTimeout  = 30 * time.Second
	maxRedirects  = 5
)

// location is the place from which something is fetched: a URL of http or https, or a file.
type location struct {
	url  *url.URL // nil for a file
	file string
}

func (l location) String() string {
	if l.url != nil {
		return l.url.Redacted()
	}
	return l.file
}

// parseLocation reads a URL or a path.
func parseLocation(text string) (location, error) {
	if path.Clean(text) == "." || strings.ContainsAny(text, "\n\r\x00") {
		return location{}, errors.New("is neither a URL nor a path")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return location{}, errors.New("is neither a URL nor a path")
	case u.Scheme == "http" || u.Scheme == "https":
		if u.Hostname() == "" {
			return location{}, errors.New("is a URL without a host")
		}
		return location{url: u}, nil
	case u.Scheme == "file":
		return location{file: filepath.FromSlash(u.Path)}, nil
	case u.Scheme != "" && len(u.Scheme) > 1: // one letter is a drive of Windows
		return location{}, fmt.Errorf("has the scheme %q; http, https and file are known", u.Scheme)
	}
	return location{file: filepath.FromSlash(text)}, nil
}

// location returns the location of the registry's index, or of the folder that has it.
func (r Registry) location() (location, error) {
	l, err := parseLocation(r.URL)
	if err == nil && l.url == nil && !filepath.IsAbs(l.file) {
		l.file = filepath.Join(r.dir, l.file)
	}
	return l, err
}

// splitFolder returns the folder of a registry that is a file, and the index in it.
func (l location) splitFolder() (dir, index string) {
	if files.IsFolder(l.file) {
		return l.file, "registry.json"
	}
	return filepath.Dir(l.file), filepath.Base(l.file)
}

// refer returns the location of what a registry's index names: relative to the index, or whole.
func (r Registry) refer(text string) (location, error) {
	base, err := r.location()
	if err != nil {
		return location{}, err
	}
	l, err := parseLocation(text)
	if err != nil || l.url != nil {
		return l, err
	}
	if u, err := url.Parse(text); err == nil && base.url != nil && u.Scheme == "" {
		return location{url: base.url.ResolveReference(u)}, nil
	}
	if base.url == nil && !filepath.IsAbs(l.file) {
		dir, _ := base.splitFolder()
		l.file = filepath.Join(dir, l.file)
	}
	return l, nil
}

// fetcher reads from registries: what is theirs, and what their data names at hosts that the operator named.
type fetcher struct {
	over  http.RoundTripper
	token func(name string) string // of an environment variable
	known func(*url.URL) trust.Operator[transport.Host]
}

// admits reports whether an address that data names may be asked: at a host that the operator named, without a
// credential in it.
func (f *fetcher) admits(u *url.URL) bool {
	if u.User != nil || f.known == nil {
		return false
	}
	_, admitted := f.known(u).Get()
	return admitted
}

// client asks for what is a registry's. The registry's token is sent to the registry's own host alone.
func (f *fetcher) client(r Registry, token string) *transport.Client {
	own := r.named.Value() // nil: only what is admitted besides is asked
	return transport.NewClient(transport.ClientOptions{
		Over: f.over, Redirects: maxRedirects, MaxBody: maxFetchBytes, Timeout: fetchTimeout,
		Host: func(u *url.URL) trust.Operator[transport.Host] {
			var besides trust.Operator[transport.Host]
			if f.known != nil {
				besides = f.known(u)
			}
			if own == nil || !transport.SameOrigin(own, u) {
				return besides
			}
			h := transport.Host{Private: f.known == nil || besides.Value().Private}
			if h.Header, h.Credential = "Authorization", "Bearer "+token; r.AuthType == "apikey" {
				h.Header, h.Credential = "X-Api-Key", token
			}
			if token == "" {
				h.Credential = ""
			}
			return trust.Said(h)
		},
	})
}

// notNamed says why a host is not asked that data names.
const notNamed = "which the operator has not named: a registry of the operator's configuration admits its host, and " +
	"claudeops sources allow an address"

// defaultTokenVariable holds the token of registries of type stockyard that name none.
const defaultTokenVariable = "FRACTARY_REGISTRY_TOKEN"

// tokenOf returns the token of a registry; "" if it has none.
func (f *fetcher) tokenOf(r Registry) string {
	switch {
	case r.Unused != "":
		return ""
	case r.TokenEnv != "":
		return f.token(r.TokenEnv)
	case r.Type == "stockyard":
		return f.token(defaultTokenVariable)
	}
	return ""
}

// fetched is a registry's answer.
type fetched struct {
	content []byte
	etag    string
	same    bool // etag is still current; content is empty
}

// get reads from a registry. etag, if not "", asks whether there is
// anything new. *Error for all that fails.
func (f *fetcher) get(ctx context.Context, r Registry, l location, etag string) (fetched, error) {
	if l.url == nil {
		return readFile(r, l)
	}
	token := f.tokenOf(r)
	header := http.Header{"Accept": {"application/json"}}
	if etag != "" {
		header.Set("If-None-Match", etag)
	}
	got, err := f.client(r, token).Do(ctx, transport.Request{Method: http.MethodGet, URL: l.url, Header: header})
	switch {
	case errors.Is(err, transport.ErrBodyTooLarge):
		return fetched{}, tooLarge(r, l)
	case err != nil:
		return fetched{}, unreachableRegistry(r, l, err)
	case got.Status == http.StatusNotModified && etag != "":
		return fetched{etag: etag, same: true}, nil
	case got.Status == http.StatusUnauthorized || got.Status == http.StatusForbidden:
		return fetched{}, notAdmitted(r, got.Status, token != "")
	case got.Status != http.StatusOK:
		return fetched{}, newError(NetworkError, "the registry %q answered %d %s for %s", r.Name, got.Status,
			http.StatusText(got.Status), l).With("registry", r.Name).With("status", got.Status)
	}
	return fetched{content: got.Body, etag: got.Header.Get("ETag")}, nil
}

// readFile reads a file of a registry that is a folder of this machine. What leaves the folder, also by a link, is not
// read.
func readFile(r Registry, l location) (fetched, error) {
	base, err := r.location()
	if err != nil {
		return fetched{}, unreachableRegistry(r, l, err)
	}
	dir, name := base.splitFolder()
	if l.file != base.file {
		if name, err = filepath.Rel(dir, l.file); err != nil || !filepath.IsLocal(name) {
			return fetched{}, newError(PermissionDenied, "the registry %q names %s, which lies outside of its folder",
				r.Name, l).With("registry", r.Name)
		}
	}
	root, err := files.OpenDir(dir)
	if err != nil {
		return fetched{}, unreadableRegistry(r, dir, err)
	}
	defer func() { _ = root.Close() }()
	content, _, err := root.Read(name, maxFetchBytes)
	switch {
	case errors.Is(err, files.ErrTooLarge):
		return fetched{}, tooLarge(r, l)
	case err != nil:
		return fetched{}, unreadableRegistry(r, filepath.Join(dir, name), err)
	}
	return fetched{content: content}, nil
}

func unreadableRegistry(r Registry, name string, err error) *Error {
	code := NetworkError
	if errors.Is(err, fs.ErrPermission) {
		code = PermissionDenied
	}
	e := newError(code, "the registry %q: %s %s", r.Name, name, pathlessError(err)).With("registry", r.Name)
	e.Cause = err
	return e
}

func tooLarge(r Registry, l location) *Error {
	return newError(NetworkError, "the registry %q: %s has more than %d bytes, which is the most that is read", r.Name, l,
		maxFetchBytes).With("registry", r.Name)
}

func notAdmitted(r Registry, status int, withToken bool) *Error {
	if withToken {
		return newError(AuthFailed, "the registry %q refused the token (status %d)", r.Name, status).With("registry", r.Name).
			Suggest("ask the registry's owner for a token that may read")
	}
	e := newError(AuthRequired, "the registry %q wants a token (status %d)", r.Name, status).With("registry", r.Name)
	if r.TokenEnv != "" {
		return e.Suggest("set the variable " + r.TokenEnv)
	}
	return e.Suggest("name a variable as auth.token_env of the registry, and set it")
}

// unreachableRegistry returns the error of a registry that gave no answer.
func unreachableRegistry(r Registry, l location, cause error) *Error {
	var refused *transport.RefusedError
	if errors.As(cause, &refused) {
		return refusedRegistry(r, l, refused)
	}
	why := "cannot be reached"
	var timeout interface{ Timeout() bool }
	if errors.As(cause, &timeout) && timeout.Timeout() {
		why = "did not answer in time"
	}
	e := newError(NetworkError, "the registry %q %s at %s", r.Name, why, l).With("registry", r.Name)
	e.Cause = cause
	return e
}

// refusedRegistry returns the error of a registry that was not asked, or not where it redirects to.
func refusedRegistry(r Registry, l location, refused *transport.RefusedError) *Error {
	code, why := NetworkError, refused.Error()
	switch refused.Why {
	case transport.TooManyRedirects:
		why = fmt.Sprintf("it redirects more than %d times", maxRedirects)
	case transport.LeavesHTTPS:
	case transport.NotNamed:
		code, why = PermissionDenied, fmt.Sprintf("it redirects to %s, %s", refused.At.Redacted(), notNamed)
	case transport.PrivateAddress:
		code, why = PermissionDenied, "its host is this machine or of a private network, which its source does not admit; "+
			"claudeops sources allow --private does"
	case transport.PlainCredential:
		return newError(ConfigError, "the registry %q has a token, which is not sent over plain http",
			r.Name).With("registry", r.Name).
			Suggest("use https in the registry's url")
	}
	e := newError(code, "the registry %q at %s: %s", r.Name, l, why).With("registry", r.Name)
	e.Cause = refused
	return e
}
