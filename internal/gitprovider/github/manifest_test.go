package github_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider/githubapp"
	"github.com/claudeops/claudeops/internal/system/transport"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/fakegithub"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
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
	for _, members := range []bool{false, true} {
		if members {
			want["members"] = "read"
		}
		made, err := json.Marshal(githubapp.NewManifest("a-name-that-is-longer-than-GitHub-takes", "http://127.0.0.1:1/x", members))
		if err != nil {
			t.Fatal(err)
		}
		var ours map[string]any
		if err := json.Unmarshal(made, &ours); err != nil {
			t.Fatal(err)
		}
		permissions, _ := ours["default_permissions"].(map[string]any)
		got := map[string]string{}
		for name, level := range permissions {
			got[name], _ = level.(string)
		}
		if diff := cmp.Diff(want, got); diff != "" || len(ours["name"].(string)) != githubapp.MaxName {
			t.Errorf("the manifest of init, members %t (-want +got):\n%s", members, diff)
		}
	}
}

// A code is exchanged once, and stands in no error and no log.
func TestACodeIsExchangedForAnApp(t *testing.T) {
	s := fakegithub.New(t)
	web, err := url.Parse(s.URL() + "/")
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := json.Marshal(githubapp.NewManifest("claude-ops-joe", s.URL()+"/back", false))
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	posted, err := browser.PostForm(githubapp.NewAppPage(web, "", "the-state").String(),
		url.Values{"manifest": {string(manifest)}})
	if err != nil {
		t.Fatal(err)
	}
	_ = posted.Body.Close()
	back, err := posted.Location()
	if err != nil || back.Query().Get("state") != "the-state" || back.Path != "/back" {
		t.Fatalf("GitHub sends the browser to %v, %v", back, err)
	}
	var log bytes.Buffer
	client, err := transport.New(transport.Options{Name: "github", Base: web,
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	code := back.Query().Get("code")
	made, err := githubapp.Exchange(t.Context(), client, web, code)
	if err != nil || made.ID != 67890 || made.InstallPage() != s.URL()+"/apps/claude-ops-joe/installations/new" {
		t.Fatalf("%+v, %v", made, err)
	}
	_, err = githubapp.Exchange(t.Context(), client, web, code)
	if fault.CodeOf(err) != fault.NotFound || strings.Contains(err.Error(), code) {
		t.Errorf("a second exchange: %v", err)
	}
	s.Faults().Plan(func(*http.Request) bool { return true },
		httpfault.Fault{Kind: httpfault.Status, Status: http.StatusTeapot, Body: code})
	_, err = githubapp.Exchange(t.Context(), client, web, code)
	if err == nil || strings.Contains(err.Error(), code) {
		t.Errorf("an exchange that fails: %v", err)
	}
	if !strings.Contains(log.String(), "/app-manifests/[redacted]/conversions") || strings.Contains(log.String(), code) {
		t.Errorf("the log is\n%s", log.String())
	}
}
