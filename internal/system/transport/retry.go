package transport

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

type (
	safeKey       struct{}
	repeatableKey struct{}
)

// Safe marks the POST requests made with the context as reads, such as a GraphQL query: they may be repeated and do not
// wait for writes. Other methods mean what they mean.
func Safe(ctx context.Context) context.Context { return context.WithValue(ctx, safeKey{}, true) }

// Repeatable marks the writes made with the context as ones that may be made twice without harm, such as putting a
// label on. They are repeated where a read would be, and like every write wait for others to end.
func Repeatable(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatableKey{}, true)
}

func isRepeatable(req *http.Request) bool {
	marked, _ := req.Context().Value(repeatableKey{}).(bool)
	return marked || isSafe(req)
}

func isSafe(req *http.Request) bool {
	switch req.Method {
	case "", http.MethodGet, http.MethodHead:
		return true
	case http.MethodPost:
		marked, _ := req.Context().Value(safeKey{}).(bool)
		return marked
	default:
		return false
	}
}

// retry says whether the request is tried once more, and how long to wait before.
//
// A safe or repeatable request is, when the connection or the answer broke, when a gateway says that the server cannot
// be reached just now and when the server asks to come back; a safe one also when the server failed (500). Another
// write is only when it cannot have acted: it was never sent, or the server turned it away for a time or for its token,
// in whose place there is another.
func (t *Transport) retry(c *call, resp *http.Response, failed *failure) (time.Duration, bool) {
	limits := t.opt.Limits
	if resp != nil && resp.StatusCode == http.StatusUnauthorized && t.renewToken(c) {
		return 0, true
	}
	if c.tries > limits.Retries {
		return 0, false
	}
	backoff := t.opt.Clock.Jitter(limits.RetryWait << min(c.tries-1, 10))
	if failed != nil {
		return backoff, failed.unsent || failed.broken && c.repeatable
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusForbidden:
		wait, known := limitWait(resp.Header, t.opt.Clock.Now())
		return wait, known && wait <= limits.MaxRetryAfter
	case http.StatusInternalServerError:
		return backoff, c.safe
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if wait, known := retryAfter(resp.Header, t.opt.Clock.Now()); known {
			return wait, c.repeatable && wait <= limits.MaxRetryAfter
		}
		return backoff, c.repeatable
	default:
		return 0, false
	}
}

// longestWait caps what a header can make us say, in an answer or a wait.
const longestWait = 24 * time.Hour

// retryAfter reads Retry-After: seconds or a date (RFC 9110, section 10.2.3).
func retryAfter(h http.Header, now time.Time) (wait time.Duration, known bool) {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0, false
	}
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil {
		return time.Duration(min(max(seconds, 0), int64(longestWait/time.Second))) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return until(at, now), true
}

// limitWait returns how long to wait by the headers of a refusal: Retry-After, or the end of an exhausted rate limit's
// window. known is false without such headers; the refusal then has another reason.
func limitWait(h http.Header, now time.Time) (wait time.Duration, known bool) {
	if wait, known = retryAfter(h, now); known {
		return wait, true
	}
	if h.Get("X-Ratelimit-Remaining") != "0" {
		return 0, false
	}
	reset, err := strconv.ParseInt(h.Get("X-Ratelimit-Reset"), 10, 64)
	if err != nil {
		return 0, false
	}
	return until(time.Unix(reset, 0), now), true
}

// until returns the time from now to at in whole seconds, rounded up, between 0 and longestWait.
func until(at, now time.Time) time.Duration {
	d := min(max(at.Sub(now), 0), longestWait)
	return (d + time.Second - 1).Truncate(time.Second)
}
