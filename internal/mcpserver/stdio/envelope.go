package stdio

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/mark3labs/mcp-go/mcp"
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
		err = w.walkMessage()
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

func (w *walker) walkMessage() error {
	seen := newNames("jsonrpc", "id", "method", "params", "result", "error")
	idInDoubt := false
	err := w.walkObject(func(name string) error {
		sound := w.checkMember(seen, name, "the message")
		idInDoubt = idInDoubt || !sound && strings.EqualFold(name, "id")
		switch name {
		case "jsonrpc":
			return w.readText(func(s string) { w.env.version = s })
		case "id":
			w.env.idGiven = true
			return w.id(&w.env.id)
		case "method":
			w.env.methodBad = w.dec.PeekKind() != '"'
			return w.readText(func(s string) { w.env.method = s })
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
	return w.walkObject(func(name string) error {
		w.checkMember(seen, name, "params")
		switch name {
		case "name":
			return w.readText(func(s string) { p.name, p.named = s, true })
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

// walkObject reads an object; member is called after each name and must consume the value.
func (w *walker) walkObject(member func(name string) error) error {
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

// readText hands a string to set and passes over any other value.
func (w *walker) readText(set func(string)) error {
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
			w.env.setFlaw(&flaw{ReasonTooDeep, fmt.Sprintf("The message nests deeper than %d levels; flatten it.", maxDepth)})
		}
		if depth == start {
			return nil
		}
	}
}

func (e *envelope) setFlaw(f *flaw) {
	if e.flaw == nil {
		e.flaw = f
	}
}

// memberNames watches the known members of one object for repetition and for spellings that differ only in case.
type memberNames struct {
	known []string
	seen  []bool
}

func newNames(known ...string) *memberNames {
	return &memberNames{known: known, seen: make([]bool, len(known))}
}

// checkMember reports whether a name is sound: unlike every known one, or spelled as it is and there for the first
// time.
func (n *memberNames) checkMember(name string) (sound bool, known string) {
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

// checkMember notes a name that is not sound. The message is made for the first one only: there may be as many as fit
// the message.
func (w *walker) checkMember(seen *memberNames, name, where string) (sound bool) {
	sound, known := seen.checkMember(name)
	switch {
	case sound || w.env.flaw != nil:
	case name != known:
		w.env.setFlaw(&flaw{ReasonInvalidRequest, fmt.Sprintf("The member %q of %s must be spelled %q.", name, where, known)})
	default:
		w.env.setFlaw(&flaw{ReasonDuplicateKey, fmt.Sprintf("The member %q of %s is given twice; give it once.", name, where)})
	}
	return sound
}

// jsonNull returns the id of an answer to a message whose id is unknown or unusable.
func jsonNull() json.RawMessage { return json.RawMessage("null") }

// maxIDLength bounds a string id, in bytes, since ids go to logs and to the audit.
const maxIDLength = 1024

// requestID is a JSON-RPC id: a string or an integer of 64 bits (MCP allows neither null nor fractions). It is kept as
// text because mcp-go reads numbers as floats, in which large integers lose digits. The zero value means that there is
// no id.
type requestID struct {
	raw   string // JSON text
	scope uint64 // in which it is the id of one request; 0 for the connection
}

func newRequestID(kind jsontext.Kind, text string) requestID {
	if kind == '"' {
		if len(text) > maxIDLength {
			return requestID{}
		}
		raw, err := jsontext.AppendQuote(nil, text)
		if err != nil {
			return requestID{}
		}
		return requestID{raw: string(raw)}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return requestID{}
	}
	return requestID{raw: strconv.FormatInt(n, 10)}
}

// withScope returns the id as one of a scope.
func (id requestID) withScope(scope uint64) requestID {
	id.scope = scope
	return id
}

func (id requestID) isSet() bool { return id.raw != "" }

// json returns the id as it goes into an answer: null when unknown.
func (id requestID) json() json.RawMessage {
	if !id.isSet() {
		return jsonNull()
	}
	return json.RawMessage(id.raw)
}

// trailingID finds the id at the end of a message of which only the tail was kept: `,"id":7}`, where common clients
// write it. In valid JSON such a tail can only be the last member of the outermost object: an unescaped quote ends a
// string, so none of it can lie inside one, and the last brace closes the message.
func trailingID(tail []byte) requestID {
	rest, ok := cutLast(tail, "}")
	if !ok {
		return requestID{}
	}
	value := rest[lastColon(rest):]
	rest, ok = cutLast(rest[:len(rest)-len(value)], ":")
	if !ok {
		return requestID{}
	}
	rest, ok = cutLast(rest, `"id"`)
	if !ok {
		return requestID{}
	}
	if _, ok = cutLast(rest, ","); !ok {
		return requestID{}
	}
	dec := jsontext.NewDecoder(bytes.NewBuffer(value))
	kind := dec.PeekKind()
	if kind != '"' && kind != '0' {
		return requestID{}
	}
	token, err := dec.ReadToken()
	if err != nil || len(bytes.TrimSpace(value[dec.InputOffset():])) > 0 {
		return requestID{}
	}
	return newRequestID(kind, token.String())
}

// lastColon returns the offset behind the colon that ends the text `"id":` closest to the end of b, or len(b).
func lastColon(b []byte) int {
	key := bytes.LastIndex(b, []byte(`"id"`))
	if key < 0 {
		return len(b)
	}
	colon := bytes.IndexByte(b[key:], ':')
	if colon < 0 {
		return len(b)
	}
	return key + colon + 1
}

// cutLast removes white space and then suffix from the end of b.
func cutLast(b []byte, suffix string) ([]byte, bool) {
	return bytes.CutSuffix(bytes.TrimRight(b, " \t\r\n"), []byte(suffix))
}

// maxEnvelope limits the bytes of a message beside the arguments of a tools/call.
const maxEnvelope = 64 << 10

// split separates the arguments of a tools/call from a message: envelope is the message with empty arguments, and
// mcp-go gets only that. mcp-go decodes its input into maps, several times: that costs seconds for a few crafted
// megabytes, and loses duplicate names. The handler of the call decodes the arguments once.
func split(raw []byte, env envelope) (envelope []byte, arguments json.RawMessage) {
	p := env.params
	if env.method != string(mcp.MethodToolsCall) || p.arguments != '{' || p.to <= p.from {
		return raw, nil
	}
	value := bytes.TrimLeft(raw[p.from:p.to], ": \t\r\n")
	from := p.to - len(value)
	envelope = make([]byte, 0, len(raw)-len(value)+2)
	envelope = append(append(append(envelope, raw[:from]...), "{}"...), raw[p.to:]...)
	return envelope, json.RawMessage(value)
}

// checkSize refuses a message that is large beside its arguments.
func checkSize(raw []byte, env envelope) *messageRejection {
	size := len(raw)
	if p := env.params; env.method == string(mcp.MethodToolsCall) {
		size -= p.to - p.from
	}
	if size <= maxEnvelope {
		return nil
	}
	return invalidRequest(env.id, ReasonTooLarge, fmt.Sprintf(
		"The message has %d bytes beside the arguments of a tools/call and the limit is %d.", size, maxEnvelope))
}

type argumentsKey struct{}

// Arguments returns the JSON text of the arguments of the tools/call under way, exactly as the client sent it:
// duplicate names, spelling of names and the digits of numbers are still there. mcp-go's own decoded arguments are
// always empty. It is valid UTF-8, one JSON object, and must not be changed; nil outside of a call, and of one without
// arguments.
func Arguments(ctx context.Context) json.RawMessage {
	raw, _ := ctx.Value(argumentsKey{}).(json.RawMessage)
	return raw
}

func withArguments(ctx context.Context, arguments json.RawMessage) context.Context {
	return context.WithValue(ctx, argumentsKey{}, arguments)
}
