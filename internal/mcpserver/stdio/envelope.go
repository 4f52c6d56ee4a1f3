package stdio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth limits the nesting of values in a message. The deepest legitimate call has six levels.
const maxDepth = 64

// envelope holds the fields of a message that the loop needs. A broken message still has the fields that were read
// before the break.
type envelope struct {
	top       jsontext.Kind // kind of the message: '{' for an object
	version   string
	id        requestID
	idGiven   bool // there is an id member, usable or not
	method    string
	methodBad bool // the method is not a string
	response  bool // there is a result or an error member
	params    paramsEnvelope
	flaw      *flaw // the first rule that the envelope breaks
	to        outlet
}

// paramsEnvelope is the part of params that decides where a message goes.
type paramsEnvelope struct {
	kind      jsontext.Kind // invalid (0) when absent
	name      string        // params.name: the tool of a tools/call
	named     bool          // params.name is a string
	arguments jsontext.Kind // invalid (0) when absent
	from, to  int           // where the arguments are in the message
	cancels   requestID     // params.requestId of notifications/cancelled
}

// flaw is a broken rule of the envelope.
type flaw struct {
	reason  Reason
	message string
}

// parseEnvelope walks the whole message once. The error says that it is not one valid JSON value (RFC 8259, and no
// lone surrogates); breaches of the rules for the envelope are left in its flaw.
//
// Names are compared as mcp-go will compare them: its decoder takes "METHOD" for "method", so that a message could
// otherwise mean one thing here and another thing there.
func parseEnvelope(raw []byte, options ...jsontext.Options) (envelope, error) {
	// Duplicate names deep inside arguments are left to the code that decodes the arguments.
	dec := jsontext.NewDecoder(bytes.NewBuffer(raw), append(options, jsontext.AllowDuplicateNames(true))...)
	w := &walker{dec: dec}
	w.env.top = dec.PeekKind()
	var err error
	if w.env.top == '{' {
		err = w.message()
	} else {
		err = w.skip()
	}
	if err == nil {
		_, err = dec.ReadToken()
		if errors.Is(err, io.EOF) {
			return w.env, nil
		}
		if err == nil {
			err = errors.New("more than one JSON value")
		}
	}
	return w.env, err
}

// walker reads one message token by token: no recursion, whatever the nesting.
type walker struct {
	dec *jsontext.Decoder
	env envelope
}

func (w *walker) message() error {
	seen := newNames("jsonrpc", "id", "method", "params", "result", "error")
	idInDoubt := false
	err := w.object(func(name string) error {
		sound := w.check(seen, name, "the message")
		idInDoubt = idInDoubt || !sound && strings.EqualFold(name, "id")
		switch name {
		case "jsonrpc":
			return w.text(func(s string) { w.env.version = s })
		case "id":
			w.env.idGiven = true
			return w.id(&w.env.id)
		case "method":
			w.env.methodBad = w.dec.PeekKind() != '"'
			return w.text(func(s string) { w.env.method = s })
		case "params":
			return w.params()
		case "result", "error":
			w.env.response = true
		}
		return w.skip()
	})
	if idInDoubt {
		w.env.id = requestID{}
	}
	return err
}

func (w *walker) params() error {
	p := &w.env.params
	p.kind = w.dec.PeekKind()
	if p.kind != '{' {
		return w.skip()
	}
	seen := newNames("name", "arguments", "_meta", "requestId")
	return w.object(func(name string) error {
		w.check(seen, name, "params")
		switch name {
		case "name":
			return w.text(func(s string) { p.name, p.named = s, true })
		case "requestId":
			return w.id(&p.cancels)
		case "arguments":
			p.arguments = w.dec.PeekKind()
			p.from = int(w.dec.InputOffset())
			err := w.skip()
			p.to = int(w.dec.InputOffset())
			return err
		}
		return w.skip()
	})
}

// object reads an object; member is called after each name and must consume the value.
func (w *walker) object(member func(name string) error) error {
	if _, err := w.dec.ReadToken(); err != nil {
		return err
	}
	for w.dec.PeekKind() != '}' {
		name, err := w.dec.ReadToken()
		if err != nil {
			return err
		}
		if err := member(name.String()); err != nil {
			return err
		}
	}
	_, err := w.dec.ReadToken()
	return err
}

// text hands a string to set and passes over any other value.
func (w *walker) text(set func(string)) error {
	if w.dec.PeekKind() != '"' {
		return w.skip()
	}
	token, err := w.dec.ReadToken()
	if err == nil {
		set(token.String())
	}
	return err
}

// id reads an id into dst and leaves dst empty if the value cannot be one.
func (w *walker) id(dst *requestID) error {
	kind := w.dec.PeekKind()
	if kind != '"' && kind != '0' {
		return w.skip()
	}
	token, err := w.dec.ReadToken()
	if err == nil {
		*dst = newRequestID(kind, token.String())
	}
	return err
}

// skip passes over the next value and notes nesting beyond maxDepth.
func (w *walker) skip() error {
	start := w.dec.StackDepth()
	for {
		if _, err := w.dec.ReadToken(); err != nil {
			return err
		}
		depth := w.dec.StackDepth()
		if depth > maxDepth && w.env.flaw == nil {
			w.env.note(&flaw{ReasonTooDeep, fmt.Sprintf("The message nests deeper than %d levels; flatten it.", maxDepth)})
		}
		if depth == start {
			return nil
		}
	}
}

func (e *envelope) note(f *flaw) {
	if e.flaw == nil {
		e.flaw = f
	}
}

// names watches the known members of one object for repetition and for spellings that differ only in case.
type names struct {
	known []string
	seen  []bool
}

func newNames(known ...string) *names { return &names{known: known, seen: make([]bool, len(known))} }

// check reports whether a name is sound: unlike every known one, or spelled as it is and there for the first time.
func (n *names) check(name string) (sound bool, known string) {
	for i, known := range n.known {
		if !strings.EqualFold(name, known) {
			continue
		}
		if name != known || n.seen[i] {
			return false, known
		}
		n.seen[i] = true
	}
	return true, ""
}

// check notes a name that is not sound. The message is made for the first one only: there may be as many as fit the
// message.
func (w *walker) check(seen *names, name, where string) (sound bool) {
	sound, known := seen.check(name)
	switch {
	case sound || w.env.flaw != nil:
	case name != known:
		w.env.note(&flaw{ReasonInvalidRequest, fmt.Sprintf("The member %q of %s must be spelled %q.", name, where, known)})
	default:
		w.env.note(&flaw{ReasonDuplicateKey, fmt.Sprintf("The member %q of %s is given twice; give it once.", name, where)})
	}
	return sound
}

// jsonNull returns the id of an answer to a message whose id is unknown or unusable.
func jsonNull() json.RawMessage { return json.RawMessage("null") }
