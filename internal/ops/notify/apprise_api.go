package notify

import (
	"context"
	"net/http"
)

// appriseAPI posts to the notify endpoint of an Apprise API server.
//
// The answers are those of the server's source (apprise_api/api/views.py at github.com/caronc/apprise-api, commit
// 69b61871): 200 for success, 204 when nothing is configured under the key or no URL can be used, 424 when one or more
// targets could not be notified.
type appriseAPI struct {
	name string
	post poster
	url  string // the notification URL that a server without a configuration is given; "": none
}

// appriseRequest is the JSON body of the endpoint.
type appriseRequest struct {
	URLs   string `json:"urls,omitempty"`
	Title  string `json:"title"`
	Body   string `json:"body"`
	Type   string `json:"type"`
	Format string `json:"format"`
}

// Name implements Sender.
func (a *appriseAPI) Name() string { return a.name }

// Send implements Sender.
func (a *appriseAPI) Send(ctx context.Context, d Delivery) error {
	body, err := encode(appriseRequest{
		URLs: a.url, Title: Title(d.Message), Body: Text(d.Message), Type: kind(d.Message.Event), Format: "text",
	})
	if err != nil {
		return err
	}
	status, retryAfter, err := a.post.post(ctx, body, http.Header{})
	switch {
	case err != nil:
		return err
	case status == http.StatusNoContent:
		return &failure{Permanent: true, Text: a.post.label +
			" answered 204: it has no configuration under this key, or cannot use the URL that it was given"}
	case status == http.StatusFailedDependency:
		return &failure{Partial: a.url == "", Text: a.post.label +
			" answered 424: it could not tell everyone; its own log says whom"}
	case status/100 != 2:
		return a.post.refused(status, retryAfter)
	}
	return nil
}
