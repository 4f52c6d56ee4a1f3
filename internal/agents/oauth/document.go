// This file reads the documents in which programs describe themselves (OAuth Client ID Metadata Document,
// draft-ietf-oauth-client-id-metadata-document-02). The id of such a program is an address of https, and the document
// there says its name and where browsers may be sent back to. That proves the domain, and nothing else.

package oauth

import (
	"context"
	"errors"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/trust"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// Bounds of documents.
const (
	maxDocument   = 5 << 10 // bytes, as the draft recommends
	maxDocumentID = 300     // bytes of an address
	documentTime  = 5 * time.Second
	documentsKept = 100

	// How long a document counts before it is read again, whatever its host says. The least is the life of the page of
	// consent, so that the form is judged by what the page has shown.
	freshLeast, freshMost = 15 * time.Minute, 24 * time.Hour
	// failedFor is how long an address that failed is not asked again. The same answer is given meanwhile.
	failedFor = 30 * time.Second
	// withheldFor is how long registration alone is offered after a host could not be reached.
	withheldFor = time.Hour

	asksEach, asksAll = 10, 60 // in a minute, for one person and for all of them
)

// Documents reads the documents of programs, and keeps them for a while. It is safe for concurrent use.
type Documents struct {
	client *transport.Client
	now    func() time.Time

	mu          sync.Mutex
	known       map[string]*document // by address
	unreachable time.Time            // when a host could not be reached; zero after one that was
	began       time.Time            // of the minute in which is counted
	asked       map[string]int       // by person
	total       int
}

// document is what is known of an address.
type document struct {
	program access.Client
	err     error // why it describes no program
	until   time.Time
	done    chan struct{} // closed when it was read
}

// NewDocuments makes Documents. over carries the requests; it must be a transport.Pool without a proxy, or nothing
// keeps them from private addresses: a proxy, and not this server, would look the names up.
func NewDocuments(over http.RoundTripper, now func() time.Time) *Documents {
	return newDocuments(over, now, documentTime)
}

func newDocuments(over http.RoundTripper, now func() time.Time, within time.Duration) *Documents {
	client := transport.NewClient(transport.ClientOptions{Over: over, MaxBody: maxDocument, Timeout: within,
		Host: func(u *url.URL) trust.Operator[transport.Host] {
			if u.Scheme != "https" {
				return trust.Operator[transport.Host]{}
			}
			return trust.Said(transport.Host{}) // any host of the internet
		}})
	return &Documents{client: client, now: now, known: map[string]*document{}, asked: map[string]int{}}
}

// Offered reports whether programs are told that documents are read. They are not for an hour after a host could not be
// reached: programs register then, which works without a way to the internet.
func (d *Documents) Offered() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unreachable.IsZero() || d.now().Sub(d.unreachable) >= withheldFor
}

// Browser is the browser that brings a request.
type Browser struct {
	// Person is who is signed in there, for counting; "" for nobody, for whom no document is read.
	Person string
	// Count is called before a host is asked. An error of it is the answer.
	Count func() error
}

// program returns the program that an address stands for. Errors are faults for the person.
func (d *Documents) program(ctx context.Context, id string, b Browser, providers []string) (access.Client, error) {
	at, ok := parseDocumentID(id)
	switch {
	case d == nil:
		return access.Client{}, sentNowhere("is known by an address, and this server reads none; its operator can " +
			"change that, or you can have the program register")
	case !ok:
		return access.Client{}, sentNowhere("has an id that is not the address of its description: that has https, the " +
			"name of a host, a path, and no query; it is written out, with at most " + strconv.Itoa(maxDocumentID) + " bytes")
	case b.Person == "":
		return access.Client{}, fault.New(fault.Unauthenticated, "sign in first, and begin again in the program")
	}
	known, fresh, err := d.findDocument(id, b)
	if err != nil {
		return access.Client{}, err
	}
	if fresh {
		d.fill(context.WithoutCancel(ctx), known, id, at, providers) // others may wait for it
	}
	select {
	case <-known.done:
		return known.program, known.err
	case <-ctx.Done():
		return access.Client{}, fault.From(ctx.Err())
	}
}

// findDocument returns what is known of an address. fresh means that the caller has to fill it, and was counted.
func (d *Documents) findDocument(id string, b Browser) (known *document, fresh bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known = d.known[id]; known != nil && (known.until.IsZero() || d.now().Before(known.until)) {
		return known, false, nil
	}
	if err := d.count(b.Person); err != nil {
		return nil, false, err
	}
	if err := b.Count(); err != nil {
		return nil, false, err
	}
	delete(d.known, id)
	if len(d.known) >= documentsKept && !d.evict() {
		return nil, false, fault.New(fault.LimitReached, "too many programs are looked up; begin again in a minute")
	}
	known = &document{done: make(chan struct{})}
	d.known[id] = known
	return known, true, nil
}

// evict removes the document that counts for the shortest time; false if all are being read.
func (d *Documents) evict() bool {
	first := ""
	for id, known := range d.known {
		if !known.until.IsZero() && (first == "" || known.until.Before(d.known[first].until)) {
			first = id
		}
	}
	delete(d.known, first)
	return first != ""
}

