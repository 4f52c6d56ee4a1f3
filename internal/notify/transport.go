package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"syscall"
	"time"
)

const (
	// sendTimeout bounds one attempt, whatever it waits for.
	sendTimeout = 30 * time.Second
	// maxRetryAfter is the longest that a target may make us wait.
	maxRetryAfter = 6 * time.Hour
)

// NewTransport makes the transport for Apprise API servers and webhooks: TLS 1.2 or later, verified, and a bound for
// each phase (10 s to connect, 10 s for TLS, 20 s for the answer's headers, 64 KiB of them). proxy is asked for each
// request; nil means a direct connection.
func NewTransport(proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	return &http.Transport{
		Proxy:                  proxy,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  20 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		IdleConnTimeout:        30 * time.Second,
		MaxIdleConnsPerHost:    1,
		ForceAttemptHTTP2:      true,
	}
}

// poster sends JSON to one URL.
type poster struct {
	label   string // names the target and its host in errors
	url     string // may hold secrets
	client  *http.Client
	timeout time.Duration
	now     func() time.Time
}

func newPoster(name string, to *url.URL, o SenderOptions) poster {
	return poster{
		label: fmt.Sprintf("%s (%s)", name, to.Host), url: to.String(), timeout: o.Timeout, now: o.Now,
		client: &http.Client{
			Transport: o.Transport,
			// A redirect would carry the message, and with it the signature, to a place that nobody configured.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// post sends body and returns the answer's status and what it says in Retry-After. The answer's body is not read.
func (p poster) post(ctx context.Context, body []byte, header http.Header) (int, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return 0, 0, &Failure{Text: p.label + " has a URL that no request can be made of", Permanent: true}
	}
	req.Header = header
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "claudeops")
	resp, err := p.client.Do(req)
	if err != nil {
		return 0, 0, &Failure{Text: p.label + " " + reason(err)}
	}
	_ = resp.Body.Close() // closing ends the connection if there is more to read
	return resp.StatusCode, p.retryAfter(resp.Header), nil
}

// reason says why no answer came, in words of ours: an error of net/http holds the URL.
func reason(err error) string {
	var (
		dns     *net.DNSError
		timeout net.Error
		tlsErr  *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "could not be reached: its name is unknown"
	case errors.As(err, &tlsErr):
		return "has a certificate that is not trusted"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "does not speak TLS"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "could not be reached: it refused the connection"
	case errors.Is(err, context.Canceled):
		return "was not waited for: this program is ending"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "did not answer in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "dropped the connection without an answer"
	}
	return "could not be reached"
}

// refused turns a status that is no success into a Failure.
func (p poster) refused(status int, retryAfter time.Duration) *Failure {
	f := &Failure{Text: fmt.Sprintf("%s answered %d", p.label, status)}
	switch {
	case status >= 500:
		f.RetryAfter = retryAfter
	case status >= 400:
		f.Permanent = true
	default:
		f.Permanent = true
		f.Text += ", which is no success; redirects are not followed, so configure the final URL"
	}
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		f.Permanent, f.RetryAfter = false, retryAfter
	}
	return f
}

// retryAfter reads the header of RFC 9110, section 10.2.3: seconds or a date. What is neither counts as absent.
func (p poster) retryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(p.now()), 0), maxRetryAfter)
	}
	return 0
}
