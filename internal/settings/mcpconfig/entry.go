package mcpconfig

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/claudeops/claudeops/internal/system/transport"
)

// rawServer is one member of mcpServers, not looked at yet.
type rawServer struct {
	name string
	json jsontext.Value
}

// parseFile reads an object of the one member mcpServers and returns the servers sorted by name. Duplicate names at any
// depth and invalid UTF-8 are errors.
func parseFile(text []byte) ([]rawServer, error) {
	var file struct {
		Servers map[string]jsontext.Value `json:"mcpServers"`
	}
	if err := json.Unmarshal(text, &file, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("the file is not a JSON object of the one member mcpServers: %s", jsonProblem(err))
	}
	if len(file.Servers) > MaxServers {
		return nil, fmt.Errorf("the file names more than %d servers", MaxServers)
	}
	var out []rawServer
	for _, name := range slices.Sorted(maps.Keys(file.Servers)) {
		out = append(out, rawServer{name, file.Servers[name]})
	}
	return out, nil
}

// jsonProblem says what is wrong with JSON, and where.
func jsonProblem(err error) string {
	var syntactic *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.As(err, &syntactic) && errors.Is(err, jsontext.ErrDuplicateName):
		return "the name " + quote(syntactic.JSONPointer.LastToken()) + " is given twice"
	case errors.As(err, &syntactic):
		return fmt.Sprintf("it is malformed at byte offset %d", syntactic.ByteOffset)
	case errors.As(err, &semantic) && errors.Is(err, json.ErrUnknownName):
		return "the member " + quote(semantic.JSONPointer.LastToken()) + " is unknown"
	case errors.As(err, &semantic) && semantic.JSONPointer != "":
		return "the member " + quote(string(semantic.JSONPointer)) + " is of another type"
	}
	return "it is of another type"
}

