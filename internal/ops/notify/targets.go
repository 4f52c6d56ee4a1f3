package notify

import (
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/claudeops/claudeops/internal/system/transport"
)

// Settings are the configured values, as the operator wrote them; empty means unset.
type Settings struct {
	// AppriseURLs is CLAUDEOPS_APPRISE_URLS: entries separated by white space, or by commas that SCHEME:// follows (other
	// commas are of the URL). See the package's documentation for what an entry can be.
	AppriseURLs string
	// WebhookURL is CLAUDEOPS_WEBHOOK_URL, an http or https URL. A name and password in it go by basic authentication.
	WebhookURL string
	// WebhookSecret is CLAUDEOPS_WEBHOOK_SECRET, which signs. Without it the webhook is sent unsigned.
	WebhookSecret string
	// AllowPlainHTTP is CLAUDEOPS_NOTIFY_PLAIN_HTTP: http:// is used beyond this machine too.
	AllowPlainHTTP bool
}

// Targets are the configured targets of notifications. They hold secrets: printing them prints only their names. The
// zero value has none.
type Targets struct{ list []notifyTarget }

// notifyTarget is one entry of the configuration.
type notifyTarget struct {
	name   string
	server *url.URL // the webhook or the Apprise API server; nil for the command
	notify string   // the notification URL for the command, or for a server that keeps no configuration; "" for neither
	secret string   // the webhook's
	hook   bool     // a webhook, not an Apprise API server
}

// Names returns the targets' names: webhook; apprise-api, a server with its own configuration of recipients;
// apprise-SCHEME, a notification URL such as discord://..., whichever way it is delivered. From the second of a kind on
// they end in a number. Names are not secret. They are the same after a restart with the same configuration, so that a
// waiting notice finds its target again.
func (t Targets) Names() []string {
	out := make([]string, 0, len(t.list))
	for _, one := range t.list {
		out = append(out, one.name)
	}
	return out
}

// Secrets returns the values that must not appear in a text: the URLs and the webhook's secret.
func (t Targets) Secrets() []string {
	var out []string
	for _, one := range t.list {
		if one.server != nil {
			out = append(out, one.server.String())
		}
		out = append(out, one.notify, one.secret)
	}
	return slices.DeleteFunc(out, func(secret string) bool { return secret == "" })
}

// String returns the names.
func (t Targets) String() string { return "[" + strings.Join(t.Names(), " ") + "]" }

// GoString returns the names.
func (t Targets) GoString() string { return "notify.Targets" + t.String() }

// LogValue returns the names.
func (t Targets) LogValue() slog.Value { return slog.StringValue(t.String()) }

// ParseTargets reads the settings. Each problem is a sentence for the operator that holds no part of a URL. An entry
// with a problem is left out, the others remain; only a webhook without a usable secret is kept. It sends no request.
func ParseTargets(s Settings) (Targets, []string) {
	p := parser{allowPlain: s.AllowPlainHTTP, counts: map[string]int{}}
	p.apprise(split(s.AppriseURLs))
	p.webhook(strings.TrimSpace(s.WebhookURL), s.WebhookSecret)
	return Targets{p.targets}, p.problems
}

type parser struct {
	allowPlain bool
	targets    []notifyTarget
	counts     map[string]int // of each kind, for the names
	problems   []string
}

