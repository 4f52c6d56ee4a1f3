package notify

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/system/files"
	"github.com/claudeops/claudeops/internal/system/processtree"
	"github.com/claudeops/claudeops/internal/system/transport"
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

// deliveryFailure says why a delivery did not succeed. It holds no secret: the target's name, its host at most, and
// what happened in our own words.
type deliveryFailure struct {
	Text       string        // one sentence without a full stop
	Permanent  bool          // another attempt cannot succeed
	Partial    bool          // some of the recipients behind the target may have been notified, and will be again
	RetryAfter time.Duration // what the target asked for, at most maxRetryAfter; zero: nothing
}

// Error implements error.
func (f *deliveryFailure) Error() string { return f.Text }

// retryDelay is RetryAfter within its bounds.
func (f *deliveryFailure) retryDelay() time.Duration { return min(max(f.RetryAfter, 0), maxRetryAfter) }

// failureOf converts err to a failure, nil for nil. The text of a foreign error is not shown: it may hold a URL.
func failureOf(err error) *deliveryFailure {
	if err == nil {
		return nil
	}
	var f *deliveryFailure
	if errors.As(err, &f) {
		return f
	}
	return &deliveryFailure{Text: "the sender failed for a reason that is not shown, since it may hold a secret"}
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
			out = append(out, &appriseCommand{name: one.name, url: one.notify, timeout: o.Timeout, options: o.Command})
		}
	}
	return out
}

const (
	// sendTimeout bounds one attempt, whatever it waits for.
	sendTimeout = 30 * time.Second
	// maxRetryAfter is the longest that a target may make us wait.
	maxRetryAfter = 6 * time.Hour
)

// poster sends JSON to one URL.
type poster struct {
	label  string   // names the target and its host in errors
	url    *url.URL // may hold secrets
	client *transport.Client
	now    func() time.Time
}

// newPoster follows no redirect: it would carry the message, and with it the signature, to a place that was not
// configured. ParseTargets has required https where that is wanted.
func newPoster(name string, to *url.URL, o SenderOptions) poster {
	return poster{
		label: fmt.Sprintf("%s (%s)", name, to.Host), url: to, now: o.Now,
		client: transport.NewClient(transport.ClientOptions{
			Over: o.Transport, Timeout: o.Timeout,
			Host: transport.Only(to, trust.Said(transport.Host{Private: true, Plain: true})),
		}),
	}
}

// post sends body and returns the answer's status and what it says in Retry-After. The answer's body is not read.
func (p poster) post(ctx context.Context, body []byte, header http.Header) (int, time.Duration, error) {
	header.Set("Content-Type", "application/json")
	answer, err := p.client.Do(ctx, transport.Request{Method: http.MethodPost, URL: p.url, Header: header, Body: body})
	if err != nil {
		return 0, 0, &deliveryFailure{Text: p.label + " " + deliveryProblem(err)}
	}
	return answer.Status, p.retryAfter(answer.Header), nil
}

// deliveryProblem says why no answer came, in words of ours.
func deliveryProblem(err error) string {
	var (
		dns     *net.DNSError
		timeout net.Error
		tlsErr  *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return "could not be reached: its name is unknown"
	case errors.As(err, &tlsErr):
		return "has a certificate that is not trusted"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "does not speak TLS"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "could not be reached: it refused the connection"
	case errors.Is(err, context.Canceled):
		return "was not waited for: this program is ending"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "did not answer in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "dropped the connection without an answer"
	}
	return "could not be reached"
}

// statusFailure turns a status other than success into a failure.
func (p poster) statusFailure(status int, retryAfter time.Duration) *deliveryFailure {
	f := &deliveryFailure{Text: fmt.Sprintf("%s answered %d", p.label, status)}
	switch {
	case status >= 500:
		f.RetryAfter = retryAfter
	case status >= 400:
		f.Permanent = true
	default:
		f.Permanent = true
		f.Text += ", which is not a success status; redirects are not followed, so configure the final URL"
	}
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		f.Permanent, f.RetryAfter = false, retryAfter
	}
	return f
}

// retryAfter reads the header of RFC 9110, section 10.2.3: seconds or a date. What is neither counts as absent.
func (p poster) retryAfter(h http.Header) time.Duration {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(p.now()), 0), maxRetryAfter)
	}
	return 0
}

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
	body, err := compactJSON(appriseRequest{
		URLs: a.url, Title: Title(d.Message), Body: Text(d.Message), Type: notificationType(d.Message.Event), Format: "text",
	})
	if err != nil {
		return err
	}
	status, retryAfter, err := a.post.post(ctx, body, http.Header{})
	switch {
	case err != nil:
		return err
	case status == http.StatusNoContent:
		return &deliveryFailure{Permanent: true, Text: a.post.label +
			" answered 204: it has no configuration under this key, or cannot use the URL that it was given"}
	case status == http.StatusFailedDependency:
		return &deliveryFailure{Partial: a.url == "", Text: a.post.label +
			" answered 424: it could not tell everyone; its own log says whom"}
	case status/100 != 2:
		return a.post.statusFailure(status, retryAfter)
	}
	return nil
}

