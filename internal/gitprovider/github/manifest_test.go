package github_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The permissions in the app's manifest of the documentation are those that the tests of the app have, with which it
// keeps the contract.
func TestTheManifestAsksForWhatTheAppNeeds(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guides", "providers.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(text)
	if found == nil {
		t.Fatal("docs/guides/providers.md has no manifest")
	}
	var manifest struct {
		Permissions map[string]string `json:"default_permissions"`
		Public      bool
		Hook        struct{ Active bool } `json:"hook_attributes"`
	}
	if err := json.Unmarshal(found[1], &manifest); err != nil {
		t.Fatal(err)
	}
	want := appPermissions()
	want["metadata"] = "read"
	if diff := cmp.Diff(want, manifest.Permissions); diff != "" || manifest.Public || manifest.Hook.Active {
		t.Errorf("the manifest (-want +got):\n%s", diff)
	}
}
