package auditsink

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// httpSink posts heads, one JSON object a line.
type httpSink struct {
	to     *url.URL // may hold secrets
	client *transport.Client
}

// newHTTPSink follows no redirect: it would carry our credentials to a place that was not configured.
func newHTTPSink(to *url.URL, over http.RoundTripper) httpSink {
	return httpSink{to, transport.NewClient(transport.ClientOptions{
		Over: over, Timeout: remoteBound, Host: transport.Only(to, trust.Said(transport.Host{Private: true})),
	})}
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
	answer, err := s.client.Do(ctx, transport.Request{
		Method: http.MethodPost, URL: s.to, Header: http.Header{"Content-Type": {"application/x-ndjson"}}, Body: lines(heads),
	})
	if err != nil {
		return errors.New(reasonOfRequest(err))
	}
	if answer.Status < 200 || answer.Status > 299 {
		return fmt.Errorf("it answered %d", answer.Status)
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
