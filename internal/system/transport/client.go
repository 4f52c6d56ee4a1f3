package transport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/claudeops/claudeops/internal/base/trust"
)

// Host is the operator's configuration of a host.
type Host struct {
	// Header is the header that Credential goes in, and Credential its whole value; "" for none. It is sent by https and
	// to this machine, unless Plain.
	Header, Credential string
	Private            bool // it may have an address of this machine or of a private network
	Plain              bool // credentials, those in an address too, may go to it by plain http
}

// ClientOptions configures a Client.
type ClientOptions struct {
	// Over carries the requests. It must be a Pool, or nothing holds private addresses; tests may have another. nil:
	// NewPool(nil).
	Over http.RoundTripper
	// Host returns the operator's configuration for the host of an address. It is called for the first address and for
	// every redirect.
	Host func(*url.URL) trust.Operator[Host]
	// Redirects limits the redirects of a GET that are followed; 0: the answer is the redirect itself. Redirects from
	// https to http, to an address with a password, and to another host that is not configured are not followed. Once they
	// have left the first host, no credential is sent any more.
	Redirects int
	MaxBody   int64         // bytes of an answer that are read, if its status is 2xx; 0: nothing of any
	Timeout   time.Duration // from connecting to the last byte of the answer; 30 s
}

// Client asks hosts that the operator has named, and no other. It is safe for concurrent use. What speaks to a forge
// has a Transport.
type Client struct {
	opt  ClientOptions
	http *http.Client
}

// Only names the host of one address, and no other.
func Only(at *url.URL, h trust.Operator[Host]) func(*url.URL) trust.Operator[Host] {
	return func(u *url.URL) trust.Operator[Host] {
		if !SameOrigin(u, at) {
			return trust.Operator[Host]{}
		}
		return h
	}
}

// NewClient makes a Client. It costs nothing: connections are the Pool's.
func NewClient(o ClientOptions) *Client {
	if o.Over == nil {
		o.Over = NewPool(nil)
	}
	o.Timeout = cmp.Or(o.Timeout, 30*time.Second)
	c := &Client{opt: o}
	c.http = &http.Client{Transport: guardedTransport{c}, CheckRedirect: c.checkRedirect}
	return c
}

// Request is a request to send.
type Request struct {
	Method string
	URL    *url.URL // a user and a password in it go as Authorization, if the host has no credential in that header
	Header http.Header
	Body   []byte
}

// Answer is the response, whatever its status.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// ErrBodyTooLarge says that an answer has more than ClientOptions.MaxBody bytes.
var ErrBodyTooLarge = errors.New("the answer is larger than what is read")

