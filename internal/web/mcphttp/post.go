package mcphttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/base/mcpio"
	"github.com/claudeops/claudeops/internal/web/httpx"
)

// keptHead is the number of bytes of a too long message that the loop gets.
const keptHead = 64 << 10

// eventsType is the content type of streams.
const eventsType = "text/event-stream"

// post takes a message. The token is looked at before the body is read.
func (s *Server) post(req *httpx.Request) (httpx.Response, error) {
	who, err := s.credential(req)
	if err != nil {
		return httpx.Response{}, err
	}
	if !accepts(req.Header, "application/json") && !accepts(req.Header, eventsType) {
		return httpx.Response{}, &httpx.StatusError{Status: http.StatusNotAcceptable,
			Err: fault.New(fault.InvalidArgument, "Accept must name application/json and text/event-stream")}
	}
	x, err := readMessage(req)
	if err != nil {
		return httpx.Response{}, err
	}
	if len(bytes.TrimSpace(x.Message)) == 0 {
		return badRequestError(nil, codeParse, "the body is empty: send one message of JSON-RPC"), nil
	}
	h := headOf(x.Message)
	x.Alone = isStateless(req.Header, h)
	if x.Alone && x.Size == 0 && !h.isNotification() {
		if code, problem := mismatch(req.Header, h); problem != "" {
			return badRequestError(h.ID, code, problem), nil
		}
	} else if err := checkVersion(req.Header); err != nil && !x.Alone && h.Method != "initialize" {
		return httpx.Response{}, err
	}
	n, begun, err := s.sessionOf(req, who, h, x.Alone)
	if err != nil {
		return httpx.Response{}, err
	}
	return n.postMessage(req, x, h, begun)
}

// readMessage reads a body up to the permitted length; for a longer one, Exchange.Size is its minimum length.
func readMessage(req *httpx.Request) (mcpio.Exchange, error) {
	body, whole, err := httpx.ReadSome(req, "application/json")
	if err != nil || whole {
		return mcpio.Exchange{Message: body}, err
	}
	return mcpio.Exchange{Message: body[:keptHead], Size: max(req.ContentLength, maxMessage+1)}, nil
}

// sessionOf returns the session that a message belongs to; begun says that it begins with it.
func (s *Server) sessionOf(req *httpx.Request, who holder, h head, alone bool) (n *session, begun bool,
	err error) {
	id := req.Header.Get(sessionHeader)
	switch {
	case alone:
		n, err = s.shared(req, who)
		return n, false, err
	case h.Method == "initialize" && id == "":
		n, err = s.registerSession(req, who)
		return n, true, err
	case id == "":
		return nil, false, badRequest("%s is missing: a session begins with initialize", sessionHeader)
	}
	n, err = s.requestSession(req, who)
	return n, false, err
}

// requestSession returns the session that a request names.
func (s *Server) requestSession(req *httpx.Request, who holder) (*session, error) {
	n, foreign := s.findSession(req.Header.Get(sessionHeader), who)
	if foreign {
		why := fault.New(fault.NotFound, "the session was begun with another token")
		s.options.Tokens.Refused(req.Context(), way, s.options.Guard.Client(req.Request), why)
	}
	if n == nil {
		return nil, gone()
	}
	return n, nil
}

// postMessage hands a message over and answers it.
func (n *session) postMessage(req *httpx.Request, x mcpio.Exchange, h head, begun bool) (httpx.Response, error) {
	if wait := n.budget.Take(int(max(x.Size, int64(len(x.Message))))); wait > 0 {
		e := fault.New(fault.LimitReached, "this token has sent what it may send in an hour, and can send again in %s",
			wait.Truncate(time.Second)+time.Second)
		e.RetryAfter = wait
		return httpx.Response{}, e
	}
	if x.Alone && h.isNotification() { // a client takes a request back by going away, so none says anything to us
		return httpx.Response{Status: http.StatusAccepted}, nil
	}
	left, err := n.use(req.Context())
	if errors.Is(err, errBusy) && len(h.ID) > 0 {
		return rpcError(h.ID, http.StatusOK, codeServer, err.Error()), nil // clients cannot read a problem document here
	}
	if err != nil {
		return httpx.Response{}, err
	}
	if x.Alone {
		x.Context = req.Context() //nolint:fatcontext // the client takes such a request back by going away
	}
	t, err := n.hand(req.Context(), x, left)
	if err != nil {
		left()
		return httpx.Response{}, err
	}
	if begun {
		return n.greeting(t.whole(req.Context())), nil
	}
	within := n.limits.Write // of a stream the client sees no status but 200
	if len(h.ID) > 0 && mcpio.MayTakeLong(h.Method) {
		within = n.limits.Stream
	}
	if line, only := t.alone(req.Context(), within); only {
		return alone(line, x), nil
	}
	if accepts(req.Header, eventsType) {
		n.rememberStream(t)
		return n.streamed(req.Context(), t, 0, n.primes()), nil
	}
	return n.late(req.Context(), t), nil
}

// alone returns an answer that comes alone, or 202 for a message that has none.
func alone(line []byte, x mcpio.Exchange) httpx.Response {
	if len(line) == 0 {
		return httpx.Response{Status: http.StatusAccepted}
	}
	status := statusOf(line, x.Alone)
	if x.Size > 0 {
		status = http.StatusRequestEntityTooLarge
	}
	return httpx.Response{Status: status, Bytes: line, ContentType: "application/json", Volatile: true}
}

