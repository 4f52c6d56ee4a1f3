// Package strictjson decodes JSON that others wrote into Go structs and says everything that is wrong with it at once,
// in sentences that whoever wrote it can act on.
//
// It is stricter than encoding/json: names must be spelled exactly, unknown and repeated names are refused, so are null
// where nothing may be null, invalid UTF-8 and halves of surrogate pairs. What it accepts, encoding/json decodes to the
// same value.
package strictjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/claudeops/claudeops/internal/fault"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// MaxViolations is how many violations are listed; one more says how many there are beyond.
	MaxViolations = 50
	// MaxDepth is how deep arrays and objects may be nested, the outermost object counted.
	MaxDepth = 32
)

// Options vary what Decode says and accepts. The zero value is ready for use.
type Options struct {
	// What names the whole in messages, after "the"; "arguments" if empty.
	What string
	// RefuseNUL makes a NUL character (\u0000) in a string a violation. By default it reaches dst, since whoever
	// knows what the string is for gives the better answer. A raw NUL byte is never JSON.
	RefuseNUL bool
}

// errTooDeep ends decoding at a value that is nested too deep; the violation is already noted.
var errTooDeep = errors.New("nested too deep")

// Decode decodes the JSON object raw into dst, a pointer to a struct, and returns every violation of it, in the order
// of the text; names that an object lacks follow its end. Without a violation dst is replaced as a whole; with one it
// is left as it was. Empty input counts as {}.
//
// The exported fields of a struct carry a tag `json:"name"`, and `required:"true"` if the name must be present. They are
// of kind string, *string (null gives nil, unless required), bool, int, a slice or a struct of such; anything else is a
// mistake of the program and panics. A number for an int is written without fraction and exponent, so 1.0 and 1e3 are
// refused as encoding/json refuses them.
//
// Each violation has code invalid_argument and as Path where it is, such as files[2].content; empty for the whole. Byte
// offsets count from 0. Submitted text is repeated in at most 60 characters and without control characters. Malformed
// JSON and nesting beyond MaxDepth end the search; what was found before is kept.
func Decode(raw []byte, dst any, opts Options) []fault.Violation {
	target := reflect.ValueOf(dst)
	if target.Kind() != reflect.Pointer || target.IsNil() || target.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("strictjson: cannot decode into %T, want a pointer to a struct", dst))
	}
	if len(bytes.Trim(raw, " \t\r\n")) == 0 {
		raw = []byte("{}")
	}
	if opts.What == "" {
		opts.What = "arguments"
	}
	d := &decoder{
		raw:  raw,
		opts: opts,
		in: jsontext.NewDecoder(bytes.NewReader(raw),
			// Both are found by this package, which goes on and knows their place.
			jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)),
	}
	fresh := reflect.New(target.Type().Elem()).Elem()
	if err := d.document(fresh); err != nil {
		d.malformed(err)
	}
	if len(d.violations) == 0 {
		target.Elem().Set(fresh)
		return nil
	}
	return d.all()
}

// decoder is the state of one Decode.
type decoder struct {
	raw        []byte
	opts       Options
	in         *jsontext.Decoder
	violations []fault.Violation
	unlisted   int // violations beyond MaxViolations
}

// document decodes the whole input. An error is one of jsontext, or errTooDeep.
func (d *decoder) document(into reflect.Value) error {
	if err := d.value("", into, true); err != nil {
		return err
	}
	end := d.in.InputOffset()
	if _, err := d.in.ReadToken(); !errors.Is(err, io.EOF) {
		d.note("", "send one JSON object and nothing after it",
			"the %s must end after the JSON object: more follows byte offset %d", d.opts.What, end)
	}
	return nil
}

// malformed notes an error of document.
func (d *decoder) malformed(err error) {
	if errors.Is(err, errTooDeep) {
		return
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		d.note("", "send the whole object; perhaps the text was cut",
			"the %s must be complete JSON: the text stops within a value after byte offset %d", d.opts.What, len(d.raw))
		return
	}
	where, reason := d.in.InputOffset(), err
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		where, reason = syntax.ByteOffset, syntax.Err
	}
	d.note("", "send one well-formed JSON object", "the %s must be JSON: at byte offset %d, %s",
		d.opts.What, where, clip(reason.Error(), maxReason))
}

// note adds a violation at path.
func (d *decoder) note(path, suggestion, format string, args ...any) {
	if len(d.violations) == MaxViolations {
		d.unlisted++
		return
	}
	d.violations = append(d.violations, fault.Violation{
		Code: fault.InvalidArgument, Path: path, Message: fmt.Sprintf(format, args...), Suggestion: suggestion,
	})
}

// all is the violations and how many more there are.
func (d *decoder) all() []fault.Violation {
	if d.unlisted == 0 {
		return d.violations
	}
	return append(d.violations, fault.Violation{
		Code:       fault.InvalidArgument,
		Message:    fmt.Sprintf("%d more violations are not listed", d.unlisted),
		Suggestion: "mend these first",
	})
}