// Do asks once. Errors are those of net/http without the address, which may hold a secret; a *RefusedError for what is
// not sent; ErrBodyTooLarge.
func (c *Client) Do(ctx context.Context, r Request) (*Answer, error) {
	host, ok := c.opt.Host(r.URL).Get()
	if !ok {
		return nil, &RefusedError{Why: NotNamed, At: r.URL}
	}
	ctx, cancel := context.WithTimeout(ctx, c.opt.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL.String(), bytes.NewReader(r.Body))
	if err != nil {
		return nil, withoutAddress(err)
	}
	if r.Header != nil {
		req.Header = r.Header.Clone()
	}
	req.Header.Set("User-Agent", "claudeops")
	if host.Credential != "" {
		req.Header.Set(host.Header, host.Credential)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, withoutAddress(err)
	}
	defer func() { _ = resp.Body.Close() }() // ends the connection if there is more to read
	answer := &Answer{Status: resp.StatusCode, Header: resp.Header}
	if c.opt.MaxBody == 0 || resp.StatusCode/100 != 2 {
		return answer, nil
	}
	answer.Body, err = io.ReadAll(io.LimitReader(resp.Body, c.opt.MaxBody+1))
	if err == nil && int64(len(answer.Body)) > c.opt.MaxBody {
		err = ErrBodyTooLarge
	}
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// withoutAddress takes off what net/http puts around its errors.
func withoutAddress(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// Why is the reason of a RefusedError.
type Why int

// What is not sent.
const (
	TooManyRedirects Why = iota + 1 // more than ClientOptions.Redirects
	LeavesHTTPS                     // a redirect from https to http
	NotNamed                        // a host that the operator has not named, or a redirect to an address with a password
	PrivateAddress                  // a host that turned out to be this machine or of a private network
	PlainCredential                 // a credential by plain http
)

// RefusedError is the error of a request that a Client does not send.
type RefusedError struct {
	Why Why
	At  *url.URL // nil for PrivateAddress
}

// Error implements error.
func (e *RefusedError) Error() string {
	switch e.Why {
	case TooManyRedirects:
		return "it redirects too often"
	case LeavesHTTPS:
		return "it redirects from https to http"
	case NotNamed:
		return fmt.Sprintf("the host of %s is not named by the operator", e.At.Redacted())
	case PrivateAddress:
		return "its host is this machine or of a private network"
	default:
		return "a credential is not sent over plain http"
	}
}

// checkRedirect implements http.Client's field of that name.
func (c *Client) checkRedirect(next *http.Request, via []*http.Request) error {
	first := via[0]
	if c.opt.Redirects == 0 || first.Method != http.MethodGet {
		return http.ErrUseLastResponse
	}
	host, ok := c.opt.Host(next.URL).Get()
	elsewhere := func(r *http.Request) bool { return !SameOrigin(r.URL, first.URL) }
	switch {
	case len(via) > c.opt.Redirects:
		return &RefusedError{TooManyRedirects, next.URL}
	case first.URL.Scheme == "https" && next.URL.Scheme != "https":
		return &RefusedError{LeavesHTTPS, next.URL}
	case next.URL.User != nil || !ok && elsewhere(next):
		return &RefusedError{NotNamed, next.URL}
	}
	next.Header.Del("Referer") // an address may hold a secret
	if elsewhere(next) || slices.ContainsFunc(via, elsewhere) {
		of := c.opt.Host(first.URL).Value()
		for _, name := range []string{"Authorization", of.Header, host.Header} {
			next.Header.Del(name)
		}
	}
	return nil
}

// guardedTransport is the way of each request of a Client, the redirected ones too.
type guardedTransport struct{ *Client }

// RoundTrip implements http.RoundTripper.
func (c guardedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	host := c.opt.Host(req.URL).Value()
	secret := req.Header.Get("Authorization") != "" || host.Header != "" && req.Header.Get(host.Header) != ""
	if secret && !host.Plain && !IsConfidential(req.URL) {
		return nil, &RefusedError{PlainCredential, req.URL}
	}
	if !host.Private {
		req = req.WithContext(context.WithValue(req.Context(), publicKey{}, true))
	}
	return c.opt.Over.RoundTrip(req)
}

// Standard returns the Client for libraries that take one of net/http, such as those of OAuth. It asks the hosts that
// the operator has named and no other, redirects included, with the Client's time limit. A body of more than MaxBody
// bytes fails with ErrBodyTooLarge while it is read. Since such libraries put secrets into bodies, nothing at all goes
// by plain http to another machine, unless Host.Plain.
func (c *Client) Standard() *http.Client {
	return &http.Client{Transport: standard{c}, CheckRedirect: c.checkRedirect, Timeout: c.opt.Timeout}
}

// standard is the way of each request of such a library.
type standard struct{ *Client }

// RoundTrip implements http.RoundTripper.
func (c standard) RoundTrip(req *http.Request) (*http.Response, error) {
	host, ok := c.opt.Host(req.URL).Get()
	if !ok {
		return nil, &RefusedError{NotNamed, req.URL}
	}
	if !host.Plain && !IsConfidential(req.URL) {
		return nil, &RefusedError{PlainCredential, req.URL}
	}
	req = req.Clone(req.Context())
	req.Header.Set("User-Agent", "claudeops")
	resp, err := guardedTransport(c).RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: c.opt.MaxBody}
	return resp, nil
}

// boundedBody is a body that fails where it is larger than what is read.
type boundedBody struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("%w", ErrBodyTooLarge)
	}
	return n, err
}
