package cli

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"

	"github.com/claudeops/claudeops/internal/app"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/web/handler"
)

// listed is the JSON of every command that lists: one shape, so that one program reads all of them.
type listed[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor,omitempty"` // what asks for the next page; absent on the last one
}

func listOf[T any](items []T) listed[T] { return listed[T]{Items: append([]T{}, items...)} }

// asList gives an answer that lists something the shape of listed, and keeps what else it says. Its list is its first
// field that is a slice of structs. An answer without one is returned as it is.
func asList(answer any) any {
	v := reflect.Indirect(reflect.ValueOf(answer))
	if v.Kind() != reflect.Struct {
		return answer
	}
	for _, f := range operation.Fields(v.Type()) {
		if f.Type.Kind() != reflect.Slice || f.Type.Elem().Kind() != reflect.Struct {
			continue
		}
		text, err := json.Marshal(answer)
		members := map[string]json.RawMessage{}
		if err != nil || json.Unmarshal(text, &members) != nil {
			return answer
		}
		members["items"] = members[f.JSON]
		delete(members, f.JSON)
		return members
	}
	return answer
}

// problemOf returns an error as REST has it: the same members, with the status that REST would answer.
func problemOf(err error) handler.Problem {
	e := fault.From(err)
	var usage app.UsageError
	var plain plainFailure
	switch {
	case errors.As(err, &usage):
		e = fault.New(fault.InvalidArgument, "%s", err)
	case errors.As(err, &plain):
		e = fault.New(fault.Internal, "%s", err)
	}
	wire := e.Wire(operation.RequestIDOf(err))
	status := e.Code.HTTPStatus()
	return handler.Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: wire.Message, Code: wire.Code,
		Retryable: wire.Retryable, RetryAfterSeconds: wire.RetryAfterSeconds, Violations: wire.Violations,
		ExistingPR: wire.ExistingPR,
		Next:       wire.Next, RequestID: wire.RequestID,
	}
}
