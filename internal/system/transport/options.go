package transport

import (
	"cmp"
	"context"
	"crypto/x509"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/weborigin"
)

// Options configures a Transport. Name and Base are required.
type Options struct {
	Name      string // the provider's name, for messages: "github"
	Variables Variables

	// Base is the API's root: https, or http to a loopback address, or http to anywhere if Network.AllowPlainHTTP. A path
	// is kept; user information, query and fragment are refused.
	Base *url.URL

	// Credential gives the tokens; nil: Token is the one for every request, and without it requests are anonymous.
	Credential Credential
	Token      string
	Scheme     string // of the Authorization header: "Bearer" (the default) or "token"

	Network   Network
	UserAgent string // empty: the library's
	Limits    Limits
	Clock     Clock
	Log       *slog.Logger // one line a request, at debug level; nil: none

	// Observe is called with the outcome of each request and the time that the caller waited for it, retries and the wait
	// for other writers included; nil: not called. It must be quick, and safe for concurrent use.
	Observe func(outcome string, took time.Duration)
}

// Variables names what messages ask the operator to check: names of variables, or of what replaces them.
type Variables struct {
	Token   string // "GITHUB_TOKEN"
	Address string // of Base: "GITHUB_API_URL"
}

// Network says how the forge is reached.
type Network struct {
	RootCAs        *x509.CertPool                        // nil: the system's
	Proxy          func(*http.Request) (*url.URL, error) // nil: no proxy
	AllowPlainHTTP bool                                  // to other machines
}

// Clock is the time, which tests replace. Zero fields take the defaults named.
type Clock struct {
	Now    func() time.Time                           // time.Now
	Sleep  func(ctx context.Context, d time.Duration) // ends early with ctx; a timer
	Jitter func(ceiling time.Duration) time.Duration  // between 0 and the ceiling; uniformly random
}

// WithDefaults returns the clock with what it lacks.
func (c Clock) WithDefaults() Clock {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sleep == nil {
		c.Sleep = Sleep
	}
	if c.Jitter == nil {
		c.Jitter = jitter
	}
	return c
}

// Limits bound what one request may cost. Zero fields take the defaults named.
type Limits struct {
	Dial           time.Duration // to connect; 10 s
	TLSHandshake   time.Duration // 10 s
	ResponseHeader time.Duration // of a read: from the request's last byte to the answer's header; 20 s
	Whole          time.Duration // one try of a read, from connecting to the last byte of the body; 30 s
	// Write is one try of a write. A busy small server (Gitea on a Raspberry Pi) takes a minute for one, and to have
	// waited is much better than not to know what it did: 90 s.
	Write         time.Duration
	MaxBody       int64         // bytes of an answer after decompression; 32 MiB
	Retries       int           // tries after the first; 2; negative: none
	RetryWait     time.Duration // ceiling of the first wait; it doubles each time, and jitter takes a part; 250 ms
	MaxRetryAfter time.Duration // the longest wait that a server may ask of us; beyond it the answer is final; 10 s
	MaxConcurrent int           // requests at once; 8
	// WritePause is kept between the end of a write and the next write. GitHub recommends a second for clients that
	// write in bulk; one pull request is three writes, so the default is none.
	WritePause time.Duration
}

func (l Limits) withDefaults() Limits {
	return Limits{
		Dial:           cmp.Or(l.Dial, 10*time.Second),
		TLSHandshake:   cmp.Or(l.TLSHandshake, 10*time.Second),
		ResponseHeader: cmp.Or(l.ResponseHeader, 20*time.Second),
		Whole:          cmp.Or(l.Whole, 30*time.Second),
		Write:          cmp.Or(l.Write, 90*time.Second),
		MaxBody:        cmp.Or(l.MaxBody, 32<<20),
		Retries:        max(0, cmp.Or(l.Retries, 2)),
		RetryWait:      cmp.Or(l.RetryWait, 250*time.Millisecond),
		MaxRetryAfter:  cmp.Or(l.MaxRetryAfter, 10*time.Second),
		MaxConcurrent:  cmp.Or(l.MaxConcurrent, 8),
		WritePause:     l.WritePause,
	}
}

func (o Options) withDefaults() Options {
	o.Limits = o.Limits.withDefaults()
	o.Variables.Token = cmp.Or(o.Variables.Token, "the token")
	o.Variables.Address = cmp.Or(o.Variables.Address, "the base URL")
	o.Scheme = cmp.Or(o.Scheme, "Bearer")
	if o.Credential == nil && o.Token != "" {
		o.Credential = fixed(o.Token)
	}
	o.Clock = o.Clock.WithDefaults()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Observe == nil {
		o.Observe = func(string, time.Duration) {}
	}
	return o
}

// check says what is wrong with the options, or nil.
func (o Options) check() error {
	base := o.Base
	switch {
	case base == nil || base.Host == "" || base.Opaque != "" || base.Scheme != "http" && base.Scheme != "https":
		return fault.New(fault.ProviderDisabled, "%s is not an address like https://host/path; correct it",
			o.Variables.Address)
	case base.User != nil:
		return fault.New(fault.ProviderDisabled,
			"%s holds a user name or password; leave them out and put the token into %s", o.Variables.Address, o.Variables.Token)
	case base.RawQuery != "" || base.Fragment != "":
		return fault.New(fault.ProviderDisabled, "%s has a query or a fragment; leave them out", o.Variables.Address)
	case !o.Network.AllowPlainHTTP && !weborigin.Confidential(base):
		return fault.New(fault.ProviderDisabled,
			"%s is plain http, which would show the token to the network; use https, or set CLAUDEOPS_FORGE_PLAIN_HTTP=true "+
				"where you trust all of that network", o.Variables.Address)
	case badToken(o.Token):
		return malformedToken(o.Variables.Token)
	case o.Scheme != "Bearer" && o.Scheme != "token":
		return fault.New(fault.Internal, "unknown authorization scheme for %s", o.Name)
	}
	return nil
}

// Sleep waits for d or until ctx is done.
func Sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func jitter(ceiling time.Duration) time.Duration {
	return rand.N(ceiling + 1) // #nosec G404 -- spreads retries, guards nothing
}
