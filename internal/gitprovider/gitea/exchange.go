package gitea

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"code.gitea.io/sdk/gitea"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/transport"
)

// conversation is a round tripper for one call. It keeps the last answer, because the SDK gives neither the headers nor
// the body of an error, and because every call, the SDK's or a plain one, shall be judged by the same rules.
type conversation struct {
	next http.RoundTripper
	last *http.Response // nil when the last request got no answer
	body []byte         // of last
}

// RoundTrip implements http.RoundTripper. The transport below has bounded and read the body already.
func (c *conversation) RoundTrip(req *http.Request) (*http.Response, error) {
	c.last, c.body = nil, nil
	resp, err := c.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	c.last, c.body = resp, body
	return resp, nil
}

// talk begins a conversation. The client follows redirects as the transport's own does.
func (p *Provider) talk() (*conversation, *http.Client) {
	client := *p.http.Client()
	c := &conversation{next: client.Transport}
	client.Transport = c
	return c, &client
}

// outcome judges a conversation that ended with err: nil, a *fault.Error when there is no usable answer, or a *refusal.
func (p *Provider) outcome(c *conversation, err error) error {
	switch {
	case c.last != nil && c.last.StatusCode >= http.StatusMultipleChoices:
		return newRefusal(c.last, c.body)
	case err == nil:
		return nil
	case c.last == nil:
		return p.http.Failure(err)
	default:
		return fault.Wrap(err, fault.UpstreamError,
			"%s answered something that is not what its API promises; check that %s is the address of a Gitea or Forgejo",
			p.base.Host, urlVariable)
	}
}

// call makes one SDK call. An SDK client holds one context, so each call has a client of its own, which costs nothing:
// the connections belong to the transport. The version is set to "unknown", so that the SDK does not ask for it.
func call[T any](ctx context.Context, p *Provider,
	do func(c *gitea.Client) (T, *gitea.Response, error)) (T, http.Header, error) {
	var none T
	talk, client := p.talk()
	sdk, err := gitea.NewClient(strings.TrimSuffix(p.base.String(), "/"),
		gitea.SetHTTPClient(client), gitea.SetContext(ctx), gitea.SetGiteaVersion(""))
	if err != nil {
		return none, nil, fault.Wrap(err, fault.Internal, "the client of Gitea could not be made")
	}
	value, _, err := do(sdk)
	if err := p.outcome(talk, err); err != nil {
		return none, nil, err
	}
	return value, talk.last.Header, nil
}

// endpoint is the address of an API route; each segment is escaped.
func (p *Provider) endpoint(segments ...string) *url.URL {
	return transport.URL(p.base, append([]string{"api", "v1"}, segments...)...)
}

// repoURL is the address of a route of a repository.
func (p *Provider) repoURL(repo gitprovider.RepoRef, segments ...string) *url.URL {
	return p.endpoint(append([]string{"repos", repo.Owner, repo.Name}, segments...)...)
}

// get reads a route that the SDK lacks or gets wrong.
func (p *Provider) get(ctx context.Context, at *url.URL, query url.Values, into any) (http.Header, error) {
	at.RawQuery = query.Encode()
	return p.exchange(ctx, http.MethodGet, at, nil, into)
}

// post sends body as JSON to a route that the SDK lacks or gets wrong.
func (p *Provider) post(ctx context.Context, at *url.URL, body, into any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return fault.Wrap(err, fault.Internal, "a request to Gitea could not be encoded")
	}
	_, err = p.exchange(ctx, http.MethodPost, at, encoded, into)
	return err
}

func (p *Provider) exchange(ctx context.Context, method string, at *url.URL, body []byte, into any) (http.Header, error) {
	talk, client := p.talk()
	req, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "a request to Gitea could not be made")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err == nil {
		defer resp.Body.Close()
		if resp.StatusCode < http.StatusMultipleChoices && into != nil {
			err = json.Unmarshal(talk.body, into)
		}
	}
	if err := p.outcome(talk, err); err != nil {
		return nil, err
	}
	return talk.last.Header, nil
}

// totalOf reads X-Total-Count; -1 when the server does not say.
func totalOf(h http.Header) int {
	n, err := strconv.Atoi(h.Get("X-Total-Count"))
	if err != nil || n < 0 {
		return -1
	}
	return n
}
