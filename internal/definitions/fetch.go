package definitions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Bounds of what is fetched.
const (
	maxFetchBytes = 16 << 20
	fetchTimeout  = 30 * time.Second
	maxRedirects  = 5
)

// location is where something is fetched from: a URL of http or https, or a file.
type location struct {
	url  *url.URL // nil for a file
	file string   // absolute, or relative to the base
}

func (l location) String() string {
	if l.url != nil {
		return l.url.Redacted()
	}
	return l.file
}

// parseLocation reads a URL or a path. A relative one is below base, which is the location of the registry's index.
func parseLocation(text, base string) (location, error) {
	if path.Clean(text) == "." || strings.ContainsAny(text, "\n\r\x00") {
		return location{}, errors.New("is no URL and no path")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return location{}, errors.New("is no URL and no path")
	case u.Scheme == "http" || u.Scheme == "https":
		if u.Host == "" {
			return location{}, errors.New("is a URL without a host")
		}
		return location{url: u}, nil
	case u.Scheme == "file":
		return location{file: filepath.FromSlash(u.Path)}, nil
	case u.Scheme != "" && len(u.Scheme) > 1: // one letter is a drive of Windows
		return location{}, fmt.Errorf("has the scheme %q; http, https and file are known", u.Scheme)
	case base == "":
		return location{file: filepath.FromSlash(text)}, nil
	}
	parent, err := parseLocation(base, "")
	if err != nil {
		return location{}, err
	}
	if parent.url != nil {
		return location{url: parent.url.ResolveReference(u)}, nil
	}
	if filepath.IsAbs(text) {
		return location{file: text}, nil
	}
	return location{file: filepath.Join(filepath.Dir(parent.file), filepath.FromSlash(text))}, nil
}

// fetcher reads from registries.
type fetcher struct {
	client *http.Client
	token  func(name string) string // of an environment variable
	dir    string                   // paths of the configuration are relative to it
}

func newFetcher(transport http.RoundTripper, token func(string) string, dir string) *fetcher {
	return &fetcher{client: &http.Client{Transport: transport, Timeout: fetchTimeout, CheckRedirect: checkRedirect}, token: token, dir: dir}
}

// checkRedirect follows a few redirects, none from https to http. A token goes to no other host.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	case first.Scheme == "https" && req.URL.Scheme != "https":
		return errors.New("a redirect from https to http")
	case req.URL.Host != first.Host:
		req.Header.Del("Authorization")
		req.Header.Del("X-Api-Key")
	}
	return nil
}

// defaultTokenVariable holds the token of registries of type stockyard that name none.
const defaultTokenVariable = "FRACTARY_REGISTRY_TOKEN"

// tokenOf is the token of a registry; "" if it has none.
func (f *fetcher) tokenOf(r Registry) string {
	switch {
	case r.TokenEnv != "":
		return f.token(r.TokenEnv)
	case r.Type == "stockyard":
		return f.token(defaultTokenVariable)
	}
	return ""
}

// answer is what a registry sent.
type answer struct {
	content []byte
	etag    string
	same    bool // it is what etag stands for; content is empty
}

// get reads from a registry. The registry's token is sent to the registry's own host alone. etag, if not "", asks whether there is
// anything new. *Error for all that fails.
func (f *fetcher) get(ctx context.Context, r Registry, l location, etag string) (answer, error) {
	if l.url == nil {
		return f.readFile(r, l)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.url.String(), nil)
	if err != nil {
		return answer{}, unreachableRegistry(r, l, err)
	}
	req.Header.Set("User-Agent", "claudeops")
	req.Header.Set("Accept", "application/json")
	token := f.tokenOf(r)
	if own, err := url.Parse(r.URL); token != "" && err == nil && own.Host == l.url.Host && own.Scheme == l.url.Scheme {
		if r.AuthType == "apikey" {
			req.Header.Set("X-Api-Key", token)
		} else {
			req.Header.Set("Authorization", "Bearer "+token)
		}
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return answer{}, unreachableRegistry(r, l, err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusNotModified && etag != "":
		return answer{etag: etag, same: true}, nil
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		return answer{}, notAdmitted(r, resp.StatusCode, token != "")
	case resp.StatusCode != http.StatusOK:
		return answer{}, newError(NetworkError, "the registry %q answered %s for %s", r.Name, resp.Status, l).with("registry", r.Name).with("status", resp.StatusCode)
	}
	content, err := io.ReadAll(io.LimitReader(resp.Body, maxFetchBytes+1))
	if err != nil {
		return answer{}, unreachableRegistry(r, l, err)
	}
	if len(content) > maxFetchBytes {
		return answer{}, tooLarge(r, l)
	}
	return answer{content: content, etag: resp.Header.Get("ETag")}, nil
}

func (f *fetcher) readFile(r Registry, l location) (answer, error) {
	name := l.file
	if !filepath.IsAbs(name) {
		name = filepath.Join(f.dir, name)
	}
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		name = filepath.Join(name, "registry.json")
	}
	file, err := os.Open(name)
	if err != nil {
		code := NetworkError
		if errors.Is(err, fs.ErrPermission) {
			code = PermissionDenied
		}
		e := newError(code, "the registry %q: %s %s", r.Name, name, reason(err)).with("registry", r.Name)
		e.Cause = err
		return answer{}, e
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxFetchBytes+1))
	switch {
	case err != nil:
		return answer{}, unreachableRegistry(r, l, err)
	case len(content) > maxFetchBytes:
		return answer{}, tooLarge(r, l)
	}
	return answer{content: content}, nil
}

func tooLarge(r Registry, l location) *Error {
	return newError(NetworkError, "the registry %q: %s has more than %d bytes, which is the most that is read", r.Name, l, maxFetchBytes).with("registry", r.Name)
}

func notAdmitted(r Registry, status int, withToken bool) *Error {
	if withToken {
		return newError(AuthFailed, "the registry %q refused the token (status %d)", r.Name, status).with("registry", r.Name).
			suggest("ask the registry's owner for a token that may read")
	}
	e := newError(AuthRequired, "the registry %q wants a token (status %d)", r.Name, status).with("registry", r.Name)
	if r.TokenEnv != "" {
		return e.suggest("set the variable " + r.TokenEnv)
	}
	return e.suggest("name a variable as auth.token_env of the registry, and set it")
}

// unreachableRegistry is the error of a registry that gave no answer. The text of the cause may hold the URL with a password, so it is
// for logs.
func unreachableRegistry(r Registry, l location, cause error) *Error {
	why := "cannot be reached"
	var timeout interface{ Timeout() bool }
	if errors.As(cause, &timeout) && timeout.Timeout() {
		why = "did not answer in time"
	}
	e := newError(NetworkError, "the registry %q %s at %s", r.Name, why, l).with("registry", r.Name)
	e.Cause = cause
	return e
}
