package packages

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// testdata/peer_scores.json is what the original's score function answered (spazyCZ/agent-package-manager c3bf9a35, run
// on 22 November 2026).
func TestScoresAreThoseOfTheOriginal(t *testing.T) {
	text, err := os.ReadFile("testdata/peer_scores.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Query, Name, Description string
		Keywords                 []string
		Score                    int
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, c := range cases {
		got := IndexEntry{Name: c.Name, Description: c.Description, Keywords: c.Keywords}.score(strings.ToLower(c.Query))
		compared++
		// of several words the original takes only the whole
		if got != c.Score && (c.Score != 0 || !strings.Contains(c.Query, " ")) {
			t.Errorf("%q of %s: %d, the original %d", c.Query, c.Name, got, c.Score)
		}
	}
	if compared < 100 {
		t.Errorf("%d cases", compared)
	}
}

func FuzzReadManifest(f *testing.F) {
	f.Add([]byte(manifestOf("@a/b", "1.0.0", "c", "^1.0.0")))
	f.Add([]byte("name: [\n"))
	f.Add([]byte("artifacts: {skills: [{name: a, path: ../x}]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, problems, _ := readManifest(text)
		if len(problems) > 0 {
			return
		}
		if _, err := parseName(m.Name); err != nil {
			t.Error(err)
		}
		for _, list := range m.Artifacts {
			for _, a := range list {
				if badPath(a.Path) != "" || !validArtifactName(a.Name) {
					t.Errorf("taken: %+v", a)
				}
			}
		}
		again, err := m.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if _, problems, _ := readManifest(again); len(problems) > 0 {
			t.Errorf("written and read again: %q", problems)
		}
	})
}

func FuzzParseConstraint(f *testing.F) {
	for _, text := range []string{"*", "^1.2.3", ">=1.0.0,<2.0.0", "~0.1.0-beta.1", "==1.0", "!=1", "1 || 2"} {
		f.Add(text, "1.2.3-rc.1")
	}
	f.Fuzz(func(t *testing.T, text, version string) {
		c, err := parseConstraint(text)
		v, versionErr := parseVersion(version)
		if err != nil || versionErr != nil {
			return
		}
		if admits := c.Admits(v); admits && v.Prerelease() != "" && !strings.Contains(text, "-") {
			t.Errorf("%q admits %s", text, version)
		}
	})
}
