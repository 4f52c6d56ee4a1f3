package forgetest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Exchange is a request to a real server, and its answer, as testdata/recorded has them.
type Exchange struct {
	Name    string
	Request struct {
		Method, Path string
		Body         json.RawMessage
	}
	Response Answer
}

// Answer holds the compared parts of an answer. A body that is not JSON is a string.
type Answer struct {
	Status  int
	Headers map[string]string
	Body    any
}

// Recorded reads the exchanges of a file of testdata/recorded. What many answers show stands once in
// testdata/objects.json: "@NAME" in an answer is the object of that name. An object with the member "like" is the one
// that it names, too, but for its other members. FILE in objects.json is the name of the file.
func Recorded(t testing.TB, file string) (list []Exchange) {
	t.Helper()
	objects := map[string]any{}
	for path, into := range map[string]any{
		filepath.Join("testdata", "objects.json"):           &objects,
		filepath.Join("testdata", "recorded", file+".json"): &list,
	} {
		raw, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal([]byte(strings.ReplaceAll(string(raw), "FILE", file)), into)
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	for i := range list {
		list[i].Response.Body = whole(t, objects, list[i].Response.Body)
	}
	return list
}

// whole puts the named objects where a value names them.
func whole(t testing.TB, objects map[string]any, value any) any {
	t.Helper()
	named := func(name string) any {
		object, known := objects[name]
		if !known {
			t.Fatalf("there is no object %q", name)
		}
		return whole(t, objects, object)
	}
	switch value := value.(type) {
	case string:
		if name, is := strings.CutPrefix(value, "@"); is {
			return named(name)
		}
	case []any:
		list := make([]any, len(value))
		for i := range value {
			list[i] = whole(t, objects, value[i])
		}
		return list
	case map[string]any:
		members := map[string]any{}
		for name, member := range value {
			members[name] = whole(t, objects, member)
		}
		if name, is := members["like"].(string); is {
			delete(members, "like")
			return changed(named(name), members)
		}
		return members
	}
	return value
}

// changed is an object with other members. Those that are objects in both are changed, too.
func changed(value any, members map[string]any) any {
	object, is := value.(map[string]any)
	if !is {
		return members
	}
	for name, member := range members {
		if inner, is := member.(map[string]any); is {
			member = changed(object[name], inner)
		}
		object[name] = member
	}
	return object
}

// Ask sends a request and returns the answer with all of its headers.
func Ask(t testing.TB, method, address, body, authorization string) Answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := Answer{Status: resp.StatusCode, Headers: map[string]string{}}
	for name := range resp.Header {
		out.Headers[name] = resp.Header.Get(name)
	}
	if len(raw) > 0 && json.Unmarshal(raw, &out.Body) != nil {
		out.Body = string(raw)
	}
	return out
}

// Comparison says in what an answer may differ from the recorded one.
type Comparison struct {
	Headers []string // that are compared
	// Text compares two strings, and returns "" or in what they differ.
	Text func(recorded, got string) string
	// IsFree reports whether only the type of an object's member is compared.
	IsFree func(object map[string]any, member string) bool
	// Absent are members that only the recorded server has, Since those that only ours has.
	Absent, Since []string
}

// Problems lists in what an answer differs from the recorded one.
func (c Comparison) Problems(recorded, got Answer) (problems []string) {
	if recorded.Status != got.Status {
		problems = append(problems, fmt.Sprintf("status %d, recorded was %d: %v", got.Status, recorded.Status, got.Body))
	}
	for _, name := range c.Headers {
		if differs := c.Text(recorded.Headers[name], got.Headers[http.CanonicalHeaderKey(name)]); differs != "" {
			problems = append(problems, "header "+name+": "+differs)
		}
	}
	return append(problems, c.value("body", recorded.Body, got.Body)...)
}

func (c Comparison) value(path string, recorded, got any) (problems []string) {
	switch want := recorded.(type) {
	case map[string]any:
		if have, is := got.(map[string]any); is {
			return c.object(path, want, have)
		}
	case []any:
		if have, is := got.([]any); is && len(have) == len(want) {
			for i := range want {
				problems = append(problems, c.value(fmt.Sprintf("%s[%d]", path, i), want[i], have[i])...)
			}
			return problems
		}
	case string:
		if have, is := got.(string); is {
			if differs := c.Text(want, have); differs != "" {
				problems = append(problems, path+": "+differs)
			}
			return problems
		}
	default:
		if recorded == got {
			return nil
		}
	}
	return []string{fmt.Sprintf("%s: %v, recorded was %v", path, got, recorded)}
}

func (c Comparison) object(path string, want, have map[string]any) (problems []string) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		member, there := have[name]
		switch {
		case !there && slices.Contains(c.Absent, name):
		case !there:
			problems = append(problems, path+": "+name+" is missing")
		case c.IsFree(want, name) && fmt.Sprintf("%T", member) == fmt.Sprintf("%T", want[name]):
		default:
			problems = append(problems, c.value(path+"."+name, want[name], member)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if _, there := want[name]; !there && !slices.Contains(c.Since, name) {
			problems = append(problems, path+": "+name+" was not recorded")
		}
	}
	return problems
}
