package fakegitea

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
)

// answer is the result of a successful route.
type answer struct {
	status int
	body   any    // nil: no body
	page   string // instead of a body: text of the Content-Type in the header
	header http.Header
	// between runs without the host's lock, then the request goes on with then: where the real server checks first and
	// writes later, others may act in the meantime.
	between func()
	then    func() (*answer, error)
}

func ok(body any) *answer      { return &answer{status: http.StatusOK, body: body} }
func created(body any) *answer { return &answer{status: http.StatusCreated, body: body} }

// counted adds the number of all entries, of which the body may be one page.
func (a *answer) counted(total int) *answer {
	return a.with("X-Total-Count", strconv.Itoa(total))
}

func (a *answer) with(name, value string) *answer {
	if value == "" {
		return a
	}
	if a.header == nil {
		a.header = http.Header{}
	}
	a.header.Set(name, value)
	return a
}

// refusal is an answer that says no. The real server has several shapes for it.
type refusal struct {
	status  int
	message string
	// detailed refusals have a further member errors, which is null when there are no details.
	detailed bool
	details  []string
	// plain refusals are their message as text/plain; the others are JSON.
	plain bool
	html  bool // plain, as text/html
	empty bool // no body at all
	// internal refusals hide their message from everybody but administrators.
	internal bool
}

// Error makes a refusal an error.
func (r *refusal) Error() string { return strconv.Itoa(r.status) + " " + r.message }

func refuse(status int, message string) *refusal { return &refusal{status: status, message: message} }

func notFound(details ...string) *refusal {
	return &refusal{status: http.StatusNotFound, message: "not found", detailed: true, details: details}
}

func noObject(id, path string) string {
	return "object does not exist [id: " + id + ", rel_path: " + path + "]"
}

func unprocessable(message string) *refusal { return refuse(http.StatusUnprocessableEntity, message) }

func forbidden(message string) *refusal { return refuse(http.StatusForbidden, message) }

func silentlyForbidden() *refusal { return &refusal{status: http.StatusForbidden, empty: true} }

func internalError(message string) *refusal {
	return &refusal{status: http.StatusInternalServerError, message: message, internal: true}
}

// panicked returns the server's answer when its own code panics.
func panicked() *refusal {
	return &refusal{status: http.StatusInternalServerError, html: true, plain: true,
		message: "<!DOCTYPE html>\n<html><head><title>Internal Server Error</title></head><body>500</body></html>\n"}
}

func noSuchRoute() *refusal {
	return &refusal{status: http.StatusNotFound, message: "404 page not found\n", plain: true}
}

// body renders the refusal. docs is the address that every JSON refusal names.
func (r *refusal) body(docs string, admin bool) map[string]any {
	message := r.message
	if r.internal && !admin {
		message = ""
	}
	out := map[string]any{"message": message, "url": docs}
	if r.detailed {
		out["errors"] = r.details
	}
	return out
}

const jsonType = "application/json;charset=utf-8"

func writeJSON(w http.ResponseWriter, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", jsonType)
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n'))
}

func (a *answer) write(w http.ResponseWriter) {
	for name, values := range a.header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	if a.body == nil {
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.page)
		return
	}
	writeJSON(w, a.status, a.body)
}
