package web

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// bodyBound is how large the body of a request may be.
type bodyBound struct {
	bytes  int64
	advice string // what to do about a larger one
	// within is how long it may take to arrive; 0 for as long as any request may take. It is short where no credentials are
	// asked for.
	within time.Duration
}

// bodyBounds are the bounds of all routes that read a body, by method and pattern. They are as small as what the route is for
// permits, since whoever sends a body makes us read it: strangers, too, where no credentials are asked for.
func bodyBounds() map[string]bodyBound {
	form := bodyBound{bytes: 4 << 10, advice: "the form of the page is smaller"}
	hook := bodyBound{1 << 20, "events of pull requests are smaller, so that this one does not matter here", openBodyTime}
	// GitHub may send deliveries of 25 MB; what it sends about a pull request is far below a mebibyte.
	return map[string]bodyBound{
		"POST " + signInPath:           {4 << 10, "a token is shorter", openBodyTime},
		"POST " + api + "/prs":         {bytes: 4 << 20, advice: "propose less in one pull request"}, // what one MCP message may have
		"POST " + checkPath:            {bytes: 256 << 10, advice: "ask about fewer paths at once"},
		"POST " + sessionsPath:         {bytes: 64 << 10, advice: "say less in the note"}, // a note fits whose every byte is escaped
		"POST " + hooksPath:            hook,                                              // of every forge
		"POST /proposals/{id}/promote": form,
		"POST " + pullPath + "/review": {bytes: 256 << 10, advice: "say less in the comment"}, // a comment of 64 KiB fits, every byte escaped
		"POST /sessions":               {bytes: 64 << 10, advice: "say less in the note"},
	}
}

// openBodyTime is how long a body may take to arrive where no credentials are asked for.
const openBodyTime = 10 * time.Second

// bodyless are the routes with a method for bodies that read none.
func bodyless() []string {
	return []string{
		"POST /sign-out", "POST " + api + "/proposals/{id}/promote", "POST " + sessionsPath + "/{id}/stop", "POST /sessions/{id}/stop",
	}
}

// boundOf is the bound of a route. The error is a mistake of the program: a route that takes bodies and is not listed.
func boundOf(r route) (bodyBound, error) {
	name := r.method + " " + r.pattern
	if strings.HasPrefix(r.pattern, hooksPath) {
		name = r.method + " " + hooksPath
	}
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
