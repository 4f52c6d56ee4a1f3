package identity

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"time"
)

// refetch is how long an answer with a provider's keys is cached. A token with an unknown key makes the library ask for
// the keys again, and anybody can post such tokens.
const refetch = 10 * time.Second

// keys asks a provider for its keys, on behalf of the library that verifies what strangers post: at most once in
// refetch, however many ask.
type keys struct {
	client *http.Client // to be given to the library
	over   *http.Client
	now    func() time.Time

	mu     sync.Mutex
	asked  time.Time
	status int
	text   []byte
	err    error
}

func newKeys(over *http.Client, now func() time.Time) *keys {
	k := &keys{over: over, now: now}
	k.client = &http.Client{Transport: k}
	return k
}

// RoundTrip implements http.RoundTripper. The client below follows redirects.
func (k *keys) RoundTrip(r *http.Request) (*http.Response, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.now(); k.asked.IsZero() || now.Sub(k.asked) >= refetch || now.Before(k.asked) {
		k.asked = now
		k.status, k.text, k.err = k.ask(r.Clone(r.Context()))
	}
	if k.err != nil {
		return nil, k.err
	}
	return &http.Response{Status: http.StatusText(k.status), StatusCode: k.status, ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(k.text)),
		Body: io.NopCloser(bytes.NewReader(k.text)), Request: r}, nil
}

func (k *keys) ask(r *http.Request) (status int, text []byte, err error) {
	answer, err := k.over.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err = io.ReadAll(answer.Body)
	return answer.StatusCode, text, err
}
