package notify

import (
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Targets are those whom the operator wants to be told. They hold secrets: whatever prints them prints their names. The
// zero value has none.
type Targets struct{ list []target }

// target is one entry of the configuration.
type target struct {
	name   string
	server *url.URL // the webhook or the Apprise API server; nil for the command
	notify string   // the notification URL for the command, or for a server that keeps no configuration; "" for neither
	secret string   // the webhook's
	hook   bool     // a webhook, not an Apprise API server
}

// Names are the targets' names: webhook; apprise-api, a server that knows whom to tell; apprise-SCHEME, a notification
// URL such as discord://..., whoever delivers it. From the second of a kind on they end in a number. Names are no
// secrets. They are the same after a restart with the same configuration, so that a notice which waits finds its target
// again.
func (t Targets) Names() []string {
	out := make([]string, 0, len(t.list))
	for _, one := range t.list {
		out = append(out, one.name)
	}
	return out
}

// Secrets are the values that must not appear in a text: the URLs and the webhook's secret.
func (t Targets) Secrets() []string {
	var out []string
	for _, one := range t.list {
		if one.server != nil {
			out = append(out, one.server.String())
		}
		for _, secret := range []string{one.notify, one.secret} {
			if secret != "" {
				out = append(out, secret)
			}
		}
	}
	return out
}

// String is the names.
func (t Targets) String() string { return "[" + strings.Join(t.Names(), " ") + "]" }

// GoString is the names.
func (t Targets) GoString() string { return "notify.Targets" + t.String() }

// LogValue is the names.
func (t Targets) LogValue() slog.Value { return slog.StringValue(t.String()) }

// SenderOptions vary how messages are sent. The zero value is ready for use.
type SenderOptions struct {
	Transport http.RoundTripper // for HTTP; default: NewTransport(nil), which uses no proxy
	Command   CommandOptions
	Timeout   time.Duration    // of one attempt; default and upper bound: 30 s
	Now       func() time.Time // for timestamps and dates in Retry-After; default: time.Now
}

func (o SenderOptions) withDefaults() SenderOptions {
	if o.Transport == nil {
		o.Transport = NewTransport(nil)
	}
	if o.Timeout <= 0 || o.Timeout > sendTimeout {
		o.Timeout = sendTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Command.Path == "" {
		o.Command.Path = "apprise"
	}
	if o.Command.TempDir == "" {
		o.Command.TempDir = os.TempDir()
	}
	return o
}

// Senders makes the sender of each target, in the order of Names. It contacts nobody and looks for no program.
func (t Targets) Senders(o SenderOptions) []Sender {
	o = o.withDefaults()
	out := make([]Sender, 0, len(t.list))
	for _, one := range t.list {
		out = append(out, one.sender(o))
	}
	return out
}

func (t target) sender(o SenderOptions) Sender {
	switch {
	case t.hook:
		return &webhook{name: t.name, post: newPoster(t.name, t.server, o), secret: t.secret, now: o.Now}
	case t.server != nil:
		return &appriseAPI{name: t.name, post: newPoster(t.name, t.server, o), url: t.notify}
	default:
		return &command{name: t.name, url: t.notify, timeout: o.Timeout, options: o.Command}
	}
}
