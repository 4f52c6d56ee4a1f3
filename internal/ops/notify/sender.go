package notify

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"
)

// Sender takes messages to one target. It is safe for concurrent use.
type Sender interface {
	// Name is the name of the target; see Targets.Names.
	Name() string

	// Send delivers d, or says why not by a *Failure. It returns within its timeout, or when ctx ends.
	Send(ctx context.Context, d Delivery) error
}

// Delivery is one message for one target.
type Delivery struct {
	ID      string // 32 hex digits; the same at each attempt
	Message Message
	Body    []byte // the JSON form of Message, the same at each attempt; not to be changed
}

// failure says why a delivery did not succeed. It holds no secret: the target's name, its host at most, and what
// happened in our own words.
type failure struct {
	Text       string        // one sentence without a full stop
	Permanent  bool          // another attempt cannot succeed
	Partial    bool          // some of the recipients behind the target may have been notified, and will be again
	RetryAfter time.Duration // what the target asked for, at most maxRetryAfter; zero: nothing
}

// Error implements error.
func (f *failure) Error() string { return f.Text }

// wait is RetryAfter within its bounds.
func (f *failure) wait() time.Duration { return min(max(f.RetryAfter, 0), maxRetryAfter) }

// failureOf converts err to a failure, nil for nil. The text of a foreign error is not shown: it may hold a URL.
func failureOf(err error) *failure {
	if err == nil {
		return nil
	}
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	return &failure{Text: "the sender failed for a reason that is not shown, since it may hold a secret"}
}

// SenderOptions vary how messages are sent. The zero value is ready for use.
type SenderOptions struct {
	Transport http.RoundTripper // for HTTP, a transport.Pool; nil: one that uses no proxy
	Command   CommandOptions
	Timeout   time.Duration    // of one attempt; default and upper bound: 30 s
	Now       func() time.Time // for timestamps and dates in Retry-After; default: time.Now
}

// Senders makes the sender of each target, in the order of Names. It sends no request and looks for no program.
func (t Targets) Senders(o SenderOptions) []Sender {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Timeout = min(cmp.Or(o.Timeout, sendTimeout), sendTimeout)
	out := make([]Sender, 0, len(t.list))
	for _, one := range t.list {
		switch {
		case one.hook:
			out = append(out, &webhook{name: one.name, post: newPoster(one.name, one.server, o), secret: one.secret, now: o.Now})
		case one.server != nil:
			out = append(out, &appriseAPI{name: one.name, post: newPoster(one.name, one.server, o), url: one.notify})
		default:
			out = append(out, &command{name: one.name, url: one.notify, timeout: o.Timeout, options: o.Command})
		}
	}
	return out
}
