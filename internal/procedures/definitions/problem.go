package definitions

import (
	"cmp"
	"fmt"
	"slices"
)

// Severity says whether a problem keeps a definition from being used.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// Problem describes an error at one place of a file.
type Problem struct {
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`   // from 1; 0 where no line is to blame
	Column int    `json:"column,omitempty"` // from 1, in characters
	// keys and indexes joined with dots, such as llm.model; "" for the whole file
	Field      string   `json:"field"`
	Message    string   `json:"message"`
	Severity   Severity `json:"severity"`
	Suggestion string   `json:"suggestion,omitempty"`
}

// String returns the problem as a compiler would print it.
func (p Problem) String() string {
	text := p.Message
	if p.Field != "" {
		text = p.Field + ": " + text
	}
	switch {
	case p.File != "" && p.Line > 0:
		return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, text)
	case p.File != "":
		return p.File + ": " + text
	}
	return text
}

// Problems are the problems of one file.
type Problems []Problem

// Errors returns the problems of severity error.
func (ps Problems) Errors() Problems { return ps.of(SeverityError) }

// Warnings returns the problems of severity warning.
func (ps Problems) Warnings() Problems { return ps.of(SeverityWarning) }

func (ps Problems) of(s Severity) Problems {
	out := Problems{}
	for _, p := range ps {
		if p.Severity == s {
			out = append(out, p)
		}
	}
	return out
}

// sorted orders problems by their place.
func (ps Problems) sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return ps
}
