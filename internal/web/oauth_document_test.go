package web_test

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/oauth"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

const describedAt = "https://example.com/oauth/client.json" // the name of httptest's certificate

const goodDocument = `{"client_id":"` + describedAt + `","client_name":"Claude Code","redirect_uris":` +
	`["http://127.0.0.1/callback","https://claude.example/back?x=1"],"token_endpoint_auth_method":"none",` +
	`"logo_uri":"https://example.com/logo.png"}`

// publisher is the host of programs' documents.
type publisher struct {
	mu     sync.Mutex
	answer http.HandlerFunc
	asked  []string
	down   bool
}

// documentWorld has a program that does not register: its id is the address of its document.
func documentWorld(t testing.TB, change func(*world)) (*program, *publisher, edit) {
	t.Helper()
	host := &publisher{}
	host.says(goodDocument)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host.mu.Lock()
		host.asked = append(host.asked, r.Host+r.URL.RequestURI())
		answer := host.answer
		host.mu.Unlock()
		if r.Method != http.MethodGet || r.Header.Get("Cookie") != "" || r.Header.Get("Authorization") != "" {
			t.Errorf("%s with %v", r.Method, r.Header)
		}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	over := server.Client().Transport.(*http.Transport).Clone() // trusts the certificate
	over.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		host.mu.Lock()
		defer host.mu.Unlock()
		if host.down {
			return nil, errors.New("no route to host")
		}
		return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
	}
	t.Cleanup(over.CloseIdleConnections)
	w := newWorld(t, func(w *world) {
		w.strangers, w.documents = true, oauth.NewDocuments(over, w.Now)
		if change != nil {
			change(w)
		}
	})
	boss := w.boss()
	return w.program(describedAt), host, boss
}

func (h *publisher) says(document string) {
	h.set(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, document)
	})
}

func (h *publisher) set(answer http.HandlerFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = answer
}

func (h *publisher) goes(down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = down
}

// offersDocuments reports whether programs are told that documents are read. They may always register.
func (w *world) offersDocuments() bool {
	w.Helper()
	meta := w.get("/.well-known/oauth-authorization-server")
	offered, said := meta.json["client_id_metadata_document_supported"].(bool)
	if !said || meta.json["registration_endpoint"] == nil {
		w.Fatalf("%s", meta.body)
	}
	return offered
}

func (h *publisher) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.asked)
}

func TestAProgramIsLetInByTheAddressOfItsDocument(t *testing.T) {
	t.Parallel()
	p, host, boss := documentWorld(t, nil)
	if !p.offersDocuments() {
		t.Fatal("documents are not offered")
	}
	if a, _ := p.asked(nil); a.StatusCode != http.StatusSeeOther || host.count() != 0 {
		t.Fatalf("a stranger: %d, and the host was asked %d times", a.StatusCode, host.count())
	}
	p.refusedWith(p.exchange(strings.Repeat("A", 43), nil), "invalid_client") // nobody has let it in
	page, form := p.asked(nil, boss)
	d := p.read(page, "/oauth/authorize", 200)
	d.has("Described by", "example.com", "Claude Code", "Any program on your computer can say that it is the one "+
		"of example.com", "a program on your computer (127.0.0.1:7777)")
	d.lacks("Anybody can give a program that name", "logo")
	far, _ := p.asked(url.Values{"redirect_uri": {"https://claude.example/back?x=1"}}, boss)
	p.says(far, "Check that you know the address that the answer goes to")
	form.Set("tier", "2")
	access, refresh := p.keys(p.exchange(p.back(p.answered("allow", form, page, boss)).Get("code"), nil))
	made := p.tokenNamed("boss by Claude Code")
	if made.ClientID != describedAt || made.Client != "Claude Code" || made.MaxTier != 2 || !p.letsIn(access) {
		t.Errorf("%+v", made)
	}
	p.page("/tokens", 200, boss).has("boss by Claude Code", "let in by consent, described by example.com")
	p.says(p.get("/api/v1/tokens", boss), `"client_domain":"example.com"`)
	for _, action := range []string{"oauth.allow", "oauth.grant"} {
		if got := p.rows(action); len(got) != 1 || !strings.Contains(got[0].Message, describedAt) {
			t.Errorf("%s: %+v", action, got)
		}
	}
	// what its document says later changes nothing of what it was given
	host.says(`{"client_id":"` + describedAt + `","redirect_uris":["https://claude.example/other"]}`)
	p.advance(15 * time.Minute)
	access, refresh = p.keys(p.refresh(refresh, nil))
	if !p.letsIn(access) || host.count() != 1 {
		t.Errorf("the host was asked %d times", host.count())
	}
	if a, _ := p.asked(nil, boss); a.StatusCode != http.StatusBadRequest || host.count() != 2 {
		t.Errorf("asked anew: %d, and the host was asked %d times", a.StatusCode, host.count())
	}
	p.refusedWith(p.refresh("x", nil), "invalid_grant")
	if row := p.rows("oauth.refuse")[0]; row.Caller != describedAt {
		t.Errorf("%+v", row)
	}
	if a := p.submit("/tokens/"+made.ID+"/revoke", nil, boss); a.StatusCode != http.StatusSeeOther || p.letsIn(access) {
		t.Errorf("it was cut off, and is let in: %d", a.StatusCode)
	}
	p.refusedWith(p.refresh(refresh, nil), "invalid_grant")
}

