package github

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	gogithub "github.com/google/go-github/v60/github"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/transport"
)

// request is one REST request.
type request struct {
	method string
	url    *url.URL
	body   any    // sent as JSON; nil for none
	accept string // "" means GitHub's JSON
	need   need
}

// rawBlob is what makes GitHub answer with a blob's bytes instead of JSON.
const rawBlob = "application/vnd.github.raw+json"

// pageSize is the largest page of a REST list and of a GraphQL connection.
const pageSize = 100

// maxNumber is the largest number of a pull request that GraphQL's Int can name.
const maxNumber = 1<<31 - 1

// rest sends a request and decodes the JSON of its answer into out; a *[]byte gets the bytes as they are, nil nothing.
// The error is a *fault.Error, or a *refusal when the method may know better what it means; see publish.
func (p *Provider) rest(ctx context.Context, r request, out any) (*gogithub.Response, error) {
	if r.method != http.MethodGet {
		ctx = transport.ForWrite(ctx)
	}
	req, err := p.client.NewRequest(r.method, r.url.String(), r.body)
	if err != nil {
		return nil, fault.Wrap(err, fault.Internal, "a request to GitHub could not be built")
	}
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	var body bytes.Buffer
	resp, err := p.client.Do(ctx, req, &body)
	if err != nil {
		return nil, p.failed(err, r.need)
	}
	switch into := out.(type) {
	case nil:
	case *[]byte:
		*into = body.Bytes()
	default:
		if err := json.Unmarshal(body.Bytes(), out); err != nil {
			return nil, notJSON(err)
		}
	}
	return resp, nil
}

func (p *Provider) get(ctx context.Context, u *url.URL, n need, out any) (*gogithub.Response, error) {
	return p.rest(ctx, request{method: http.MethodGet, url: u, need: n}, out)
}

func (p *Provider) post(ctx context.Context, u *url.URL, n need, body, out any) error {
	_, err := p.rest(ctx, request{method: http.MethodPost, url: u, body: body, need: n}, out)
	return err
}

// repoURL is an address below a repository.
func (p *Provider) repoURL(ref gitprovider.RepoRef, segments ...string) *url.URL {
	return transport.URL(p.api, append([]string{"repos", ref.Owner, ref.Name}, segments...)...)
}

// page adds to a list's address which of its pages is wanted, 1 being the first.
func page(u *url.URL, number int) *url.URL {
	out := *u
	out.RawQuery = url.Values{"per_page": {strconv.Itoa(pageSize)}, "page": {strconv.Itoa(number)}}.Encode()
	return &out
}

func notJSON(err error) error {
	return fault.Wrap(err, fault.UpstreamError,
		"GitHub answered with something else than its JSON; check GITHUB_API_URL, and proxies in between")
}
