package confine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCarvingLeavesWhatIsHiddenOut(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"a/b/secret", "a/c", "d"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "a/b/file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "a/b/secret"), filepath.Join(root, "a/link")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, of string
		hidden   []string
		want     string
	}{
		{"nothing hidden", "a", nil, "a"},
		{"elsewhere", "a", []string{"d"}, "a"},
		{"a name that begins alike", "a", []string{"ab"}, "a"},
		{"one deep inside", "a", []string{"a/b/secret"}, "a/b/file a/c"},
		{"one that is not there yet", "a", []string{"a/b/later/key"}, "a/b/file a/b/secret a/c"},
		{"itself", "a", []string{"a"}, ""},
		{"what it lies in", "a/b", []string{"a"}, ""},
		{"a file", "a/b/file", []string{"a/c"}, "a/b/file"},
		{"all of it", "", []string{"a/b", "d"}, "a/c"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var hidden, got []string
			for _, h := range test.hidden {
				hidden = append(hidden, filepath.Join(root, h))
			}
			for _, path := range carve(filepath.Join(root, test.of), resolvedAsFar(hidden)) {
				rel, _ := filepath.Rel(root, path)
				got = append(got, rel)
			}
			slices.Sort(got)
			if strings.Join(got, " ") != test.want {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
}

func TestCarvingIsBounded(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for i := range mostPaths + 10 {
		if err := os.WriteFile(filepath.Join(root, "f"+strings.Repeat("x", i%50)+string(rune('a'+i%26))+filepath.Base(root)+
			strings.Repeat("y", i/50)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(carve(root, []string{filepath.Join(root, "hidden")})); n > mostPaths {
		t.Errorf("%d paths", n)
	}
}

func FuzzContains(f *testing.F) {
	f.Add("/a/b", "/a/b/c")
	f.Add("/", "/x")
	f.Add("/a", "/ab")
	f.Fuzz(func(t *testing.T, folder, path string) {
		folder, path = filepath.Clean("/"+folder), filepath.Clean("/"+path)
		rel, err := filepath.Rel(folder, path)
		if want := err == nil && rel != ".." && !strings.HasPrefix(rel, "../"); contains(folder, path) != want {
			t.Errorf("%q in %q: %t", path, folder, !want)
		}
	})
}
