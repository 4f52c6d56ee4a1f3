package oauth

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/transport"
)

const described = "https://claude.example/oauth/client.json"

func TestAnIDIsTheAddressOfADocument(t *testing.T) {
	for id, want := range map[string]bool{
		described: true,
		"https://claude.ai/oauth/claude-code-client-metadata": true,
		"https://chatgpt.com/oauth/codex/client.json":         true,
		"https://a.example:8443/c":                            true,
		"https://a.example/c/":                                true,
		"https://xn--pple-43d.com/c":                          true,
		"http://a.example/c":                                  false,
		"HTTPS://a.example/c":                                 false,
		"https://A.example/c":                                 false,
		"https://a.example":                                   false,
		"https://a.example/":                                  false,
		"https://a.example//c":                                false,
		"https://a.example/./c":                               false,
		"https://a.example/x/../c":                            false,
		"https://a.example/c/..":                              false,
		"https://a.example/%2e%2e/c":                          false,
		"https://a.example/c%2fd":                             false,
		"https://a.example/c?x=1":                             false,
		"https://a.example/c?":                                false,
		"https://a.example/c#":                                false,
		"https://a.example/c#x":                               false,
		"https://u@a.example/c":                               false,
		"https://u:p@a.example/c":                             false,
		"https://a.example@evil.example/c":                    false,
		`https://a.example\@evil.example/c`:                   false,
		"https://a.example:/c":                                false,
		"https://a.example:x/c":                               false,
		"https://a.example./c":                                false,
		"https://.example/c":                                  false,
		"https://*.example/c":                                 false,
		"https://аpple.example/c":                             false,
		"https://%D0%B0pple.com/c":                            false,
		"https://a.example/ü":                                 false,
		"https://a.example/c c":                               false,
		"https://a.example/c\n":                               false,
		" https://a.example/c":                                false,
		"https:a.example/c":                                   false,
		"https:///c":                                          false,
		"https://localhost/c":                                 false,
		"https://intranet/c":                                  false,
		"https://127.0.0.1/c":                                 false,
		"https://1.1.1.1/c":                                   false,
		"https://[::1]/c":                                     false,
		"https://[2606:4700::1111]/c":                         false,
		"https://a.example/" + strings.Repeat("c", 300):       false,
		"": false,
	} {
		if _, got := parseDocumentID(id); got != want {
			t.Errorf("%q: %t", id, got)
		}
	}
}

// document is what is said by a good document, with one thing changed.
func documentWith(change string) string {
	members := map[string]string{"client_id": `"` + described + `"`, "client_name": `"Claude Code"`,
		"redirect_uris": `["http://localhost/callback","http://127.0.0.1/callback"]`, "token_endpoint_auth_method": `"none"`,
		"grant_types": `["authorization_code","refresh_token"]`, "response_types": `["code"]`,
		"logo_uri": `"http://169.254.169.254/"`, "unknown": `{"a":[1]}`}
	if name, value, found := strings.Cut(change, "="); found {
		members[name] = value
		if value == "" {
			delete(members, name)
		}
	}
	var out []string
	for name, value := range members {
		out = append(out, fmt.Sprintf("%q:%s", name, value))
	}
	return "{" + strings.Join(out, ",") + "}"
}

