package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/app"
)

// What a person may not do leaves at most two rows in a minute, however often they try and at whatever route of the
// API: one at once, and one with the count of the others.
func TestRefusalsOfOneKindAreOneRowAtEveryRoute(t *testing.T) {
	t.Parallel()
	w := newPeopleWorld(t, map[string]string{
		"CLAUDEOPS_TOOLSETS": strings.Join(app.ToolsetNames(new(app.App).Toolsets()), ","), "CLAUDEOPS_ALLOW_WRITE": "true",
	})
	var viewer struct{ Token string }
	w.read(&viewer, "token", "create", "--name", "eve", "--scopes", "read")
	refused := 0
	w.serving(func(address string) {
		var api struct {
			Paths map[string]map[string]any
		}
		if _, text := w.get(address+"/openapi.json", w.bearer(viewer.Token)); json.Unmarshal([]byte(text), &api) != nil {
			t.Fatal(text)
		}
		for path, methods := range api.Paths {
			if _, writes := methods["post"]; !writes || strings.HasPrefix(path, "/sign-") {
				continue
			}
			target := regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, "1")
			status := 0
			for range 12 {
				status = w.status(http.MethodPost, address+target, "{}", w.bearer(viewer.Token))
			}
			if status == http.StatusForbidden {
				refused++
			}
		}
	})
	if refused < 20 {
		t.Fatalf("%d routes refuse who may read alone", refused)
	}
	kinds := map[string]int{}
	for _, row := range w.rowsOf("") {
		if row["caller"] == "eve" {
			kinds[fmt.Sprint(row["action"], " ", row["provider"], " ", row["repo"], " ", row["pr_number"], " ", row["code"], " ",
				regexp.MustCompile(`^\d+ more refusals .*; the last: `).ReplaceAllString(row["message"].(string), ""))]++
		}
	}
	for kind, rows := range kinds {
		if rows > 2 {
			t.Errorf("%d rows: %s", rows, kind)
		}
	}
	t.Logf("%d routes refuse, %d kinds of rows", refused, len(kinds))
}
