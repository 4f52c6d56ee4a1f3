package packages

import (
	"strings"
	"testing"
)

func TestConstraints(t *testing.T) {
	for constraint, c := range map[string]struct{ in, out string }{
		"*":                    {"0.0.1 1.0.0 9.9.9", "1.0.0-beta.1"},
		"1.2.3":                {"1.2.3", "1.2.4 1.2.3-rc.1"},
		"=1.2.3":               {"1.2.3", "1.2.4"},
		"== 1.0":               {"1.0.0", "1.0.1"},
		"^1.2.3":               {"1.2.3 1.9.0", "1.2.2 2.0.0 2.0.0-rc.1 1.3.0-rc.1"},
		"^0.2.3":               {"0.2.3 0.2.9", "0.3.0 0.2.2"},
		"^0.0.3":               {"0.0.3", "0.0.4"},
		"~1.2.3":               {"1.2.3 1.2.9", "1.3.0 1.2.2"},
		">=1.0.0,<2.0.0":       {"1.0.0 1.9.9", "2.0.0 0.9.0 2.0.0-rc.1"},
		" > 1.0.0 , <= 1.5.0 ": {"1.0.1 1.5.0", "1.0.0 1.5.1"},
		"^1.0.0,<1.5.0":        {"1.4.9", "1.5.0"},
		"1.2.0-beta.1":         {"1.2.0-beta.1", "1.2.0 1.2.0-beta.2"},
		">=1.2.0-beta.1":       {"1.2.0-beta.1 1.2.0-rc.1 1.2.0 3.0.0", "1.2.0-alpha 1.3.0-beta.1"},
		"^1.2.0-beta.1":        {"1.2.0-beta.2 1.2.0 1.9.0", "1.3.0-beta.1 2.0.0"},
	} {
		parsed, err := parseConstraint(constraint)
		if err != nil {
			t.Errorf("%s: %v", constraint, err)
			continue
		}
		check := func(versions string, want bool) {
			for _, text := range strings.Fields(versions) {
				v, err := parseVersion(text)
				if err != nil {
					t.Fatal(err)
				}
				if parsed.Admits(v) != want {
					t.Errorf("%s admits %s: %v, want %v", constraint, text, !want, want)
				}
			}
		}
		check(c.in, true)
		check(c.out, false)
	}
	for _, bad := range []string{"", " ", "!=1.0.0", "1.x", ">=1 <2", "^", "latest", "v1.0.0", "1.0.0 || 2.0.0", "1.0.0,",
		"1!2.0", "^*", "1.2.3.4", "\n1.0.0x"} {
		if c, err := parseConstraint(bad); codeOfError(err) != InvalidArgument {
			t.Errorf("%q: %v, %v", bad, c, err)
		}
	}
}

func TestNamesAndSpecs(t *testing.T) {
	for text, want := range map[string]string{
		"a": "a ", "my-pkg": "my-pkg ", "@s/p": "@s/p ", "@s_1/p@1.0.0": "@s_1/p 1.0.0", "p@^1.0.0": "p ^1.0.0",
		"p@latest": "p latest", "p@ >=1.0.0,<2 ": "p >=1.0.0,<2",
	} {
		s, err := parseSpec(text)
		if got := s.Name.String() + " " + s.Want; err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "@", "@s/", "A", "a_b", "-a", "a\n", "@s/p/q", "../x", "a@", "@s/p@", "@S/p", "a b",
		strings.Repeat("a", 65)} {
		if s, err := parseSpec(bad); codeOfError(err) != InvalidArgument {
			t.Errorf("%q: %v, %v", bad, s, err)
		}
	}
	for text, want := range map[string]string{"@a/b": "a--b", "a--b": "a--b", "x": "x"} {
		n, err := parseName(text)
		if err != nil || n.folder() != want || n.String() != text {
			t.Errorf("%s: %v, %v", text, n, err)
		}
	}
}
