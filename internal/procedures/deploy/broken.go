package deploy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/claudeops/claudeops/internal/base/contract"
)

// broken gathers what is wrong with modules, so that one answer names all of it.
type broken struct{ problems []*Error }

// isOfModule reports whether an error says that a module is invalid.
func isOfModule(err error) bool {
	e := contract.Of[Code](err)
	return e != nil && e.Code == ConfigInvalid && e.Details["module_id"] != nil
}

// note keeps an error that says that a module is invalid, and returns any other.
func (b *broken) note(err error) error {
	if !isOfModule(err) {
		return err
	}
	e := contract.Of[Code](err)
	same := func(known *Error) bool { return known.Message == e.Message }
	if !slices.ContainsFunc(b.problems, same) {
		b.problems = append(b.problems, e)
	}
	return nil
}

// maxNamedProblems bounds how many problems a message names; details have all of them.
const maxNamedProblems = 20

// err returns one error for all; nil if there is none.
func (b *broken) err() error {
	switch len(b.problems) {
	case 0:
		return nil
	case 1:
		return b.problems[0]
	}
	var problems []string
	var ids []any
	for _, e := range b.problems {
		problems = append(problems, e.Message)
		if id := e.Details["module_id"]; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	named := strings.Join(problems[:min(len(problems), maxNamedProblems)], "; ")
	if more := len(problems) - maxNamedProblems; more > 0 {
		named += fmt.Sprintf("; and %d more", more)
	}
	return invalidConfig("%d problems: %s", len(problems), named).With("problems", problems).With("module_ids", ids)
}
