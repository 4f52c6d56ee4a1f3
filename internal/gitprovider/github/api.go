package github

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	gogithub "github.com/google/go-github/v60/github"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/gitprovider/githubapp"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// api makes the requests, by REST and by GraphQL. Errors are a *fault.Error, or a *refusal when the method may know
// better what it means; fault.From finds the fault in it.
type api struct {
	root, graph *url.URL
	over        *transport.Transport
	refusals    refusals
	fresh       newObjects
	app         *githubapp.App // nil for a token of a user
}

func newAPI(opts Options, refusals refusals, clock transport.Clock) *api {
	root := *opts.API
	if !strings.HasSuffix(root.Path, "/") {
		root = *root.JoinPath("/")
	}
	return &api{root: &root, graph: graphQLAddress(&root), over: opts.Client, refusals: refusals,
		fresh: newObjects{forge.NewLRU[string, time.Time](maxNew, nil), clock.Now, clock.Sleep}, app: opts.App}
}

// client returns the library's client for one request. It keeps in mind that a limit was reached and answers in
// GitHub's stead until that ends, whatever token the next request carries: that of another owner's installation, or a
// new one. GitHub's own answers say how long to wait.
func (a *api) client() *gogithub.Client {
	client := gogithub.NewClient(a.over.Client())
	client.BaseURL = a.root
	return client
}

// graphQLAddress returns the address of GraphQL. An Enterprise Server has REST at /api/v3 and GraphQL at /api/graphql
// (docs.github.com, "Forming calls with GraphQL"); github.com has it at /graphql below the API's root.
func graphQLAddress(api *url.URL) *url.URL {
	root := *api
	if above, found := strings.CutSuffix(strings.TrimSuffix(api.Path, "/"), "/api/v3"); found {
		root.Path, root.RawPath = above+"/api/", ""
	}
	return transport.URL(&root, "graphql")
}

// request is one REST request.
type request struct {
	method string
	url    *url.URL
	body   any    // sent as JSON; nil for none
	accept string // "" means GitHub's JSON
	need   need
}

// rawBlob is the media type for which GitHub answers with a blob's bytes instead of JSON.
const rawBlob = "application/vnd.github.raw+json"

// pageSize is the largest page of a REST list and of a GraphQL connection.
const pageSize = 100

// send sends a REST request and decodes the JSON of its answer into out; a *[]byte gets the bytes as they are, nil
// nothing.
func (a *api) send(ctx context.Context, r request, out any) (resp *gogithub.Response, err error) {
	if r.method != http.MethodGet {
		ctx = transport.ForWrite(ctx)
	}
	err = a.withNewToken(ctx, r.need, func() error {
		resp, err = a.sendOnce(ctx, r, out)
		return err
	})
	return resp, err
}

// withNewToken does a request again after 1, 2 and 3 seconds if it is refused for a token of an app that was just made.
// A request that is refused for its token was not done, so that this holds for writes, too.
func (a *api) withNewToken(ctx context.Context, n need, do func() error) error {
	err := do()
	for wait := time.Second; wait <= 3*time.Second; wait += time.Second {
		r := refused(err)
		isOfToken := r != nil && (r.status == http.StatusUnauthorized ||
			n != needActions && r.says("resource not accessible by integration")) // an installation need not grant it
		if !isOfToken || a.app == nil || !a.app.IsNew(transport.UseOf(ctx)) || ctx.Err() != nil {
			break
		}
		a.fresh.sleep(ctx, wait)
		err = do()
	}
	return err
}

func (a *api) sendOnce(ctx context.Context, r request, out any) (*gogithub.Response, error) {
	client := a.client()
	req, err := client.NewRequest(r.method, r.url.String(), r.body)
	if err != nil {
		return nil, forge.NotBuilt(err)
	}
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	var body bytes.Buffer
	resp, err := client.Do(ctx, req, &body)
	if err != nil {
		return nil, a.refusals.translate(err, r.need)
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

func (a *api) get(ctx context.Context, u *url.URL, n need, out any) (*gogithub.Response, error) {
	return a.send(ctx, request{method: http.MethodGet, url: u, need: n}, out)
}

// postTo is post to a pull request, which may be new.
func (a *api) postTo(ctx context.Context, repo gitprovider.RepoRef, number int, u *url.URL, body, out any) error {
	err := a.fresh.onPull(ctx, repo, number, func() error { return a.post(ctx, u, needPulls, body, out) })
	return a.refusals.pullMissing(err, repo, number)
}

func (a *api) post(ctx context.Context, u *url.URL, n need, body, out any) error {
	_, err := a.send(ctx, request{method: http.MethodPost, url: u, body: body, need: n}, out)
	return err
}

// changePull replaces fields of a pull request, and gives its state after that.
func (a *api) changePull(ctx context.Context, repo gitprovider.RepoRef, number int,
	fields map[string]string) (gitprovider.State, error) {
	if err := forge.CheckNumber(repo, number); err != nil {
		return "", err
	}
	var now forge.Changed
	at := a.repoURL(repo, "pulls", strconv.Itoa(number))
	err := a.fresh.onPull(ctx, repo, number, func() error {
		_, err := a.send(ctx, request{method: http.MethodPatch, url: at, body: fields, need: needPulls}, &now)
		return err
	})
	return now.PullState(), a.refusals.pullMissing(err, repo, number)
}

// repoURL returns an address below a repository.
func (a *api) repoURL(ref gitprovider.RepoRef, segments ...string) *url.URL {
	return transport.URL(a.root, append([]string{"repos", ref.Owner, ref.Name}, segments...)...)
}

// page adds to a list's address which of its pages is wanted, 1 being the first.
func page(u *url.URL, number int) *url.URL {
	out := *u
	out.RawQuery = url.Values{"per_page": {strconv.Itoa(pageSize)}, "page": {strconv.Itoa(number)}}.Encode()
	return &out
}

func notJSON(err error) error { return forge.NotItsAPI(err, "GitHub", urlVariable) }