// greeting returns the answer to initialize, which names the session; without a result there is none.
func (n *session) greeting(lines [][]byte) httpx.Response {
	var result struct {
		Result struct {
			Version string `json:"protocolVersion"`
		} `json:"result"`
	}
	if len(lines) == 0 {
		n.shutDown()
		return httpx.Response{Status: http.StatusAccepted}
	}
	response := alone(lines[len(lines)-1], mcpio.Exchange{})
	if json.Unmarshal(response.Bytes, &result) != nil || result.Result.Version == "" {
		n.shutDown()
		return response
	}
	n.agreed(result.Result.Version)
	response.Header = http.Header{sessionHeader: {n.id}}
	return response
}

// late returns an answer that takes long, for a client that takes no streams.
func (n *session) late(ctx context.Context, t *stream) httpx.Response {
	return httpx.Response{ContentType: "application/json", Stream: func(w io.Writer) error {
		out, err := newEvents(w, n.limits.Write, false)
		if err != nil {
			return err
		}
		if lines := t.whole(ctx); len(lines) > 0 {
			_ = out.writeParts(lines[len(lines)-1]) // or the reader is gone
		}
		return nil
	}}
}

// streamed returns an answer that comes on a stream, from its line after the first from on. It goes on when the client
// goes.
func (n *session) streamed(ctx context.Context, t *stream, from int, prime bool) httpx.Response {
	return httpx.Response{
		ContentType: eventsType, Header: http.Header{"X-Accel-Buffering": {"no"}},
		Stream: func(w io.Writer) error {
			out, err := newEvents(w, n.limits.Write, n.id != "")
			if err != nil {
				return err
			}
			var ending <-chan struct{} // a call goes on to its answer
			if t == n.general {
				ending = n.ending
			}
			if prime {
				err = out.sendPrimingEvent(t.id)
			} else {
				err = out.writeParts() // the client knows at once that there is a stream, though nothing is said for long
			}
			if err == nil {
				_ = out.follow(ctx, t, from, n.limits.Heartbeat, ending) // or the reader is gone
			}
			return nil
		},
	}
}

// listen returns the stream of unsolicited notifications, or with Last-Event-ID the rest of a stream that broke.
func (s *Server) listen(req *httpx.Request) (httpx.Response, error) {
	who, err := s.credential(req)
	if err != nil {
		return httpx.Response{}, err
	}
	if err := sessionMethod(req); err != nil {
		return httpx.Response{}, err
	}
	if !accepts(req.Header, eventsType) {
		return httpx.Response{}, &httpx.StatusError{Status: http.StatusNotAcceptable,
			Err: fault.New(fault.InvalidArgument, "Accept must name text/event-stream")}
	}
	n, err := s.requestSession(req, who)
	if err != nil {
		return httpx.Response{}, err
	}
	stream, from, err := eventID(req.Header.Values(eventHeader))
	if err != nil {
		return httpx.Response{}, err
	}
	t := n.streamOf(stream)
	if t == nil {
		return httpx.Response{}, badRequest("what Last-Event-ID names is not remembered any more")
	}
	left, err := n.use(req.Context())
	if err != nil {
		return httpx.Response{}, err
	}
	if !t.claimReader() {
		left()
		return httpx.Response{}, fault.New(fault.Conflict, "this stream is read by another request already")
	}
	response := n.streamed(req.Context(), t, from, false)
	write := response.Stream
	over := func() {}
	if t == n.general {
		over = n.stand()
	}
	response.Stream = func(w io.Writer) error {
		defer left()
		defer over()
		defer t.release()
		return write(w)
	}
	return response, nil
}

// endSession ends a session. What it was asked is finished.
func (s *Server) endSession(req *httpx.Request) (httpx.Response, error) {
	who, err := s.credential(req)
	if err != nil {
		return httpx.Response{}, err
	}
	if err := sessionMethod(req); err != nil {
		return httpx.Response{}, err
	}
	n, err := s.requestSession(req, who)
	if err != nil {
		return httpx.Response{}, err
	}
	s.dropSession(n)
	n.shutDown()
	return httpx.Response{Status: http.StatusNoContent}, nil
}

// sessionMethod refuses a method that only sessions have to clients that have none. A client that looks whether there
// is a stream before its session begins expects 405, as of a server without such streams.
func sessionMethod(req *httpx.Request) error {
	early := req.Method == http.MethodGet && req.Header.Get(sessionHeader) == ""
	if req.Method == http.MethodHead || isSince(req.Header.Get(versionHeader)) || early {
		return &httpx.StatusError{Status: http.StatusMethodNotAllowed, Header: http.Header{"Allow": {"POST"}},
			Err: fault.New(fault.InvalidArgument, "without a session this address takes POST alone, as all of it does "+
				"since %s; a session begins with initialize", stateless)}
	}
	if err := checkVersion(req.Header); err != nil {
		return err
	}
	if req.Header.Get(sessionHeader) == "" {
		return badRequest("%s is missing: a session begins with initialize", sessionHeader)
	}
	return nil
}

// eventID returns the stream that Last-Event-ID names, and how many of its lines the client has.
func eventID(given []string) (stream, from int, err error) {
	if len(given) == 0 {
		return 0, 0, nil
	}
	first, second, _ := strings.Cut(given[0], ".")
	stream, err = strconv.Atoi(first)
	if err == nil {
		from, err = strconv.Atoi(second)
	}
	if err != nil || len(given) > 1 || stream < 0 || from < 0 {
		return 0, 0, badRequest("Last-Event-ID is none of this server's")
	}
	return stream, from, nil
}
