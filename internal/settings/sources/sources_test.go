package sources_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/settings/sources"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestTheFormOfAnOrigin(t *testing.T) {
	for _, c := range []struct{ address, want, problem string }{
		{"https://Registry.Example.org/", "https://registry.example.org", ""},
		{"https://registry.example.org:443/a/b/", "https://registry.example.org/a/b", ""},
		{"https://registry.example.org:8443", "https://registry.example.org:8443", ""},
		{"http://127.0.0.1:80/x", "http://127.0.0.1/x", ""},
		{"https://[2001:DB8::1]:443/x", "https://[2001:db8::1]/x", ""},
		{"git@git.example.org:team/skills.git", "ssh://git@git.example.org/team/skills.git", ""},
		{"ssh://git@git.example.org:22/team/skills", "ssh://git@git.example.org/team/skills", ""},
		{"git://git.example.org/x", "git://git.example.org/x", ""},
		{"/srv/registry/", "file:///srv/registry", ""},
		{"file:///srv/registry", "file:///srv/registry", ""},
		{"", "", "bytes"},
		{"registry.example.org", "", "not a URL"},
		{"./registry", "", "not a URL"},
		{"ext::sh -c x", "", "characters"},
		{"ext::sh", "", "not a URL"},
		{"ftp://example.org", "", "scheme"},
		{"https://", "", "no host"},
		{"https://example.org:", "", "no host"},
		{"https://ann@example.org", "", "user"},
		{"https://ann:secret@example.org", "", "password"},
		{"https://example.org?x=1", "", "query"},
		{"https://example.org#x", "", "query"},
		{"https://example.org/a/../b", "", "parts"},
		{"https://example.org//a", "", "parts"},
		{"https://example.org/%2e%2e/b", "", "encoded"},
		{"https://example.org/a%2fb", "", "encoded"},
		{`https://example.org\@evil.example`, "", "characters"},
		{"https://ex\u0430mple.org", "", "characters"},
		{"file://host/srv", "", "host"},
		{"/", "", "no folder"},
		{"/srv/../etc", "", "parts"},
		{"https://example.org/" + strings.Repeat("a", sources.MaxAddress), "", "bytes"},
	} {
		got, err := sources.OriginOf(c.address)
		if c.problem == "" && (err != nil || got != c.want) || c.problem != "" &&
			(err == nil || !strings.Contains(err.Error(), c.problem)) {
			t.Errorf("%.60q: %q, %v; want %q %q", c.address, got, err, c.want, c.problem)
		}
	}
}

func TestWhatASourceAdmits(t *testing.T) {
	list := sources.List{
		{Origin: "https://registry.example.org"},
		{Origin: "https://git.example.org/team", TokenEnv: "TEAM"},
		{Origin: "https://git.example.org/team/inner", TokenEnv: "INNER"},
		{Origin: "ssh://git@git.example.org/team/skills"},
		{Origin: "file:///srv/registry"},
	}
	for address, want := range map[string]string{
		"https://registry.example.org":                      list[0].Origin,
		"https://registry.example.org/a/b.json?page=2":      list[0].Origin,
		"HTTPS://REGISTRY.example.org:443/a":                list[0].Origin,
		"https://git.example.org/team":                      list[1].Origin,
		"https://git.example.org/team.git":                  list[1].Origin,
		"https://git.example.org/team/a.git":                list[1].Origin,
		"https://git.example.org/team/inner/x":              list[2].Origin,
		"git@git.example.org:team/skills.git":               list[3].Origin,
		"/srv/registry/registry.json":                       list[4].Origin,
		"file:///srv/registry":                              list[4].Origin,
		"http://registry.example.org":                       "", // another scheme
		"https://registry.example.org:8443":                 "", // another port
		"https://registry.example.org.evil.example":         "",
		"https://registry.example.org@evil.example":         "",
		"https://evil.example/https://registry.example.org": "",
		"https://x@registry.example.org":                    "",
		"https://git.example.org/teams":                     "",
		"https://git.example.org/team/../secret":            "",
		"https://git.example.org/team/%2e%2e/secret":        "",
		"https://git.example.org":                           "",
		"root@git.example.org:team/skills.git":              "",
		"ssh://git.example.org/team/skills":                 "",
		"/srv/registry2":                                    "",
		"/srv/registry/../other":                            "",
		"srv/registry":                                      "",
	} {
		got, ok := list.Find(address)
		if ok != (want != "") || got.Origin != want {
			t.Errorf("%s: %q %t, want %q", address, got.Origin, ok, want)
		}
	}
}

