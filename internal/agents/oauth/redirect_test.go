package oauth

import (
	"net/url"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/system/transport"
)

func TestABrowserGoesBackToWhatWasRegistered(t *testing.T) {
	for name, c := range map[string]struct {
		registered, given string
		want              bool
	}{
		"the same":                   {"https://a.example/cb", "https://a.example/cb", true},
		"this machine, any port":     {"http://127.0.0.1/cb", "http://127.0.0.1:4711/cb", true},
		"this machine, another port": {"http://localhost:1/cb", "http://localhost:2/cb", true},
		"this machine over IPv6":     {"http://[::1]/cb", "http://[::1]:9/cb", true},
		"a program":                  {"com.example.app:/cb", "com.example.app:/cb", true},
		"Cursor": {"cursor://anysphere.cursor-mcp/oauth/callback",
			"cursor://anysphere.cursor-mcp/oauth/callback", true},
		"another host":                 {"https://a.example/cb", "https://b.example/cb", false},
		"a host that begins so":        {"https://a.example/cb", "https://a.example.evil.example/cb", false},
		"another port elsewhere":       {"https://a.example/cb", "https://a.example:444/cb", false},
		"another letter case":          {"https://a.example/cb", "https://a.example/CB", false},
		"a longer path":                {"http://127.0.0.1/cb", "http://127.0.0.1:1/cb/x", false},
		"another query":                {"http://127.0.0.1/cb", "http://127.0.0.1:1/cb?x=1", false},
		"another name of this machine": {"http://127.0.0.1/cb", "http://localhost:1/cb", false},
		"https on this machine":        {"http://127.0.0.1/cb", "https://127.0.0.1/cb", false},
		"a user in front":              {"http://127.0.0.1/cb", "http://127.0.0.1:1@evil.example/cb", false},
		"a user of this machine":       {"http://127.0.0.1/cb", "http://evil@127.0.0.1:1/cb", false},
		"a backslash":                  {"http://127.0.0.1/cb", `http://127.0.0.1\@evil.example/cb`, false},
		"a fragment":                   {"http://127.0.0.1/cb", "http://127.0.0.1:1/cb#x", false},
		"a script":                     {"javascript:alert(1)", "javascript:alert(1)", false},
		"a script with dots":           {"java.script:alert('1')", "java.script:alert('1')", false},
		"a file":                       {"file:///etc/passwd", "file:///etc/passwd", false},
		"http elsewhere":               {"http://a.example/cb", "http://a.example/cb", false},
		"nothing":                      {"", "", false},
		"letters of another alphabet":  {"https://%D0%B0pple.com/cb", "https://%D0%B0pple.com/cb", false},
		"a dot of another alphabet":    {"https://good.example%E3%80%82evil.example/", "https://good.example%E3%80%82evil.example/", false},
		"escaped ASCII":                {"https://%61pple.com/cb", "https://%61pple.com/cb", false},
		"every host":                   {"https://*/cb", "https://*/cb", false},
		"hosts below one":              {"https://*.example/cb", "https://*.example/cb", false},
		"a dot in front":               {"https://.a.example/cb", "https://.a.example/cb", false},
		"a dot behind":                 {"https://a.example./cb", "https://a.example./cb", false},
		"its ASCII form":               {"https://xn--pple-43d.com/cb", "https://xn--pple-43d.com/cb", true},
		"an address of the internet":   {"https://[2001:db8::1]:8443/cb", "https://[2001:db8::1]:8443/cb", true},
		"the same in capital letters":  {"HTTPS://a.example/cb", "HTTPS://a.example/cb", true},
	} {
		if got := redirectMatches(c.registered, c.given); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Whatever is registered and given: a browser that is sent somewhere is sent to the host that was registered.
func FuzzMatches(f *testing.F) {
	for _, seed := range []string{"https://a.example/cb", "http://127.0.0.1:1/cb?x=1", "http://[::1]/", "com.example:/x",
		"http://127.0.0.1:1@evil/", "http://localhost:99999/", "https://a%2eexample/", "http://127.0.0.1:/cb"} {
		f.Add(seed, seed)
		f.Add("http://127.0.0.1/cb", seed)
	}
	f.Fuzz(func(t *testing.T, registered, given string) {
		if !redirectMatches(registered, given) {
			return
		}
		to, err := url.Parse(answerAt(given, url.Values{"code": {"x"}}))
		from, _ := url.Parse(registered)
		if err != nil || to.Scheme != from.Scheme || to.Hostname() != from.Hostname() || to.User != nil ||
			to.Fragment != "" || to.Path != from.Path {
			t.Fatalf("%q leads to %q", registered, to)
		}
		if registered != given && (to.Scheme != "http" || !transport.IsLoopback(to.Hostname())) {
			t.Fatalf("%q leads to another one, %q", registered, given)
		}
		if source := FormAction(given); source == "" || strings.ContainsAny(source, " ;,'\r\n") {
			t.Fatalf("%q lets forms be sent to %q", given, source)
		}
	})
}
