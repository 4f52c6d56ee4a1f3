package auditsink

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/claudeops/claudeops/internal/record"
)

// httpSink posts heads, one JSON object a line.
type httpSink struct {
	to     *url.URL // may hold secrets
	client *http.Client
}

func newHTTPSink(to *url.URL, transport http.RoundTripper) httpSink {
	return httpSink{to, &http.Client{
		Transport: transport,
		// A redirect would carry what authenticates us to a place that nobody configured.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// name has the host, and a digest of the whole address that tells two at one host apart.
func (s httpSink) name() string {
	sum := sha256.Sum256([]byte(s.to.String()))
	return s.to.Scheme + "://" + s.to.Host + " (" + hex.EncodeToString(sum[:4]) + ")"
}

func (httpSink) local() bool { return false }

func (s httpSink) begin(context.Context) (delivery, error) { return s, nil }

func (httpSink) last() (record.Head, bool, error) { return record.Head{}, false, nil }

func (s httpSink) send(ctx context.Context, heads []record.Head) error {
	to := *s.to
	to.User = nil
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(lines(heads)))
	if err != nil {
		return errors.New("its address makes no request")
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	req.Header.Set("User-Agent", "claudeops")
	if user := s.to.User; user != nil {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return errors.New(reasonOfRequest(err)) // an error of net/http has the address
	}
	_ = resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("it answered %d", resp.StatusCode)
	}
	return nil
}

func reasonOfRequest(err error) string {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return "it did not answer in time"
	}
	return "it could not be reached"
}

func (httpSink) end() error { return nil }