// Each is refused on our page, is recorded, and brings nothing into the records. asks are the requests to the host.
func TestAProgramWithoutAGoodDocumentIsRefused(t *testing.T) {
	t.Parallel()
	p, host, boss := documentWorld(t, nil)
	answers := func(status int, header, value, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set(header, value)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	by := func(id string) url.Values { return url.Values{"client_id": {id}} }
	good := func(header, value string) http.HandlerFunc { return answers(200, header, value, goodDocument) }
	for name, c := range map[string]struct {
		change url.Values
		answer http.HandlerFunc
		asks   int
		says   string
	}{
		"no document":      {nil, answers(404, "X", "x", goodDocument), 1, "the answer is 404"},
		"a redirect":       {nil, answers(302, "Location", "/other", goodDocument), 1, "the answer is 302"},
		"created":          {nil, answers(201, "X", "x", goodDocument), 1, "the answer is 201"},
		"a page":           {nil, good("Content-Type", "text/html"), 1, "not called JSON"},
		"no type":          {nil, good("Content-Type", ""), 1, "not called JSON"},
		"a type alike":     {nil, good("Content-Type", "text/x+json"), 1, "not called JSON"},
		"another encoding": {nil, good("Content-Encoding", "gzip"), 1, "could not be asked"},
		"a large one":      {nil, answers(200, "X", "x", goodDocument+strings.Repeat(" ", 5<<10)), 1, "more than 5 KiB"},
		"a bomb": {nil, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, strings.Repeat(" ", 8<<20)+goodDocument)
			_ = z.Close()
		}, 1, "more than 5 KiB"},
		"one cut short": {nil, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "9999")
			good("X", "x")(w, r)
		}, 1, "could not be asked"},
		"another program": {nil, answers(200, "X", "x", strings.Replace(goodDocument, "client.json", "other.json", 1)), 1,
			"about another program"},
		"an address that it lacks": {url.Values{"redirect_uri": {"https://evil.example/callback"}}, good("X", "x"), 1,
			"sent nowhere"},
		"by plain http":       {by("http://example.com/oauth/client.json"), good("X", "x"), 0, "has not registered"},
		"in capital letters":  {by("HTTPS://example.com/oauth/client.json"), good("X", "x"), 0, "sent nowhere"},
		"with a query":        {by(describedAt + "?x=1"), good("X", "x"), 0, "sent nowhere"},
		"with a user":         {by("https://u@example.com/oauth/client.json"), good("X", "x"), 0, "sent nowhere"},
		"on this machine":     {by("https://127.0.0.1/oauth/client.json"), good("X", "x"), 0, "sent nowhere"},
		"two of them":         {url.Values{"client_id": {"", ""}}, good("X", "x"), 0, "begin again"},
		"with steps upwards":  {by("https://example.com/x/../oauth/client.json"), good("X", "x"), 0, "sent nowhere"},
		"a very long address": {by(describedAt + strings.Repeat("x", 300)), good("X", "x"), 0, "sent nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			p.advance(time.Hour)
			host.set(c.answer)
			before, rows, asked := p.written(), len(p.rows("oauth.refuse")), host.count()
			a, _ := p.asked(c.change, boss)
			if a.StatusCode < 400 || a.Header.Get("Location") != "" || !strings.Contains(string(a.body), c.says) {
				t.Errorf("%d %v: %s", a.StatusCode, a.Header, a.body)
			}
			if got := host.count() - asked; got != c.asks {
				t.Errorf("the host was asked %d times", got)
			}
			if p.written() != before || len(p.rows("oauth.refuse")) != rows+1 {
				t.Error("it is not recorded, or more than that is")
			}
			if _, found, err := p.store.Access.FindClient(t.Context(), p.id); found || err != nil {
				t.Errorf("it is kept: %v", err)
			}
		})
	}
	p.advance(time.Hour)
	for i, answer := range []http.HandlerFunc{answers(404, "X", "x", ""), good("X", "x"), good("X", "x")} {
		host.set(answer) // it is not asked again for half a minute after it has failed
		asked := host.count()
		a, _ := p.asked(nil, boss)
		if want := []int{404, 404, 200}[i]; want == 404 && !strings.Contains(string(a.body), "the answer is 404") ||
			want == 200 && a.StatusCode != 200 || host.count()-asked != []int{1, 0, 1}[i] {
			t.Errorf("%d: %d %s", i, a.StatusCode, a.body)
		}
		p.advance(time.Duration(i) * 30 * time.Second)
	}
}