// count counts a request for a person. When all of them have asked too often, one who has not asked yet still may.
func (d *Documents) count(person string) error {
	if now := d.now(); now.Sub(d.began) >= time.Minute || now.Before(d.began) {
		d.began, d.total = now, 0
		clear(d.asked)
	}
	if n := d.asked[person]; n >= asksEach || d.total >= asksAll && n > 0 {
		return fault.New(fault.LimitReached, "you have had too many programs looked up; begin again in a minute")
	}
	d.asked[person]++
	d.total++
	return nil
}

// fill reads a document.
func (d *Documents) fill(ctx context.Context, known *document, id string, at *url.URL, providers []string) {
	program, life, reached, err := d.fetch(ctx, id, at, providers)
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.now()
	switch {
	case reached:
		d.unreachable = time.Time{}
	case fault.CodeOf(err) == fault.UpstreamError:
		d.unreachable = now
	}
	if known.program, known.err = program, err; err != nil {
		life = failedFor
	}
	known.program.CreatedAt, known.until = now, now.Add(life)
	close(known.done)
}

// fetch asks for a document. life is how long it counts; reached is true if the host answered.
func (d *Documents) fetch(ctx context.Context, id string, at *url.URL, providers []string) (program access.Client,
	life time.Duration, reached bool, err error) {
	a, err := d.client.Do(ctx, transport.Request{Method: http.MethodGet, URL: at,
		Header: http.Header{"Accept": {"application/json"}}})
	var refused *transport.RefusedError
	switch {
	case errors.As(err, &refused):
		return program, 0, false, sentNowhere("is described at " + id + ", which is not on the internet")
	case errors.Is(err, transport.ErrBodyTooLarge):
		return program, 0, true, sentNowhere("has a description of more than 5 KiB at " + id)
	case err != nil:
		return program, 0, false, fault.Wrap(err, fault.UpstreamError, "%s could not be asked what the program is that sent "+
			"you here; begin again in the program, which may register itself by then", at.Host)
	case a.Status != http.StatusOK:
		return program, 0, true, sentNowhere("has no description at " + id + ": the answer is " + strconv.Itoa(a.Status))
	case !isJSON(a.Header.Get("Content-Type")):
		return program, 0, true, sentNowhere("has a description that is not called JSON, at " + id)
	}
	program, err = readDocument(id, a.Body, providers)
	return program, lifeOf(a.Header), true, err
}

// sentNowhere returns the fault for a program that nothing is sent to.
func sentNowhere(why string) error {
	return fault.New(fault.InvalidArgument, "the program that sent you here %s; nobody is let in, and you are sent nowhere",
		why)
}

// parseDocumentID reads an id that is the address of a document. ok is false for all that is not written out as the
// address is asked for, or that names no domain: a person reads it, and it is compared letter by letter.
func parseDocumentID(id string) (u *url.URL, ok bool) {
	u, ok = parseRedirect(id)
	if !ok || len(id) > maxDocumentID || u.Scheme != "https" || !strings.HasPrefix(id, "https://") ||
		u.RawQuery != "" || u.ForceQuery || u.String() != id {
		return nil, false
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil || !strings.Contains(u.Hostname(), ".") ||
		strings.HasSuffix(u.Host, ":") {
		return nil, false
	}
	// what is escaped in a path may be a dot or a slash to one reader, and not to another
	clean := path.Clean(u.Path) == strings.TrimSuffix(u.Path, "/") && !strings.Contains(u.EscapedPath(), "%")
	return u, clean && len(u.Path) > 1
}

// IsDocumentID reports whether an id says that its program is described by a document.
func IsDocumentID(id string) bool { return strings.HasPrefix(strings.ToLower(id), "https:") }

func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/json" ||
		strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json"))
}

// lifeOf returns how long a document counts (RFC 9111), within our bounds.
func lifeOf(h http.Header) time.Duration {
	life := time.Duration(0)
	for _, part := range strings.Split(strings.ToLower(strings.Join(h.Values("Cache-Control"), ",")), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		seconds, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31)
		switch {
		case name == "no-store" || name == "no-cache":
			return freshLeast
		case name == "max-age" && err == nil:
			life = time.Duration(seconds) * time.Second
		}
	}
	if age, err := strconv.ParseUint(h.Get("Age"), 10, 31); err == nil {
		life -= time.Duration(age) * time.Second
	}
	return min(max(life, freshLeast), freshMost)
}

// clientDocument is a document. Unknown members are ignored, as the draft demands.
type clientDocument struct {
	ID            string         `json:"client_id"`
	Secret        jsontext.Value `json:"client_secret"`
	SecretExpires jsontext.Value `json:"client_secret_expires_at"`
	clientMetadata
}

// readDocument reads the document of an address. Names are as they are written, and stand once.
func readDocument(id string, body []byte, providers []string) (access.Client, error) {
	var d clientDocument
	if json.Unmarshal(body, &d) != nil {
		return access.Client{}, sentNowhere("has a description at " + id + " that is not a JSON object of the form that is " +
			"agreed, or says something twice")
	}
	if d.ID != id {
		return access.Client{}, sentNowhere("has a description at " + id + " that is about another program")
	}
	if len(d.Secret) > 0 || len(d.SecretExpires) > 0 {
		return access.Client{}, sentNowhere("has a description at " + id + " with a secret in it")
	}
	if why := checkMetadata(&d.clientMetadata, providers); why != nil {
		return access.Client{}, sentNowhere("has a description at " + id + " that is refused: " + why.Description)
	}
	return access.Client{ID: id, Name: d.Name, Redirects: d.Redirects}, nil
}
