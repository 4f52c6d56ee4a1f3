package fakegithub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// object is a JSON object of REST.
type object = map[string]any

// asker identifies who makes a request.
type asker struct {
	who   string    // login
	grant *AppToken // the token, if it is one of an app's installation
}

// exchange is one request and the answer that is being made for it.
type exchange struct {
	s      *Server
	r      *http.Request
	by     asker
	route  string            // method and path template
	path   map[string]string // by parameter, unescaped
	query  url.Values
	place  string // the address of what was asked for, by the repository's id
	body   []byte
	header http.Header
	status int
	answer any    // JSON, unless raw is set
	raw    []byte // sent as it is
}

// reply sets the answer.
func (a *exchange) reply(status int, answer any) { a.status, a.answer = status, answer }

// fail sets an answer that is an error. errs describe the errors of single fields: objects, or sentences.
func (a *exchange) fail(status int, message string, errs ...any) {
	body := object{"message": message, "documentation_url": "https://docs.github.com/rest", "status": strconv.Itoa(status)}
	if len(errs) > 0 {
		body["errors"] = errs
	}
	a.reply(status, body)
}

// notFound is GitHub's refusal for what does not exist and for what may not be seen.
func (a *exchange) notFound() { a.fail(http.StatusNotFound, "Not Found") }

// invalid refuses a body for a reason about a field.
func (a *exchange) invalid(resource, field, code string) {
	a.fail(http.StatusUnprocessableEntity, "Validation Failed", object{"resource": resource, "field": field, "code": code})
}

// custom refuses a body for a reason that has a sentence of its own.
func (a *exchange) custom(resource, message string) {
	a.fail(http.StatusUnprocessableEntity, "Validation Failed",
		object{"resource": resource, "code": "custom", "message": message})
}

// decode reads the body, which has passed the description's schema.
func (a *exchange) decode(into any) bool {
	if len(a.body) == 0 {
		return true
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		a.fail(http.StatusBadRequest, "Problems parsing JSON")
		return false
	}
	return true
}

// number reads a number in the path; one that is none is never found.
func (a *exchange) number(name string) int {
	n, err := strconv.Atoi(a.path[name])
	if err != nil {
		return 0
	}
	return n
}

// page cuts a list as the query asks for, 30 at a time unless told otherwise and never more than 100, and links the
// pages around it.
func page[T any](a *exchange, items []T) []T {
	per, number := a.queryInt("per_page", 30), a.queryInt("page", 1)
	if per < 1 || per > 100 {
		per = 100
	}
	last := max(1, (len(items)+per-1)/per)
	var links []string
	link := func(to int, rel string) {
		links = append(links, fmt.Sprintf(`<%s%s?%s>; rel="%s"`, a.s.URL(), a.place, a.pageQuery(to), rel))
	}
	if number > 1 {
		link(number-1, "prev")
	}
	if number < last {
		link(number+1, "next")
		link(last, "last")
	}
	if number > 1 {
		link(1, "first")
	}
	if len(links) > 0 {
		a.header.Set("Link", strings.Join(links, ", "))
	}
	from := min(len(items), (number-1)*per)
	return items[from:min(len(items), from+per)]
}

// pageQuery returns the query of the request with another page, which stands last if none was named.
func (a *exchange) pageQuery(to int) string {
	var out []string
	page := "page=" + strconv.Itoa(to)
	for _, part := range strings.Split(a.r.URL.RawQuery, "&") {
		switch {
		case strings.HasPrefix(part, "page="):
			out, page = append(out, page), ""
		case part != "":
			out = append(out, part)
		}
	}
	if page != "" {
		out = append(out, page)
	}
	return strings.Join(out, "&")
}

func (a *exchange) queryInt(name string, otherwise int) int {
	n, err := strconv.Atoi(a.query.Get(name))
	if err != nil || n < 1 {
		return otherwise
	}
	return n
}

// send writes the answer.
func (a *exchange) send(w http.ResponseWriter) {
	out := a.raw
	if out == nil && a.answer != nil {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(a.answer); err != nil {
			a.s.t.Errorf("the fake GitHub cannot write its answer to %s: %v", a.route, err)
		}
		out = b.Bytes()
	}
	if a.s.rest.answers != nil && a.route != "" && a.raw == nil {
		if err := a.s.rest.answers.CheckResponse(a.route, a.status, out); err != nil {
			a.s.t.Errorf("the fake GitHub's answer does not fit the description: %v", err)
		}
	}
	if len(out) > 0 && a.status < http.StatusMultipleChoices {
		w.Header().Set("Cache-Control", "private, max-age=60, s-maxage=60")
	}
	if len(out) == 0 {
		w.Header().Del("Content-Type")
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(out) // a client that has gone needs no answer
}