// What a program is told of its request is the same, whichever way it is known.
func TestAProgramWithADocumentMayWhatARegisteredOneMay(t *testing.T) {
	t.Parallel()
	p, host, boss := documentWorld(t, nil)
	registered := p.register()
	for name, change := range map[string]url.Values{
		"a token at once":              {"response_type": {"token"}},
		"no PKCE":                      {"code_challenge": nil},
		"another scope":                {"scope": {"admin"}},
		"another resource":             {"resource": {"https://other.example/mcp"}},
		"two addresses":                {"redirect_uri": {callback, callback}},
		"another path":                 {"redirect_uri": {callback + "/x"}},
		"another port":                 {"redirect_uri": {"http://127.0.0.1:1/callback"}},
		"another name of this machine": {"redirect_uri": {"http://localhost:7777/callback"}},
		"another query":                {"redirect_uri": {"https://claude.example/back?x=2"}},
		"nothing wrong":                nil,
	} {
		p.advance(time.Second)
		one, _ := p.asked(change, boss)
		two, _ := registered.asked(change, boss)
		if one.StatusCode != two.StatusCode || one.Header.Get("Location") != two.Header.Get("Location") {
			t.Errorf("%s: %d %v, %d %v", name, one.StatusCode, one.Header, two.StatusCode, two.Header)
		}
	}
	for name, change := range map[string]url.Values{
		"another verifier": {"code_verifier": {strings.Repeat("w", 43)}},
		"another program":  {"client_id": {registered.id}},
		"another address":  {"redirect_uri": {"http://127.0.0.1:1/callback"}},
		"a secret":         {"client_secret": {"x"}},
		"twice":            nil,
	} {
		p.advance(time.Minute)
		one, two := p.code(boss), registered.code(boss)
		if name == "another program" {
			two = p.code(boss)
		}
		if name == "twice" {
			p.keys(p.exchange(one, nil))
			registered.keys(registered.exchange(two, nil))
		}
		a, b := p.exchange(one, change), registered.exchange(two, change)
		if a.StatusCode < 400 || a.StatusCode != b.StatusCode || a.json["error"] != b.json["error"] {
			t.Errorf("%s: %s, %s", name, a.body, b.body)
		}
	}
	if host.count() != 1 {
		t.Errorf("the host was asked %d times", host.count())
	}
}