func TestRefusalsNameTheCommand(t *testing.T) {
	for address, want := range map[string]string{
		"git@git.example.org:team/skills": "claudeops sources allow ssh://git@git.example.org/team/skills",
		"/srv/it's":                       `claudeops sources allow 'file:///srv/it'\''s'`,
		"https://a:b@c":                   "password",
	} {
		if got := sources.Refusal(address); !strings.Contains(got, want) {
			t.Errorf("%s: %s", address, got)
		}
	}
}

func TestSourcesThatAreNone(t *testing.T) {
	for _, c := range []struct {
		source  sources.Source
		problem string
	}{
		{sources.Source{Origin: "https://example.org", TokenEnv: "OPS_TOKEN"}, ""},
		{sources.Source{Origin: "http://localhost:8080", TokenEnv: "OPS_TOKEN"}, ""},
		{sources.Source{Origin: "https://example.org/"}, "is written"},
		{sources.Source{Origin: "example.org"}, "not a URL"},
		{sources.Source{Origin: "http://example.org", TokenEnv: "OPS_TOKEN"}, "https"},
		{sources.Source{Origin: "/srv", TokenEnv: "OPS_TOKEN"}, "is written"},
		{sources.Source{Origin: "https://example.org", TokenEnv: "A B"}, "not a valid variable name"},
		{sources.Source{Origin: "https://example.org", TokenEnv: "GITHUB_TOKEN"}, "secret of Claude Ops"},
		{sources.Source{Origin: "https://example.org", TokenEnv: "anthropic_api_key"}, "secret of Claude Ops"},
	} {
		err := c.source.Check()
		if (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%+v: %v, want %q", c.source, err, c.problem)
		}
	}
}

func TestTheFileOfSources(t *testing.T) {
	file := sources.File{Path: filepath.Join(t.TempDir(), "sources.yaml")}
	want := func(step string, origins ...string) {
		t.Helper()
		list, err := file.Load()
		if err != nil || len(list) != len(origins) {
			t.Fatalf("%s: %+v, %v", step, list, err)
		}
		for i, origin := range origins {
			if list[i].Origin != origin {
				t.Errorf("%s: %+v", step, list)
			}
		}
	}
	want("at first")
	a, b := sources.Source{Origin: "https://a.example"}, sources.Source{Origin: "https://b.example", TokenEnv: "B_TOKEN"}
	for _, s := range []sources.Source{a, b} {
		must.Do(t, file.Add(s))
	}
	want("added", a.Origin, b.Origin)
	if err := file.Add(b); !errors.Is(err, sources.ErrListed) {
		t.Errorf("again: %v", err)
	}
	b.Private = true
	must.Do(t, file.Add(b))
	if got, _ := file.Load(); !got[1].Private {
		t.Errorf("changed: %+v", got)
	}
	must.Do(t, file.Remove(a.Origin))
	if err := file.Remove(a.Origin); !errors.Is(err, sources.ErrNotListed) {
		t.Errorf("removed again: %v", err)
	}
	want("removed", b.Origin)
	for _, broken := range []string{"sources: [{origin: x}]", "sauces: []",
		"sources: [{origin: https://a}, {origin: https://a}]", "{"} {
		must.Do(t, os.WriteFile(file.Path, []byte(broken), 0o600))
		if list, err := file.Load(); err == nil || list != nil {
			t.Errorf("%s: %v, %v", broken, list, err)
		}
		if err := file.Add(a); err == nil {
			t.Errorf("%s: was written over", broken)
		}
	}
}

// FuzzFind checks that a source admits exactly the addresses below its origin.
func FuzzFind(f *testing.F) {
	for _, seed := range []string{"https://a.example/x/y", "git@a.example:x/y", "/x/y", "https://a.example/x/../y",
		"https://a.example@b/x", "ssh://git@a.example/x"} {
		f.Add(seed)
	}
	list := sources.List{{Origin: "https://a.example/x"}, {Origin: "ssh://git@a.example/x"}, {Origin: "file:///x"}}
	f.Fuzz(func(t *testing.T, address string) {
		s, ok := list.Find(address)
		if !ok {
			return
		}
		if strings.Contains(address, "..") && strings.Contains("/"+address+"/", "/../") ||
			strings.ContainsAny(address, "\\ \n\x00") {
			t.Errorf("%q is admitted by %s", address, s.Origin)
		}
		if origin, err := sources.OriginOf(strings.FieldsFunc(address,
			func(r rune) bool { return r == '?' || r == '#' })[0]); err != nil || !strings.HasPrefix(origin, s.Origin) {
			t.Errorf("%q: %q is admitted by %s, %v", address, origin, s.Origin, err)
		}
	})
}