// The headers of the webhook; docs/guides/notifications.md says what they hold.
const (
	HeaderEvent     = "Claudeops-Event"
	HeaderDelivery  = "Claudeops-Delivery"
	HeaderTimestamp = "Claudeops-Timestamp"
	HeaderSignature = "Claudeops-Signature"
)

// sign sets the timestamp and, if there is a secret, the signature.
func sign(header http.Header, secret string, now time.Time, body []byte) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	header.Set(HeaderTimestamp, timestamp)
	if secret == "" {
		return
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	header.Set(HeaderSignature, "v1="+hex.EncodeToString(mac.Sum(nil)))
}

// webhook posts the JSON form of a message, signed.
type webhook struct {
	name   string
	post   poster
	secret string // "": unsigned
	now    func() time.Time
}

// Name implements Sender.
func (w *webhook) Name() string { return w.name }

// Send implements Sender.
func (w *webhook) Send(ctx context.Context, d Delivery) error {
	header := http.Header{}
	header.Set(HeaderEvent, string(d.Message.Event))
	header.Set(HeaderDelivery, d.ID)
	sign(header, w.secret, w.now(), d.Body)
	status, retryAfter, err := w.post.post(ctx, d.Body, header)
	if err != nil {
		return err
	}
	if status/100 != 2 {
		return w.post.statusFailure(status, retryAfter)
	}
	return nil
}

// CommandOptions say how the apprise command is run.
type CommandOptions struct {
	// Path is the program: a path, or a name that is looked for in PATH. Default: apprise.
	Path string
	// Env is the command's environment, to which PATH and LC_ALL are added where it lacks them. It inherits nothing, so
	// that it never sees the tokens of this process. See CommandEnvironment.
	Env []string
	// TempDir is the parent of the private folder for the URL, one for each call. Default: os.TempDir().
	TempDir string
}

// CommandEnvironment picks from lookup (os.LookupEnv) what the apprise command may see: where programs, Python packages
// and certificates are, and proxies.
func CommandEnvironment(lookup func(string) (string, bool)) []string {
	var out []string
	for _, name := range []string{
		"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR", "SystemRoot", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
		"PYTHONPATH", "PYTHONUSERBASE", "VIRTUAL_ENV", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	} {
		if value, ok := lookup(name); ok {
			out = append(out, name+"="+value)
		}
	}
	return out
}

// endGrace is how long the command may take to end when it is told to.
const endGrace = time.Second

// appriseCommand runs the apprise command for one notification URL.
type appriseCommand struct {
	name    string
	url     string
	timeout time.Duration
	options CommandOptions
}

// Name implements Sender.
func (c *appriseCommand) Name() string { return c.name }

// Send implements Sender. The URL reaches the command by a file that only this user can read and that is removed
// afterwards (a process that is killed in between leaves it), the text by standard input. The title stands among the
// arguments, where other users of the machine can see it, which is why Title says so little. The command's output may
// hold the URL and is thrown away.
func (c *appriseCommand) Send(ctx context.Context, d Delivery) error {
	path, err := processtree.Find(cmp.Or(c.options.Path, "apprise"))
	if err != nil {
		return c.commandFailure(false, "was not found; install it, or name an Apprise API server in CLAUDEOPS_APPRISE_URLS")
	}
	folder, err := files.MakeTemporary(c.options.TempDir, "claudeops-apprise-")
	var config string
	if err == nil {
		defer func() { _ = folder.Remove() }() // what cannot be removed is in a folder of ours alone
		config, err = folder.Write("urls.conf", []byte(c.url+"\n"))
	}
	if err != nil {
		return c.commandFailure(false,
			"cannot be told the URL: its private file could not be written; check the space and permissions of the "+
				"folder for temporary files")
	}
	ran, err := processtree.Run(ctx, processtree.Spec{
		Command: processtree.Command{
			Path: path,
			Args: []string{path, "--config=" + config, "--title=" + Title(d.Message),
				"--notification-type=" + notificationType(d.Message.Event), "--input-format=text"},
			Env:   append([]string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C.UTF-8"}, c.options.Env...),
			Stdin: strings.NewReader(Text(d.Message)),
		},
		Options: processtree.Options{Grace: endGrace}, Time: c.timeout,
	})
	switch {
	case err != nil:
		return c.commandFailure(false, "could not be started")
	case ran.Exit == processtree.Exit{}:
		return nil
	case ran.TimedOut, ran.Canceled:
		return c.commandFailure(false, "did not finish in time and was ended")
	default:
		code := ran.Exit.Code
		const usage, nobody = 2, 3 // apprise(1), "EXIT STATUS"; 1 is a failure, which may pass
		return c.commandFailure(code == usage || code == nobody,
			fmt.Sprintf("failed (exit code %d); run it by hand with -v to see why", code))
	}
}

func (c *appriseCommand) commandFailure(permanent bool, what string) error {
	return &deliveryFailure{Permanent: permanent, Text: c.name + ": the apprise command " + what}
}
