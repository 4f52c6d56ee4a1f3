// Package strictjson decodes JSON that others wrote into Go structs and reports everything that is wrong with it at
// once, in sentences that the author can act on.
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
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/claudeops/claudeops/internal/base/fault"
)

const (
	// maxViolations limits the violations that are listed. The search ends at the next one, and one more line says so.
	maxViolations = 50
	// maxDepth limits the nesting of arrays and objects, the outermost object counted.
	maxDepth = 32
)

// Options vary what Decode says and accepts. The zero value is ready for use.
type Options struct {
	// What names the whole in messages, after "the"; "arguments" if empty.
	What string
	// RefuseNUL makes a NUL character (\u0000) in a string a violation. By default it reaches dst, since code that knows
	// the purpose of the string gives the better error. A raw NUL byte is never JSON.
	RefuseNUL bool
}

// errEnough ends decoding at the violation after maxViolations.
var errEnough = errors.New("enough violations")

// Decode decodes the JSON object raw into dst, a pointer to a struct, and returns every violation of it, in the order
// of the text; names that an object lacks follow its end. Without a violation dst is replaced as a whole; with one it
// is left as it was. Empty input counts as {}.
//
// The exported fields of a struct carry a tag `json:"name"`, and `required:"true"` if the name must be present. They
// are of kind string, *string and *bool (null gives nil, unless required), bool, int, time.Time, a slice or a struct of
// such; anything else is a mistake of the program and panics. A number for an int is written without fraction and
// exponent, so 1.0 and 1e3 are refused as encoding/json refuses them. A slice may carry `maxItems:"100"`: what follows
// that many elements, of it and of slices within it, is a violation and not decoded; and `nullable:"true"`: null gives
// nil. An int may carry `minimum:"1"` and `maximum:"3"`. See also Limits.
//
// Each violation has code invalid_argument and as Path where it is, such as files[2].content; empty for the whole. Byte
// offsets count from 0. Submitted text is repeated in at most 60 characters and without control characters. Malformed
// JSON, nesting beyond maxDepth and the violation after maxViolations end the search; what was found before is kept.
//
// Its time is linear in the length of raw, whatever that holds: see BenchmarkDecodeHostile.
func Decode(raw []byte, dst any, opts Options) []fault.Violation {
	fresh, violations, _ := decodeStrict(raw, dst, opts)
	if len(violations) == 0 {
		reflect.ValueOf(dst).Elem().Set(fresh)
	}
	return violations
}

// DecodeSome is Decode, but with violations dst gets what was read, so that more can be reported about a refused
// document: the first value of a name that is given more than once, and nothing that follows the end of the search. Of
// malformed JSON and of what is nested too deep it gets the zero value.
//
// check, if not nil, is then called to find further problems of dst. Its violations at a place that has one already are
// left out. It is not called if the search ended early: unread values would look like missing ones.
func DecodeSome(raw []byte, dst any, opts Options, check func() []fault.Violation) []fault.Violation {
	fresh, violations, wellFormed := decodeStrict(raw, dst, opts)
	if !wellFormed {
		fresh.SetZero()
	}
	reflect.ValueOf(dst).Elem().Set(fresh)
	if check == nil || !wellFormed || len(violations) > maxViolations {
		return violations
	}
	return besides(violations, check())
}

// besides adds to violations those of others that are about other places.
func besides(violations, others []fault.Violation) []fault.Violation {
	known := violations
	for _, v := range others {
		told := func(k fault.Violation) bool {
			rest, within := strings.CutPrefix(v.Path, k.Path)
			return within && (rest == "" || rest[0] == '.' || rest[0] == '[')
		}
		if !slices.ContainsFunc(known, told) {
			violations = append(violations, v)
		}
	}
	return violations
}

func decodeStrict(raw []byte, dst any, opts Options) (fresh reflect.Value, violations []fault.Violation,
	wellFormed bool) {
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
	d := newDecoder(raw, opts)
	fresh = reflect.New(target.Type().Elem()).Elem()
	err := d.document(fresh)
	wellFormed = err == nil || errors.Is(err, errEnough)
	if !wellFormed {
		d.addReadFailure(err)
	}
	return fresh, d.violations, wellFormed
}

// decoder is the state of one Decode.
type decoder struct {
	raw        []byte
	opts       Options
	in         *jsontext.Decoder
	tooDeep    bool // raw ends where it is nested too deep
	at         []pathStep
	known      map[reflect.Type][]structField
	violations []fault.Violation
}

