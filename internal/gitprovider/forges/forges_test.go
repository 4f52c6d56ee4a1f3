package forges_test

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
)

// environment has a value for every variable but those that are missing, and notes how each is read.
type environment struct {
	values map[string]string
	secret map[string]bool
	warned []string
}

func (e *environment) Get(name string) string {
	e.secret[name] = false
	return e.values[name]
}

func (e *environment) Secret(name string) forge.Secret {
	e.secret[name] = true
	return forge.Secret{Text: e.values[name]}
}

func (e *environment) Warn(format string, _ ...any) { e.warned = append(e.warned, format) }

func TestADriverReadsTheVariablesThatItLists(t *testing.T) {
	for _, d := range forges.All() {
		e := &environment{secret: map[string]bool{}}
		unset := d.Read(e) // which reads all that settles how the forge is used
		listed := map[string]bool{}
		for _, v := range append([]forge.Variable{d.HookVariable()}, d.Variables...) {
			if _, twice := listed[v.Name]; twice || v.Meaning == "" || !strings.HasPrefix(v.Name, d.Prefix()) {
				t.Errorf("%s is listed twice, without its meaning, or does not begin with %s", v.Name, d.Prefix())
			}
			listed[v.Name] = v.Secret
			if v.Needed && !strings.Contains(unset.Problem, v.Name) {
				t.Errorf("%s is needed, and without it the problem is %q", v.Name, unset.Problem)
			}
		}
		delete(listed, d.HookVariable().Name)
		if !maps.Equal(listed, e.secret) {
			t.Errorf("%s lists %v and reads %v", d.Name, listed, e.secret)
		}
	}
}

func TestADriverIsWhole(t *testing.T) {
	var names []string
	for _, d := range forges.All() {
		names = append(names, d.Name)
		if d.Name == "" || d.Name != strings.ToLower(d.Name) || d.New == nil || d.Needed() == "" {
			t.Errorf("%+v lacks something", d)
		}
		base := &url.URL{Scheme: "https", Host: "git.example:8443", Path: "/"}
		if got := d.Hosts(base); !slices.Equal(got, []string{"git.example:8443", "git.example"}) {
			t.Errorf("%s: the hosts are %q", d.Name, got)
		}
		d.Hosts(nil) // must not panic
		hooks := d.Webhooks
		if hooks.Name != d.Name || hooks.Title == "" || len(hooks.Signatures) == 0 || len(hooks.Headers) == 0 ||
			len(hooks.Events) == 0 {
			t.Errorf("%s: its webhooks are %+v", d.Name, hooks)
		}
	}
	if slices.Sort(names); len(slices.Compact(names)) != len(forges.All()) {
		t.Errorf("two drivers have one name: %q", names)
	}
}