func (p *parser) problem(format string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

// addTarget names the target after its kind and keeps it.
func (p *parser) addTarget(kind string, t notifyTarget) {
	p.counts[kind]++
	t.name = kind
	if n := p.counts[kind]; n > 1 {
		t.name = fmt.Sprintf("%s-%d", kind, n)
	}
	p.targets = append(p.targets, t)
}

// split cuts a list into its entries, without those that are there twice.
func split(list string) (out []string) {
	list = regexp.MustCompile(`,+([A-Za-z0-9]{1,32}://)`).ReplaceAllString(list, " $1")
	for _, entry := range strings.Fields(list) {
		if entry = strings.Trim(entry, ","); entry != "" && !slices.Contains(out, entry) {
			out = append(out, entry)
		}
	}
	return out
}

// schemeOf returns the scheme of a URL in lower case, or "" if it begins with none.
func schemeOf(text string) string {
	scheme := regexp.MustCompile(`^[A-Za-z0-9]{1,32}://.`).FindString(text)
	return strings.ToLower(scheme[:max(len(scheme)-len("://x"), 0)])
}

// apprise reads the entries. Where the server without a configuration stands in the list does not matter.
func (p *parser) apprise(entries []string) {
	var relay *url.URL // the server without a configuration: it is given the notification URLs
	var notify []string
	for i, entry := range entries {
		where := fmt.Sprintf("CLAUDEOPS_APPRISE_URLS, entry %d", i+1)
		switch schemeOf(entry) {
		case "":
			p.problem("%s is not a URL: write it as scheme://..., or percent-encode commas and spaces in the one before it", where)
		case "http", "https":
			server, keyed := p.server(where, entry)
			switch {
			case keyed:
				p.addTarget("apprise-api", notifyTarget{server: server})
			case server != nil && relay != nil:
				p.problem("%s is a second server that ends in /notify: only the first one is used", where)
			case server != nil:
				relay = server
			}
		default:
			if printable(entry) {
				notify = append(notify, entry)
			} else {
				p.problem("%s is not a URL: it is too long or holds characters that no URL has", where)
			}
		}
	}
	for _, entry := range notify {
		p.addTarget("apprise-"+schemeOf(entry), notifyTarget{server: relay, notify: entry})
	}
	if relay != nil && len(notify) == 0 {
		p.addTarget("apprise-api", notifyTarget{server: relay})
	}
}

// server reads the URL of an Apprise API server, nil with a problem. keyed says that it has a configuration under a
// key.
func (p *parser) server(where, entry string) (server *url.URL, keyed bool) {
	if server = p.http(where, entry); server == nil {
		return nil, false
	}
	path := strings.TrimRight(server.Path, "/")
	keyed = regexp.MustCompile(`/notify/[\pL\pN_-]{1,128}$`).MatchString(path) // as in apprise_api/api/urls.py
	if !keyed && !strings.HasSuffix(path, "/notify") {
		p.problem("%s is a web address, but not that of an Apprise API server, which ends in /notify or /notify/KEY: name a "+
			"service by its Apprise URL, such as discord://, slack:// or jsons://", where)
		return nil, false
	}
	return server, keyed
}

// http reads an http or https URL, nil with a problem.
func (p *parser) http(where, text string) *url.URL {
	u, err := url.Parse(text) // the error's text holds the URL
	if err != nil || !printable(text) || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		p.problem("%s is not a URL of the form https://HOST/PATH", where)
		return nil
	}
	if !p.allowPlain && !transport.IsConfidential(u) {
		p.problem("%s would send over plain http beyond this machine: use https, or set CLAUDEOPS_NOTIFY_PLAIN_HTTP=true if "+
			"the network between is trusted", where)
		return nil
	}
	u.Fragment, u.RawFragment = "", ""
	return u
}

func (p *parser) webhook(text, secret string) {
	const minSecret = 16 // bytes
	if text == "" {
		if secret != "" {
			p.problem("CLAUDEOPS_WEBHOOK_SECRET is set, but CLAUDEOPS_WEBHOOK_URL is not: there is no webhook")
		}
		return
	}
	u := p.http("CLAUDEOPS_WEBHOOK_URL", text)
	switch {
	case u == nil:
		return
	case secret == "":
		p.problem("CLAUDEOPS_WEBHOOK_SECRET is not set: the webhook is sent unsigned, and its receiver cannot tell it from " +
			"a forged one")
	case len(secret) < minSecret:
		p.problem("CLAUDEOPS_WEBHOOK_SECRET is shorter than %d bytes: it can be guessed from one webhook", minSecret)
	}
	p.addTarget("webhook", notifyTarget{server: u, secret: secret, hook: true})
}

// printable says whether text is short enough for a URL and holds nothing that a line of a configuration file cannot.
func printable(text string) bool {
	const longest = 4096 // bytes
	return len(text) <= longest && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.IsGraphic(r) || unicode.IsSpace(r)
	})
}