func newDecoder(raw []byte, opts Options) *decoder {
	end, tooDeep := nestedUpTo(raw, maxDepth)
	raw = raw[:end:end]
	return &decoder{
		raw: raw, opts: opts, tooDeep: tooDeep, known: map[reflect.Type][]structField{},
		in: jsontext.NewDecoder(bytes.NewBuffer(raw), // the one reader that is not copied
			// Both are found by this package, which goes on and knows their place.
			jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)),
	}
}

// document decodes the whole input. An error is one of jsontext, or errEnough.
func (d *decoder) document(into reflect.Value) error {
	if err := d.value(into, true, 0); err != nil {
		return err
	}
	end := d.in.InputOffset()
	if _, err := d.in.ReadToken(); !errors.Is(err, io.EOF) {
		return d.addViolation("send one JSON object and nothing after it",
			"the %s must end after the JSON object: more follows byte offset %d", d.opts.What, end)
	}
	return nil
}

// addReadFailure notes why the input could not be read to its end.
func (d *decoder) addReadFailure(err error) {
	cut := errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
	if cut && d.tooDeep {
		_ = d.addViolation("flatten it", "%s must not be nested more than %d levels deep", d.subject(), maxDepth)
		return
	}
	d.at = nil
	if cut {
		_ = d.addViolation("send the whole object; perhaps the text was cut",
			"the %s must be complete JSON: the text stops within a value after byte offset %d", d.opts.What, len(d.raw))
		return
	}
	where, reason := d.in.InputOffset(), err
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		where, reason = syntax.ByteOffset, syntax.Err
	}
	_ = d.addViolation("send one well-formed JSON object", "the %s must be JSON: at byte offset %d, %s",
		d.opts.What, where, clip(reason.Error(), maxReason))
}

// addViolation adds a violation where the decoder is. The one after maxViolations ends the search: the error is
// errEnough then.
func (d *decoder) addViolation(suggestion, format string, args ...any) error {
	if len(d.violations) == maxViolations {
		d.violations = append(d.violations, fault.Violation{
			Code:       fault.InvalidArgument,
			Message:    fmt.Sprintf("there are more violations than these %d; the search ended at the next one", maxViolations),
			Suggestion: "mend these first",
		})
		return errEnough
	}
	d.violations = append(d.violations, fault.Violation{
		Code: fault.InvalidArgument, Path: d.path(), Message: fmt.Sprintf(format, args...), Suggestion: suggestion,
	})
	return nil
}

// pathStep is one step from a value to one within it: to a member by its name, or to an element by its index.
type pathStep struct {
	name    string
	index   int
	element bool
}

// enter goes down a step; leave goes back. After an error leave is not called, so that the decoder still knows where it
// is.
func (d *decoder) enter(s pathStep) { d.at = append(d.at, s) }
func (d *decoder) popPath()         { d.at = d.at[:len(d.at)-1] }

// path returns the place of the decoder, such as files[2].content; "" at the whole. Names that were submitted are cut
// short.
func (d *decoder) path() string {
	var b strings.Builder
	for _, s := range d.at {
		switch {
		case s.element:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case b.Len() > 0:
			b.WriteString("." + clip(s.name, maxEcho))
		default:
			b.WriteString(clip(s.name, maxEcho))
		}
	}
	return b.String()
}

// quotedPath returns the path as a message names it.
func (d *decoder) quotedPath() string { return "`" + d.path() + "`" }

// subject names what the decoder is at in a message.
func (d *decoder) subject() string {
	if len(d.at) == 0 {
		return "the " + d.opts.What
	}
	return d.quotedPath()
}

// nestedUpTo returns the offset of the first bracket that opens a level deeper than depth, and whether there is one;
// without one it is the length of raw. It counts brackets outside of strings, which is right as far as raw is
// well-formed.
func nestedUpTo(raw []byte, depth int) (end int, deeper bool) {
	level := 0
	for at := 0; at < len(raw); at++ {
		switch raw[at] {
		case '"':
			at = stringEnd(raw, at)
		case '{', '[':
			if level++; level > depth {
				return at, true
			}
		case '}', ']':
			level--
		}
	}
	return len(raw), false
}

// stringEnd returns the offset of the quote that closes the string beginning at an offset, or the length of raw.
func stringEnd(raw []byte, at int) int {
	for at++; at < len(raw); at++ {
		switch raw[at] {
		case '"':
			return at
		case '\\':
			at++ // whatever is escaped ends nothing
		}
	}
	return len(raw)
}
