package mcphttp

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/web/handler"
)

// listen returns the stream of unsolicited notifications, or with Last-Event-ID the rest of a stream that broke.
func (s *Server) listen(req *handler.Request) (handler.Response, error) {
	who, err := s.credential(req)
	if err != nil {
		return handler.Response{}, err
	}
	if err := sessionMethod(req); err != nil {
		return handler.Response{}, err
	}
	if !accepts(req.Header, eventsType) {
		return handler.Response{}, &handler.StatusError{Status: http.StatusNotAcceptable,
			Err: fault.New(fault.InvalidArgument, "Accept must name text/event-stream")}
	}
	n, err := s.named(req, who)
	if err != nil {
		return handler.Response{}, err
	}
	stream, from, err := eventID(req.Header.Values(eventHeader))
	if err != nil {
		return handler.Response{}, err
	}
	t := n.streamOf(stream)
	if t == nil {
		return handler.Response{}, badRequest("what Last-Event-ID names is not remembered any more")
	}
	left, err := n.use(req.Context())
	if err != nil {
		return handler.Response{}, err
	}
	if !t.take() {
		left()
		return handler.Response{}, fault.New(fault.Conflict, "this stream is read by another request already")
	}
	response := n.streamed(req.Context(), t, from, false)
	write := response.Stream
	response.Stream = func(w io.Writer) error {
		defer left()
		defer t.release()
		return write(w)
	}
	return response, nil
}

// leave ends a session. What it was asked is finished.
func (s *Server) leave(req *handler.Request) (handler.Response, error) {
	who, err := s.credential(req)
	if err != nil {
		return handler.Response{}, err
	}
	if err := sessionMethod(req); err != nil {
		return handler.Response{}, err
	}
	n, err := s.named(req, who)
	if err != nil {
		return handler.Response{}, err
	}
	s.remove(n)
	n.end()
	return handler.Response{Status: http.StatusNoContent}, nil
}

// sessionMethod refuses a method that only sessions have to clients that have none. A client that looks whether there
// is a stream before its session begins expects 405, as of a server without such streams.
func sessionMethod(req *handler.Request) error {
	early := req.Method == http.MethodGet && req.Header.Get(sessionHeader) == ""
	if req.Method == http.MethodHead || isSince(req.Header.Get(versionHeader)) || early {
		return &handler.StatusError{Status: http.StatusMethodNotAllowed, Header: http.Header{"Allow": {"POST"}},
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