// Nobody makes the server ask hosts as often as they like, and nobody is shut out by others who try.
func TestHostsAreAskedWithinBounds(t *testing.T) {
	t.Parallel()
	p, host, boss := documentWorld(t, func(w *world) { w.anonymous = true })
	ask := func(i int, who ...edit) reply {
		id := fmt.Sprintf("https://example.com/%d.json", i)
		a, _ := p.asked(url.Values{"client_id": {id}}, append(who, func(r *http.Request) {
			r.RemoteAddr = fmt.Sprintf("127.0.0.%d:1", 1+i%100)
		})...)
		return a
	}
	if a := ask(0); a.StatusCode != http.StatusSeeOther || host.count() != 0 {
		t.Errorf("who may read without a token: %d %s", a.StatusCode, a.body)
	}
	for i := range 30 {
		want := http.StatusBadRequest
		if i >= 10 {
			want = http.StatusTooManyRequests
		}
		if a := ask(i, boss); a.StatusCode != want {
			t.Fatalf("request %d: %d %s", i, a.StatusCode, a.body)
		}
	}
	if host.count() != 10 || len(p.rows("oauth.refuse")) == 0 {
		t.Errorf("the host was asked %d times", host.count())
	}
	ann := with(p.signIn(p.token("ann", gitprovider.TierObserve, "read")))
	if a, _ := p.asked(nil, ann); a.StatusCode != http.StatusOK {
		t.Errorf("somebody else: %d %s", a.StatusCode, a.body)
	}
	if a, _ := p.asked(nil, boss); a.StatusCode != http.StatusOK || host.count() != 11 {
		t.Errorf("what is known: %d, and the host was asked %d times", a.StatusCode, host.count())
	}
	p.advance(time.Minute)
	for range 10 { // at the door, registrations count too
		p.register()
	}
	asked := host.count()
	if a := ask(0, boss); a.StatusCode != http.StatusTooManyRequests || host.count() != asked {
		t.Errorf("after ten registrations: %d, and the host was asked %d times", a.StatusCode, host.count()-asked)
	}
}

// Browsers that come at once wait for one answer.
func TestAHostIsAskedOnceForManyBrowsers(t *testing.T) {
	t.Parallel()
	p, host, boss := documentWorld(t, nil)
	atOnce(8, func(int) {
		a, _ := p.asked(nil, boss)
		p.status(a, http.StatusOK)
	})
	if host.count() != 1 {
		t.Errorf("the host was asked %d times", host.count())
	}
}

// A consent is for what the page has shown, and a name may be another one by the time that the form comes.
func TestAConsentIsForTheNameThatWasShown(t *testing.T) {
	t.Parallel()
	p, host, boss := documentWorld(t, nil)
	page, form := p.asked(nil, boss)
	form.Set("tier", "2")
	host.says(strings.Replace(goodDocument, "Claude Code", "Other Code", 1))
	p.advance(15 * time.Minute)
	before := p.written()
	if a := p.answered("allow", form, page, boss); a.StatusCode != http.StatusForbidden || p.written() != before ||
		!strings.Contains(string(a.body), "calls itself otherwise") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	form.Set("shown_name", "Other Code")
	if a := p.answered("allow", form, page, boss); a.StatusCode != http.StatusForbidden || p.written() != before {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

// Where no host can be reached, programs are told to register.
func TestAServerWithoutTheInternetOffersRegistration(t *testing.T) {
	t.Parallel()
	p, host, boss := documentWorld(t, nil)
	host.goes(true)
	if a, _ := p.asked(nil, boss); a.StatusCode != http.StatusBadGateway || !strings.Contains(string(a.body),
		"may register itself") || p.offersDocuments() || len(p.rows("oauth.refuse")) != 1 {
		t.Errorf("%d, %v: %s", a.StatusCode, p.offersDocuments(), a.body)
	}
	p.advance(time.Minute)
	host.goes(false)
	if a, _ := p.asked(nil, boss); a.StatusCode != http.StatusOK || !p.offersDocuments() {
		t.Errorf("%d, %v: %s", a.StatusCode, p.offersDocuments(), a.body)
	}
	p.advance(time.Hour)
	host.goes(true)
	other := url.Values{"client_id": {"https://other.example/c"}}
	if a, _ := p.asked(other, boss); a.StatusCode != http.StatusBadGateway || p.offersDocuments() {
		t.Errorf("%d, %v", a.StatusCode, p.offersDocuments())
	}
	if p.advance(time.Hour); !p.offersDocuments() {
		t.Error("it is offered no more")
	}
	none, off := programWorld(t, nil) // the operator has switched it off
	none.id = describedAt
	a, _ := none.asked(nil, off)
	if a.StatusCode != http.StatusBadRequest || !strings.Contains(string(a.body), "reads none") ||
		none.offersDocuments() {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}
