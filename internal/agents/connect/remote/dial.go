package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/agents/connect"
)

// Limits are bounds of a transport. A value of zero is the default.
type Limits struct {
	Handshake time.Duration // until the first event has come; 20 s
	Silent    time.Duration // after which a connection is taken to be broken, where the server sends something every 15 s; 1 min
	Request   time.Duration // for one request that sends; 45 s
	Send      time.Duration // for all attempts to send the same; 1 min
}

func (l Limits) withDefaults() Limits {
	or := func(d, fallback time.Duration) time.Duration {
		if d <= 0 {
			return fallback
		}
		return d
	}
	return Limits{
		Handshake: or(l.Handshake, 20*time.Second), Silent: or(l.Silent, time.Minute), Request: or(l.Request, 45*time.Second),
		Send: or(l.Send, time.Minute),
	}
}

// Transports are those of connect.Transports with http and https.
func Transports(l Limits) map[string]connect.Transport {
	all := connect.Transports()
	for _, scheme := range []string{"http", "https"} {
		all[scheme] = func(ctx context.Context, rest string, hello connect.Hello) (connect.Conn, error) {
			return dial(ctx, scheme+":"+rest, hello, l.withDefaults())
		}
	}
	return all
}

// maxRefusal bounds what is read of an answer that is no stream, in bytes.
const maxRefusal = 64 << 10

// dial opens a connection.
func dial(ctx context.Context, address string, hello connect.Hello, limits Limits) (connect.Conn, error) {
	at, err := endpoint(address)
	if err != nil {
		return nil, err
	}
	if !isToken(hello.Ticket) {
		return nil, &connect.UsageError{Problem: "an agent's token is needed (claudeops token create --agent): --ticket-file names its file"}
	}
	c := &conn{client: newClient(), at: at, token: hello.Ticket, limits: limits, most: MaxChunk}
	c.ctx, c.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { c.cancel(context.Cause(ctx)) })
	defer stop()
	bound := time.AfterFunc(limits.Handshake, func() {
		c.cancel(fmt.Errorf("no answer came within %s; if a proxy is in between, it must not hold answers back until they are whole", limits.Handshake))
	})
	defer bound.Stop()
	err = c.open(hello)
	if err == nil && !bound.Stop() {
		err = context.Cause(c.ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// isToken reports whether a text can go as a token: visible characters of ASCII.
func isToken(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// newClient makes an HTTP client that follows nothing, so that the token goes to the address alone that was given. HTTPS_PROXY, NO_PROXY and
// SSL_CERT_FILE hold as for other programs. It speaks HTTP/1.1, which every proxy does.
func newClient() *http.Client {
	const idle = 30 * time.Second // shorter than proxies keep a connection, so that few requests meet one that is just being closed
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: 10 * time.Second,
			DisableCompression: true, IdleConnTimeout: idle, MaxIdleConnsPerHost: 2, MaxResponseHeaderBytes: maxRefusal,
			OnProxyConnectResponse: refusedByProxy,
		},
	}
}

// open does the handshake.
func (c *conn) open(hello connect.Hello) error {
	hello.Ticket, hello.Version = "", connect.Version
	body, err := json.Marshal(hello)
	if err != nil {
		return err
	}
	answer, err := c.do(c.ctx, c.at, HelloType, body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), EventsType) {
		defer func() { _ = answer.Body.Close() }()
		return refusal(answer, c.at)
	}
	c.events = newEvents(answer.Body, c.limits.Silent, c.cancel)
	line, err := c.events.first()
	if cause := context.Cause(c.ctx); cause != nil {
		err = cause
	}
	if err != nil {
		return fmt.Errorf("the server at %s did not greet: %w", c.at.Host, err)
	}
	var opened Opened
	if err := json.Unmarshal(line, &opened); err != nil || !opened.OK || opened.Version != connect.Version || opened.Connection == "" {
		return fmt.Errorf("the server at %s greets in a way that is not understood; is it of the same release?", c.at.Host)
	}
	c.send = c.at.JoinPath(url.PathEscape(opened.Connection))
	return nil
}

