// Package strictyaml reads files of settings: one document of YAML or JSON, whose problems are all said in the words of
// who wrote it.
package strictyaml

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Options of Decode. The zero value is the strictest.
type Options struct {
	Unknown bool // keys that the target has not are left out, rather than refused
	More    bool // documents after the first are left out, rather than refused
}

// Error lists the problems of a text, a sentence for each. Each has its line, if that is known.
type Error struct {
	Problems []string
	// Typed says that the text is YAML, and what was well formed of it was decoded.
	Typed bool
}

// Error implements error.
func (e *Error) Error() string { return strings.Join(e.Problems, "; ") }

// Decode reads a text into what into points to. empty reports that there is nothing in it but comments and white space;
// into is unchanged then. The error is an *Error.
func Decode(text []byte, into any, o Options) (empty bool, err error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(!o.Unknown)
	switch err := decoder.Decode(into); {
	case errors.Is(err, io.EOF):
		return true, nil
	case err != nil:
		return false, worded(err)
	}
	if err := decoder.Decode(new(yaml.Node)); !o.More && !errors.Is(err, io.EOF) {
		return false, &Error{Problems: []string{"it holds more than one YAML document; keep one"}}
	}
	return false, nil
}

// worded says what the library found: it speaks of Go types.
func worded(err error) *Error {
	var several *yaml.TypeError
	if !errors.As(err, &several) {
		return &Error{Problems: []string{strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " ")}}
	}
	out := &Error{Typed: true}
	for _, text := range several.Errors {
		if key, _, unknown := strings.Cut(text, " not found in type"); unknown {
			text = strings.Replace(key, "field ", "unknown key ", 1)
		}
		if problem, _, typed := strings.Cut(text, " into "); typed {
			text = strings.Replace(problem, "cannot unmarshal", "wrong type", 1)
		}
		text = regexp.MustCompile(`key "(.*)" already defined at`).ReplaceAllString(text, `key "$1" is there already, at`)
		out.Problems = append(out.Problems, strings.Join(strings.Fields(strings.ReplaceAll(text, "!!", "")), " "))
	}
	return out
}