// entry is a server in the only form in which one gets into the result: written anew from what was checked, never
// copied.
type entry struct {
	Type    string            `json:"type"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

func (e entry) commandOrURL() string {
	if e.Type == typeStdio {
		return e.Command
	}
	return e.URL
}

// json returns the entry for the client's file. It cannot fail, since the entry holds strings only.
func (e entry) json() stdjson.RawMessage {
	var b bytes.Buffer
	encoder := stdjson.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return stdjson.RawMessage("null")
	}
	return bytes.TrimSpace(b.Bytes())
}

// The types of servers that are understood.
const (
	typeStdio = "stdio"
	typeHTTP  = "http"
	typeSSE   = "sse"
)

// parseEntry checks one contributed server. An error is a sentence for the operator and holds no more of the
// repository's text than a quoted piece.
func (r Rules) parseEntry(raw jsontext.Value) (entry, error) {
	var e entry
	if err := json.Unmarshal(raw, &e, json.RejectUnknownMembers(true)); err != nil {
		return entry{}, fmt.Errorf("it is not made of type, command, args and env, or of type, url and headers: %s",
			jsonProblem(err))
	}
	if e.Type == "" && e.Command != "" {
		e.Type = typeStdio
	}
	var err error
	switch e.Type {
	case typeStdio:
		err = r.checkProgram(e)
		e.Env = r.blanked(e.Env)
	case typeHTTP, typeSSE:
		err = r.checkRemote(e)
	default:
		err = fmt.Errorf("the type %s is unknown; stdio, http and sse are understood", quote(e.Type))
	}
	return e, err
}

func (r Rules) checkProgram(e entry) error {
	switch {
	case r.Mode != All:
		return errors.New("it would run code that the repository chooses, and CLAUDEOPS_MOUNTED_MCP is not all")
	case e.Command == "" || e.URL != "" || len(e.Headers) > 0:
		return errors.New("a server of type stdio has a command and neither url nor headers")
	case strings.Contains(e.Command, "${"):
		return errors.New("a command may not be expanded from the environment")
	}
	if slices.ContainsFunc(append([]string{e.Command}, e.Args...), r.startsOurs) {
		return errors.New("it would start claudeops")
	}
	for _, name := range slices.Sorted(maps.Keys(e.Env)) {
		switch {
		case !regexp.MustCompile(`^` + variableForm + `$`).MatchString(name):
			return fmt.Errorf("env has %s, which is not a valid variable name", quote(name))
		case IsOurs(name, r.Forges) || slices.Contains(r.Blank, name):
			return fmt.Errorf("env sets %s, which only the operator may set", quote(name))
		}
	}
	for _, text := range slices.Concat(e.Args, slices.Sorted(maps.Values(e.Env))) {
		if err := r.checkExpansion(text); err != nil {
			return err
		}
	}
	return nil
}

// startsOurs reports whether a command or an argument names our own program, by path or by base name, alone or in a
// shell's line. It is a second line of defence: a script, a link or a copy of another name gets past it.
func (r Rules) startsOurs(text string) bool {
	words := strings.FieldsFunc(strings.ToLower(text), func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-'
	})
	own := strings.ToLower(path.Base(r.Binary))
	return slices.ContainsFunc(words, func(word string) bool {
		word = strings.TrimSuffix(word, ".exe")
		return word == "claudeops" || word == own
	})
}

// blanked returns the environment of a contributed program, with our variables empty, so that they are not inherited.
func (r Rules) blanked(env map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, env)
	for _, name := range r.Blank {
		out[name] = ""
	}
	return out
}

func (r Rules) checkRemote(e entry) error {
	switch {
	case e.URL == "" || e.Command != "" || len(e.Args) > 0 || len(e.Env) > 0:
		return fmt.Errorf("a server of type %s has a url and neither command, args nor env", e.Type)
	case strings.ContainsAny(e.URL, "${}"):
		return errors.New("a url may not be expanded from the environment")
	}
	u, err := url.Parse(e.URL)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("the url is not of the form https://host/path")
	case u.User != nil:
		return errors.New("the url carries a user name or password")
	case u.Fragment != "":
		return errors.New("the url has a fragment")
	}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		if err := r.checkHeader(name, e.Headers[name]); err != nil {
			return err
		}
		if strings.Contains(e.Headers[name], "${") && !transport.IsConfidential(u) {
			return fmt.Errorf("the header %s would send a variable over plain http to another machine", name)
		}
	}
	return nil
}

func (r Rules) checkHeader(name, value string) error {
	if !regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`).MatchString(name) {
		return fmt.Errorf("headers has %s, which is not a valid header name", quote(name))
	}
	if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) {
		return fmt.Errorf("the header %s has a character that is not printable ASCII", name)
	}
	isCredential := slices.Contains([]string{"authorization", "proxy-authorization", "cookie"}, strings.ToLower(name))
	if isCredential && !strings.Contains(value, "${") {
		return fmt.Errorf("the header %s has its secret written out; name a variable of CLAUDEOPS_MOUNTED_ENV instead", name)
	}
	return r.checkExpansion(value)
}

// variableForm is a variable's name as Claude Code expands it.
const variableForm = `[A-Za-z_][A-Za-z0-9_]*`

// checkExpansion reports a "${" that Claude Code would expand to anything but a variable that the operator admits. It
// expands ${NAME} and ${NAME:-default}, and never $NAME. A "${" of any other form is refused as well.
func (r Rules) checkExpansion(text string) error {
	form := regexp.MustCompile(`^\$\{(` + variableForm + `)(?::-[^${}]*)?\}`)
	for {
		at := strings.Index(text, "${")
		if at < 0 {
			return nil
		}
		match := form.FindStringSubmatch(text[at:])
		if match == nil {
			return errors.New("it has a ${ that is neither ${NAME} nor ${NAME:-default}")
		}
		if IsOurs(match[1], r.Forges) || slices.Contains(r.Blank, match[1]) {
			return fmt.Errorf("it asks for the variable %s, which no repository may have", quote(match[1]))
		}
		if !slices.Contains(r.Env, match[1]) {
			return fmt.Errorf("it asks for the variable %s, which CLAUDEOPS_MOUNTED_ENV does not name", quote(match[1]))
		}
		text = text[at+len(match[0]):]
	}
}

// IsOurs reports whether a variable belongs to Claude Ops, to a forge that it holds tokens of (forges are the prefixes
// of the names of their variables), or to the agent's own account. No repository may read or set one, whatever the
// operator admits.
func IsOurs(variable string, forges []string) bool {
	variable = strings.ToUpper(variable)
	return slices.ContainsFunc(append([]string{"CLAUDEOPS_", "ANTHROPIC_", "CLAUDE_"}, forges...),
		func(prefix string) bool {
			return strings.HasPrefix(variable, prefix)
		})
}
