package notify

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Settings are the configured values, as the operator wrote them; empty means unset.
type Settings struct {
	// AppriseURLs is CLAUDEOPS_APPRISE_URLS: at most 32 entries, separated by white space, or by commas where the next
	// entry's scheme:// follows (a comma within a URL stays). See the package's documentation for what an entry can be.
	AppriseURLs string
	// WebhookURL is CLAUDEOPS_WEBHOOK_URL, an http or https URL. A name and password in it go by basic authentication.
	WebhookURL string
	// WebhookSecret is CLAUDEOPS_WEBHOOK_SECRET, which signs. Without it the webhook is sent unsigned.
	WebhookSecret string
	// AllowPlainHTTP is CLAUDEOPS_NOTIFY_PLAIN_HTTP: http:// is used beyond this machine too.
	AllowPlainHTTP bool
}

const (
	maxEntries = 32
	maxEntry   = 4096 // bytes
	minSecret  = 16   // bytes
)

// ParseTargets reads the settings. Each problem is a sentence for the operator that holds no part of a URL. An entry
// with a problem is left out, the others stand; only a webhook without a good secret is kept. It contacts nobody.
func ParseTargets(s Settings) (Targets, []string) {
	p := parser{allowPlain: s.AllowPlainHTTP, counts: map[string]int{}}
	p.apprise(split(s.AppriseURLs))
	p.webhook(strings.TrimSpace(s.WebhookURL), s.WebhookSecret)
	return Targets{p.targets}, p.problems
}

type parser struct {
	allowPlain bool
	targets    []target
	counts     map[string]int // of each kind, for the names
	problems   []string
}

func (p *parser) problem(format string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

// add names the target after its kind and keeps it.
func (p *parser) add(kind string, t target) {
	p.counts[kind]++
	t.name = kind
	if n := p.counts[kind]; n > 1 {
		t.name = fmt.Sprintf("%s-%d", kind, n)
	}
	p.targets = append(p.targets, t)
}

// split cuts a list into its entries.
func split(list string) []string {
	var out []string
	for _, field := range strings.FieldsFunc(list, unicode.IsSpace) {
		begin := 0
		for i := range len(field) {
			if field[i] == ',' && (begin == i || i == len(field)-1 || schemeOf(field[i+1:]) != "" || field[i+1] == ',') {
				out = append(out, field[begin:i])
				begin = i + 1
			}
		}
		out = append(out, field[begin:])
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// schemeOf is the scheme of text in lower case, or "" if it does not begin with one: 1 to 32 letters and digits and
// "://", as Apprise has it (URL_DETECTION_RE in apprise/utils/parse.py), and something after it.
func schemeOf(text string) string {
	const longest = 32
	scheme, rest, ok := strings.Cut(text[:min(len(text), longest+len("://x"))], "://")
	if !ok || rest == "" || scheme == "" || len(scheme) > longest {
		return ""
	}
	scheme = strings.ToLower(scheme)
	if strings.ContainsFunc(scheme, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
		return ""
	}
	return scheme
}

// apprise reads the entries. The server without a configuration, if there is one, is found first, since the place in
// the list does not matter.
func (p *parser) apprise(entries []string) {
	if len(entries) > maxEntries {
		p.problem("CLAUDEOPS_APPRISE_URLS has %d entries: those after the first %d are left out", len(entries), maxEntries)
		entries = entries[:maxEntries]
	}
	var relay *url.URL // is given the notification URLs
	relays := 0
	var notify []string
	for i, entry := range entries {
		where := fmt.Sprintf("CLAUDEOPS_APPRISE_URLS, entry %d", i+1)
		switch scheme := schemeOf(entry); {
		case !printable(entry) || scheme == "":
			p.problem("%s is no URL: write it as scheme://..., or percent-encode commas and spaces in the one before it",
				where)
		case slices.Contains(entries[:i], entry):
			p.problem("%s is there twice: it is told once", where)
		case scheme != "http" && scheme != "https":
			notify = append(notify, entry)
		default:
			server, keyed, ok := p.server(where, entry)
			if !ok {
				continue
			}
			if keyed {
				p.add("apprise-api", target{server: server})
				continue
			}
			if relays++; relays > 1 {
				p.problem("%s is a second server that ends in /notify: only the first one is used", where)
				continue
			}
			relay = server
		}
	}
	for _, entry := range notify {
		p.add("apprise-"+schemeOf(entry), target{server: relay, notify: entry})
	}
	if relay != nil && len(notify) == 0 {
		p.add("apprise-api", target{server: relay})
	}
}

// server reads the URL of an Apprise API server. keyed says that it has a configuration under a key.
func (p *parser) server(where, entry string) (server *url.URL, keyed, ok bool) {
	server, ok = p.http(where, entry)
	if !ok {
		return nil, false, false
	}
	segments := strings.Split(strings.Trim(server.Path, "/"), "/")
	n := len(segments)
	switch {
	case n > 1 && segments[n-2] == "notify" && isKey(segments[n-1]):
		return server, true, true
	case segments[n-1] == "notify":
		return server, false, true
	}
	p.problem("%s is a web address, but not that of an Apprise API server, which ends in /notify or /notify/KEY: name a "+
		"service by its Apprise URL, such as discord://, slack:// or jsons://", where)
	return nil, false, false
}

// isKey knows the keys of the server (apprise_api/api/urls.py).
func isKey(text string) bool {
	return text != "" && len(text) <= 128 && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '_' && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// http reads an http or https URL.
func (p *parser) http(where, text string) (*url.URL, bool) {
	u, err := url.Parse(text) // the error's text holds the URL
	if err != nil || !printable(text) || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		p.problem("%s is no URL of the form https://HOST/PATH", where)
		return nil, false
	}
	if u.Scheme == "http" && !p.allowPlain && !loopback(u.Hostname()) {
		p.problem("%s would send over plain http beyond this machine: use https, or set CLAUDEOPS_NOTIFY_PLAIN_HTTP=true if "+
			"the network between is trusted", where)
		return nil, false
	}
	u.Fragment, u.RawFragment = "", ""
	return u, true
}

func (p *parser) webhook(text, secret string) {
	if text == "" {
		if secret != "" {
			p.problem("CLAUDEOPS_WEBHOOK_SECRET is set, but CLAUDEOPS_WEBHOOK_URL is not: there is no webhook")
		}
		return
	}
	u, ok := p.http("CLAUDEOPS_WEBHOOK_URL", text)
	if !ok {
		return
	}
	switch {
	case secret == "":
		p.problem("CLAUDEOPS_WEBHOOK_SECRET is not set: the webhook is sent unsigned, and its receiver cannot tell it from " +
			"a forged one")
	case len(secret) < minSecret:
		p.problem("CLAUDEOPS_WEBHOOK_SECRET is shorter than %d bytes: it can be guessed from one webhook", minSecret)
	}
	p.add("webhook", target{server: u, secret: secret, hook: true})
}

// printable says whether text is short enough for a URL and holds nothing that a line of a configuration file cannot.
func printable(text string) bool {
	return len(text) <= maxEntry && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsGraphic(r) || unicode.IsSpace(r)
	})
}

// loopback says whether host is this machine by its literal form; no name is looked up.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
