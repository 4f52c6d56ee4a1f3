package files

import (
	"errors"
	"strings"
	"testing"
)

func TestARelIsCanonicalAndLeadsIntoNothingOfGits(t *testing.T) {
	for name, want := range map[string]error{
		"a": nil, "a/b.md": nil, ".github/x": nil, ".gitignore": nil, "git": nil, "git~": nil, "gift~1": nil, "日本語.md": nil,
		"🙂.md": nil,
		"":     ErrNotPath, "a\\b": ErrNotPath, "a\x00": ErrNotPath, "\xff": ErrNotPath, "/a": ErrNotRelative,
		"c:a": ErrNotRelative,
		"..":  ErrRoundabout, "a/../b": ErrRoundabout, "./a": ErrRoundabout, "a//b": ErrRoundabout, "a/": ErrRoundabout,
		strings.Repeat("a", 101): ErrPathTooLong,
		".git":                   errGitName, "a/.GIT/config": errGitName, ".git.": errGitName, ".git ": errGitName,
		"GIT~1":                   errGitName,
		"gi7d29~4":                errGitName,
		".git::$INDEX_ALLOCATION": errGitName, ".g\u200cit": errGitName, "a\nb": errHiddenName, "a\u202eb": errHiddenName,
	} {
		got, err := ParseRel(name, 100)
		if !errors.Is(err, want) || err == nil && got.String() != name || err != nil && got != (Rel{}) {
			t.Errorf("%+q: %v, %v", name, got, err)
		}
	}
}

func TestDeviceNames(t *testing.T) {
	for _, name := range []string{"con", "NUL.txt", "com1", "LPT9.md", "com¹", "aux ", "CONIN$"} {
		if !IsDeviceName(name) {
			t.Errorf("%q is none", name)
		}
	}
	for _, name := range []string{"console", "com", "com10", "lpt0", "nula", ".con"} {
		if IsDeviceName(name) {
			t.Errorf("%q is one", name)
		}
	}
}

func FuzzAPlainNameIsNotOneOfGits(f *testing.F) {
	for _, name := range []string{"a", ".git", "git~1", "a b", ".github", "\u200cgit", "GI7D29~4", "git"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if isPlainName(name) && IsGitName(name) {
			t.Errorf("%+q", name)
		}
	})
}
