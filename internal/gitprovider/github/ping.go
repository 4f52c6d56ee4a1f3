package github

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/claudeops/claudeops/internal/gitprovider/transport"
)

// Ping implements gitprovider.Pinger by GET /rate_limit, which does not count against the limit and which every token may
// ask. An app, which has no token of its own, asks for itself: GET /app. An Enterprise Server without limits answers 404 and says why, but to known tokens alone.
func (p *Provider) Ping(ctx context.Context) error {
	if p.app != nil {
		return publish(p.app.Ping(ctx))
	}
	var limits struct{ Resources json.RawMessage }
	_, err := p.get(ctx, transport.URL(p.api, "rate_limit"), needMetadata, &limits)
	if no := refused(err); no != nil && no.status == http.StatusNotFound && no.says("rate limiting is not enabled") {
		return nil
	}
	if err == nil && limits.Resources == nil {
		return notJSON(errNoLimits{})
	}
	return publish(err)
}

// errNoLimits is an answer of something else than GitHub.
type errNoLimits struct{}

// Error implements error.
func (errNoLimits) Error() string { return "the answer to /rate_limit has no resources" }
