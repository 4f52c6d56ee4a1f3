package transport_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// vault is a credential that a test controls.
type vault struct {
	mu      sync.Mutex
	tokens  []string // the one in use, and those after it
	err     error
	uses    []transport.Use
	refused []string
}

func (v *vault) Token(_ context.Context, use transport.Use) (string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.uses = append(v.uses, use)
	return v.tokens[0], v.err
}

func (v *vault) Refused(_ transport.Use, token string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.refused = append(v.refused, token)
	if len(v.tokens) > 1 {
		v.tokens = v.tokens[1:]
		return true
	}
	return false
}

func withVault(v *vault) func(*transport.Options) {
	return func(o *transport.Options) { o.Token, o.Credential = "", v }
}

// guarded answers those alone that carry the token.
func guarded(good string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+good {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		hello(w, r)
	}
}

func TestARefusedTokenIsReplacedOnceAlsoForWrites(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		for name, tt := range map[string]struct {
			tokens   []string
			requests int
			status   int
		}{
			"a good one":             {[]string{"good-token-1"}, 1, 200},
			"then a good one":        {[]string{"old-token-1", "good-token-1"}, 2, 200},
			"then another bad one":   {[]string{"old-token-1", "old-token-2", "good-token-1"}, 2, 401},
			"and there is no other":  {[]string{"old-token-1"}, 1, 401},
			"also without any retry": {[]string{"old-token-1", "good-token-1"}, 2, 200},
		} {
			v := &vault{tokens: tt.tokens}
			b := newBed(t, guarded("good-token-1"), withVault(v), func(o *transport.Options) { o.Limits.Retries = -1 })
			got := b.do(t.Context(), method, "/x")
			if got.status != tt.status || len(b.Requests()) != tt.requests {
				t.Errorf("%s, %s: status %d after %d requests: %v", method, name, got.status, len(b.Requests()), got.fault)
			}
			for _, token := range tt.tokens[:min(2, len(tt.tokens))] {
				if strings.Contains(b.Scrub("the token "+token), token) && tt.requests == 2 {
					t.Errorf("%s, %s: a token that was used is not redacted", method, name)
				}
			}
		}
	}
}

func TestACredentialIsToldWhatARequestIsFor(t *testing.T) {
	v := &vault{tokens: []string{"good-token-1"}}
	b := newBed(t, hello, withVault(v))
	use := transport.Use{Owner: "octo", Repo: "cluster"}
	b.do(transport.For(t.Context(), use), "GET", "/")
	b.do(transport.ForWrite(transport.For(t.Context(), use)), "POST", "/")
	b.do(t.Context(), "GET", "/")
	write := use
	write.Write = true
	if len(v.uses) != 3 || v.uses[0] != use || v.uses[1] != write || v.uses[2] != (transport.Use{}) {
		t.Errorf("it was told %+v", v.uses)
	}
}

func TestAnotherOriginIsNoneOfTheCredentialsBusiness(t *testing.T) {
	v := &vault{tokens: []string{"good-token-1", "good-token-2"}}
	other := newBed(t, guarded("nobody's"))
	b := newBed(t, hello, withVault(v))
	req, _ := http.NewRequestWithContext(t.Context(), "GET", other.srv.URL, nil)
	if got := b.send(req); got.status != 401 || len(v.uses) != 0 || len(v.refused) != 0 || len(other.Requests()) != 1 {
		t.Errorf("status %d; it was asked %d times and told of %v", got.status, len(v.uses), v.refused)
	}
}

func TestWithoutATokenNothingIsSent(t *testing.T) {
	v := &vault{tokens: []string{""}, err: fault.New(fault.NotFound, "nobody gives one")}
	b := newBed(t, hello, withVault(v))
	if got := b.do(t.Context(), "GET", "/"); got.code() != fault.NotFound || len(b.Requests()) != 0 {
		t.Errorf("got %v after %d requests", got.fault, len(b.Requests()))
	}
	v.err, v.tokens = nil, []string{"two\nlines"}
	if got := b.do(t.Context(), "GET", "/"); got.code() != fault.ProviderDisabled || len(b.Requests()) != 0 {
		t.Errorf("got %v after %d requests", got.fault, len(b.Requests()))
	}
}

// changing is a source whose value a test replaces without a trace, as a file may be.
type changing struct{ value, next string }

func (c *changing) Value() string { return c.value }

func (c *changing) Reread() string {
	c.value = c.next
	return c.value
}

func TestATokenFromASourceIsReadAgainWhenItIsRefused(t *testing.T) {
	source := &changing{"old-token-1", "old-token-1"}
	b := newBed(t, guarded("good-token-1"),
		func(o *transport.Options) { o.Token, o.Credential = "", transport.Replaceable(source) })
	if got := b.do(t.Context(), "POST", "/"); got.status != 401 || len(b.Requests()) != 1 {
		t.Errorf("unchanged: status %d after %d requests", got.status, len(b.Requests()))
	}
	source.next = "good-token-1"
	if got := b.do(t.Context(), "POST", "/"); got.status != 200 {
		t.Errorf("changed: status %d", got.status)
	}
}