// do makes a request. Its error has no token, and says of a certificate what is wrong with it.
func (c *conn) do(ctx context.Context, at *url.URL, kind string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Accept", EventsType+", application/json, application/problem+json")
	req.Header.Set("User-Agent", "claudeops-connect")
	answer, err := c.client.Do(req)
	var untrusted *tls.CertificateVerificationError
	var refused *connect.RefusedError
	switch {
	case errors.As(err, &refused): // without the address that the request was for, which says nothing more
		return nil, refused
	case errors.As(err, &untrusted) && isOfProxy(err):
		return nil, &connect.RefusedError{Code: "misconfigured", Message: fmt.Sprintf("the certificate of the proxy in HTTPS_PROXY is not trusted: %v; "+
			"SSL_CERT_FILE can name the file of another authority's certificate", untrusted.Err)}
	case errors.As(err, &untrusted):
		return nil, &connect.RefusedError{Code: "misconfigured", Message: fmt.Sprintf("the certificate of %s is not trusted: %v; SSL_CERT_FILE can name "+
			"the file of another authority's certificate", at.Host, untrusted.Err)}
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	}
	return answer, err
}

// refusedByProxy says what a proxy answered that was asked for a connection to the server (CONNECT), other than 200. The proxy's address is named
// without the user and the password in it.
func refusedByProxy(_ context.Context, proxy *url.URL, asked *http.Request, answer *http.Response) error {
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusProxyAuthRequired, http.StatusUnauthorized: // the latter by tinyproxy
		problem := "wants a user and a password (HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT)"
		if proxy.User != nil {
			problem = "does not take the user and the password of HTTPS_PROXY"
		}
		return &connect.RefusedError{Code: "forbidden", Message: fmt.Sprintf("the proxy %s %s: %s", proxy.Host, problem, answer.Status)}
	case http.StatusForbidden, http.StatusMethodNotAllowed:
		return &connect.RefusedError{Code: "forbidden", Message: fmt.Sprintf("the proxy %s (HTTPS_PROXY) lets nobody through to %s: %s; NO_PROXY lists "+
			"what is reached without it", proxy.Host, asked.Host, answer.Status)}
	}
	return fmt.Errorf("the proxy %s (HTTPS_PROXY) does not reach %s: %s", proxy.Host, asked.Host, answer.Status)
}

// isOfProxy reports whether an error is one of the way to the proxy.
func isOfProxy(err error) bool {
	var network *net.OpError
	return errors.As(err, &network) && network.Op == "proxyconnect"
}

// problem is what this package reads of a problem document.
type problem struct {
	Code      string `json:"code"`
	Detail    string `json:"detail"`
	Retryable bool   `json:"retryable"`
}

// refusal is what an answer says that is none of those that are hoped for. A *connect.RefusedError without Retry is final.
func refusal(answer *http.Response, at *url.URL) error {
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
	var p problem
	if err == nil && strings.HasPrefix(answer.Header.Get("Content-Type"), "application/problem+json") && json.Unmarshal(text, &p) == nil && p.Code != "" {
		failed := answer.StatusCode >= http.StatusInternalServerError || answer.StatusCode == http.StatusTooManyRequests
		return &connect.RefusedError{Code: p.Code, Message: p.Detail, Retry: p.Retryable || failed}
	}
	switch status := answer.StatusCode; {
	case status >= 300 && status < 400:
		return &connect.RefusedError{Code: "misconfigured", Message: fmt.Sprintf("%s leads elsewhere, to %s. The token is not sent there; give --connect the "+
			"address at which Claude Ops itself answers", at.Host, target(answer))}
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusProxyAuthRequired:
		return &connect.RefusedError{Code: "forbidden", Message: fmt.Sprintf("%s answered %s, and not as Claude Ops does: a proxy in front of it lets nobody "+
			"through to %s", at.Host, answer.Status, at.Path)}
	}
	if answer.StatusCode == http.StatusRequestEntityTooLarge {
		return errTooLarge
	}
	return fmt.Errorf("%s answered %s, and not as Claude Ops does; is it served there, at %s?", at.Host, answer.Status, at.Path)
}

// target is where an answer leads, without a query, which may hold secrets.
func target(answer *http.Response) string {
	to, err := answer.Location()
	if err != nil {
		return "an address that is malformed"
	}
	return (&url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path}).String()
}
