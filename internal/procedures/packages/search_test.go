package packages

import (
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

// The index of other programs has no author; the package's metadata has.
func TestASearchKnowsAuthors(t *testing.T) {
	dir := operationtest.WriteFiles(t, t.TempDir(), map[string]string{
		"index.yaml": "packages: [{name: a, latest: 1.0.0}, {name: b, latest: 1.0.0, author: Index}, {name: " +
			"c, latest: 1.0.0}]\n",
		"packages/a/metadata.yaml": "{name: a, author: Ann, versions: [{version: 1.0.0}]}\n",
		"packages/b/metadata.yaml": "{name: b, author: Bob}\n",
	})
	registries := []Registry{{Name: "r", Dir: dir}}
	found, err := search(registries, "", "")
	if err != nil || len(found) != 3 {
		t.Fatalf("%v, %v", found, err)
	}
	authored(registries, found)
	for i, want := range []string{"Ann", "Index", ""} {
		if found[i].Author != want {
			t.Errorf("%s is by %q, want %q", found[i].Name, found[i].Author, want)
		}
	}
}