func TestADocumentSaysWhatAProgramIs(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"a good one":       {documentWith(""), ""},
		"no method":        {documentWith("token_endpoint_auth_method="), ""},
		"no JSON":          {"<html>", "not a JSON object"},
		"nothing":          {"", "not a JSON object"},
		"null":             {"null", "about another program"},
		"a list":           {"[" + documentWith("") + "]", "not a JSON object"},
		"two of them":      {documentWith("") + documentWith(""), "not a JSON object"},
		"an id twice":      {documentWith(`x=1,"client_id":"` + described + `"`), "not a JSON object"},
		"a stranger twice": {documentWith(`x=1,"x":2`), "not a JSON object"},
		"twice within":     {documentWith(`x={"y":1,"y":1}`), "not a JSON object"},
		"no UTF-8":         {documentWith("client_name=\"\xff\""), "not a JSON object"},
		"another type":     {documentWith(`redirect_uris="https://a.example/"`), "not a JSON object"},
		"no id":            {documentWith("client_id="), "another program"},
		"other letters":    {documentWith(`client_id="` + strings.ToUpper(described) + `"`), "another program"},
		"a longer id":      {documentWith(`client_id="` + described + `/"`), "another program"},
		"an escaped id":    {documentWith(`client_id="https://claude.example/oauth/%63lient.json"`), "another program"},
		"another case":     {strings.Replace(documentWith(""), `"client_id"`, `"Client_ID"`, 1), "another program"},
		"a secret":         {documentWith(`client_secret="x"`), "a secret"},
		"a secret's end":   {documentWith(`client_secret_expires_at=0`), "a secret"},
		"a key":            {documentWith(`token_endpoint_auth_method="private_key_jwt"`), "must be none"},
		"a password":       {documentWith(`token_endpoint_auth_method="client_secret_basic"`), "must be none"},
		"no way back":      {documentWith("redirect_uris=[]"), "1 to 10 addresses"},
		"a script":         {documentWith(`redirect_uris=["javascript:alert(1)"]`), "a redirect address"},
		"http elsewhere":   {documentWith(`redirect_uris=["https://a.example/","http://a.example/"]`), "a redirect address"},
		"a person's name":  {documentWith(`client_name="gitea:boss"`), "looks like the name"},
		"other grants":     {documentWith(`grant_types=["client_credentials"]`), "authorization_code"},
		"other responses":  {documentWith(`response_types=["token"]`), "code"},
	} {
		got, err := readDocument(described, []byte(c.body), nil)
		if c.want == "" && (err != nil || got.Name != "Claude Code" || got.ID != described || len(got.Redirects) != 2) ||
			c.want != "" && (fault.CodeOf(err) != fault.InvalidArgument || !strings.Contains(err.Error(), c.want) ||
				got.ID != "") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestADocumentCountsWithinBounds(t *testing.T) {
	for given, want := range map[string]time.Duration{
		"":                                   15 * time.Minute,
		"max-age=1":                          15 * time.Minute,
		"public, Max-Age=7200":               2 * time.Hour,
		"max-age=7200; Age=3600":             time.Hour,
		"max-age=7200; Age=99999999":         15 * time.Minute,
		"max-age=2147483647":                 24 * time.Hour,
		"max-age=99999999999999999999":       15 * time.Minute,
		"max-age=-1":                         15 * time.Minute,
		"max-age=7200, no-store":             15 * time.Minute,
		"no-cache=\"set-cookie\", max-age=9": 15 * time.Minute,
	} {
		control, age, _ := strings.Cut(given, "; Age=")
		if got := lifeOf(http.Header{"Cache-Control": {control}, "Age": {age}}); got != want {
			t.Errorf("%s: %s", given, got)
		}
	}
}

// A name that turns out to be this machine when it is connected to, as after DNS was changed, is not asked. The
// addresses that count as private are those of transport.IsPublic, for every Client.
func TestADocumentIsNotReadFromAPrivateAddress(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer server.Close()
	d := NewDocuments(transport.NewPool(nil), time.Now)
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]"} {
		at := &url.URL{Scheme: "https", Host: host + server.URL[strings.LastIndexByte(server.URL, ':'):], Path: "/c"}
		_, _, reached, err := d.fetch(t.Context(), described, at, nil)
		if fault.CodeOf(err) != fault.InvalidArgument || !strings.Contains(err.Error(), "not on the internet") || reached {
			t.Errorf("%s: %v", host, err)
		}
	}
	plain := &url.URL{Scheme: "http", Host: "claude.example", Path: "/c"}
	if _, _, _, err := d.fetch(t.Context(), described, plain, nil); fault.CodeOf(err) != fault.InvalidArgument {
		t.Errorf("by plain http: %v", err)
	}
	if asked.Load() != 0 || !d.Offered() {
		t.Errorf("%d requests", asked.Load())
	}
}

// A host that does not come to an end, in its answer or before it, holds a browser up for a while only.
func TestADocumentIsWaitedForWithinBounds(t *testing.T) {
	for name, begin := range map[string]string{"no answer": "", "half of an answer": "{"} {
		var asked atomic.Int64
		ended := make(chan struct{}, 10)
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			w.Header().Set("Content-Type", "application/json")
			if begin != "" {
				_, _ = w.Write([]byte(begin))
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
			ended <- struct{}{}
			panic(http.ErrAbortHandler) // or the answer would come to an end after all
		}))
		at, _ := url.Parse(server.URL + "/c")
		// On a busy machine it may take a while until the host is asked.
		for limit := 100 * time.Millisecond; asked.Load() == 0; limit *= 4 {
			d := newDocuments(server.Client().Transport, time.Now, limit)
			if _, _, _, err := d.fetch(t.Context(), described, at, nil); fault.CodeOf(err) != fault.UpstreamError {
				t.Fatalf("%s: %v", name, err)
			}
		}
		<-ended
		server.Close()
	}
}

// Whatever a document says: a program that it describes has the id that was asked for, and what may be registered.
func FuzzDocument(f *testing.F) {
	f.Add(described, documentWith(""))
	f.Add("https://a.example/c", `{"client_id":"https://a.example/c","redirect_uris":["com.example:/x"]}`)
	f.Add("https://a.example/%2e/c", `{"client_id":"https:\/\/a.example\/c","redirect_uris":["https://a/"],"client_name":"\u202e"}`)
	f.Fuzz(func(t *testing.T, id, body string) {
		at, ok := parseDocumentID(id)
		if ok && (at.String() != id || !strings.HasPrefix(id, "https://"+at.Host+"/") || at.User != nil ||
			strings.Contains(id, "..")) {
			t.Fatalf("%q is %q", id, at)
		}
		got, err := readDocument(id, []byte(body), nil)
		if err != nil {
			return
		}
		if got.ID != id || got.Name == "" || strings.ContainsAny(got.Name, "\r\n\x00") || len(got.Redirects) == 0 {
			t.Fatalf("%+v", got)
		}
		for _, r := range got.Redirects {
			if !redirectMatches(r, r) {
				t.Fatalf("%q may not be registered", r)
			}
		}
	})
}
