package transport

import (
	"fmt"
	"io"
	"net/http"

	"github.com/claudeops/claudeops/internal/base/weborigin"
)

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
	if !host.Plain && !weborigin.Confidential(req.URL) {
		return nil, &RefusedError{PlainCredential, req.URL}
	}
	req = req.Clone(req.Context())
	req.Header.Set("User-Agent", "claudeops")
	resp, err := named(c).RoundTrip(req)
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
