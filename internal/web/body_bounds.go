package web

import (
	"fmt"
	"net/http"

	"github.com/claudeops/claudeops/internal/webhook"
)

// bodyBound is how large the body of a request may be.
type bodyBound struct {
	bytes  int64
	advice string // what to do about a larger one
}

// bodyBounds are the bounds of all routes that read a body, by method and pattern. They are as small as what the route is for
// permits, since whoever sends a body makes us read it: strangers, too, where no credentials are asked for.
func bodyBounds() map[string]bodyBound {
	form := bodyBound{4 << 10, "the form of the page is smaller"}
	return map[string]bodyBound{
		"POST " + signInPath:               {4 << 10, "a token is shorter"},
		"POST " + api + "/prs":             {4 << 20, "propose less in one pull request"}, // what one MCP message may have
		"POST " + checkPath:                {256 << 10, "ask about fewer paths at once"},
		"POST " + sessionsPath:             {64 << 10, "say less in the note"}, // a note fits whose every byte is escaped
		"POST " + hookPath(webhook.GitHub): {1 << 20, hookAdvice},
		"POST " + hookPath(webhook.Gitea):  {1 << 20, hookAdvice},
		"POST /proposals/{id}/promote":     form,
		"POST " + pullPath + "/review":     {256 << 10, "say less in the comment"}, // a comment of 64 KiB fits, every byte escaped
		"POST /sessions":                   {64 << 10, "say less in the note"},
	}
}

// GitHub may send up to 25 MB; what it sends about a pull request is far below a mebibyte.
const hookAdvice = "events of pull requests are smaller, so that this one does not matter here"

// bodyless are the routes with a method for bodies that read none.
func bodyless() []string {
	return []string{
		"POST /sign-out", "POST " + api + "/proposals/{id}/promote", "POST " + sessionsPath + "/{id}/stop", "POST /sessions/{id}/stop",
	}
}

// boundOf is the bound of a route. The error is a mistake of the program: a route that takes bodies and is not listed.
func boundOf(r route) (bodyBound, error) {
	name := r.method + " " + r.pattern
	if bound, listed := bodyBounds()[name]; listed {
		return bound, nil
	}
	reads := r.method == http.MethodGet
	for _, listed := range bodyless() {
		reads = reads || name == listed
	}
	if !reads {
		return bodyBound{}, fmt.Errorf("the route %s has no bound for its body", name)
	}
	return bodyBound{}, nil
}
