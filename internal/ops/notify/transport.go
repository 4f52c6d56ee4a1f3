package notify

import (
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

	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/system/transport"
)

const (
	// sendTimeout bounds one attempt, whatever it waits for.
	sendTimeout = 30 * time.Second
	// maxRetryAfter is the longest that a target may make us wait.
	maxRetryAfter = 6 * time.Hour
)

// poster sends JSON to one URL.
type poster struct {
	label  string   // names the target and its host in errors
	url    *url.URL // may hold secrets
	client *transport.Client
	now    func() time.Time
}

// newPoster follows no redirect: it would carry the message, and with it the signature, to a place that was not
// configured. ParseTargets has required https where that is wanted.
func newPoster(name string, to *url.URL, o SenderOptions) poster {
	return poster{
		label: fmt.Sprintf("%s (%s)", name, to.Host), url: to, now: o.Now,
		client: transport.NewClient(transport.ClientOptions{
			Over: o.Transport, Timeout: o.Timeout,
			Host: transport.Only(to, trust.Said(transport.Host{Private: true, Plain: true})),
		}),
	}
}

// post sends body and returns the answer's status and what it says in Retry-After. The answer's body is not read.
func (p poster) post(ctx context.Context, body []byte, header http.Header) (int, time.Duration, error) {
	header.Set("Content-Type", "application/json")
	answer, err := p.client.Do(ctx, transport.Request{Method: http.MethodPost, URL: p.url, Header: header, Body: body})
	if err != nil {
		return 0, 0, &failure{Text: p.label + " " + reason(err)}
	}
	return answer.Status, p.retryAfter(answer.Header), nil
}

// reason says why no answer came, in words of ours.
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

// refused turns a status other than success into a failure.
func (p poster) refused(status int, retryAfter time.Duration) *failure {
	f := &failure{Text: fmt.Sprintf("%s answered %d", p.label, status)}
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
