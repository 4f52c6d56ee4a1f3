package web_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

// docs/reference/rest.md is made from the description of the API: `make golden` writes it.
func TestThePageOfRESTIsMadeFromTheDescription(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	type operation struct {
		Summary, Description, Method, Path string
		Tags                               []string
	}
	var described struct {
		Paths map[string]map[string]operation `json:"paths"`
	}
	if err := json.Unmarshal(text, &described); err != nil {
		t.Fatal(err)
	}
	var all []operation
	for path, methods := range described.Paths {
		for method, o := range methods {
			o.Path, o.Method = path, strings.ToUpper(method)
			all = append(all, o)
		}
	}
	slices.SortFunc(all, func(a, b operation) int {
		return cmp.Or(strings.Compare(strings.Join(a.Tags, " "), strings.Join(b.Tags, " ")), strings.Compare(a.Path, b.Path),
			strings.Compare(a.Method, b.Method))
	})
	var b strings.Builder
	b.WriteString(
		"# REST\n\n<!-- Written by `make golden` from the description of the API; edit the operations in the code. -->\n\n" +
			"Every route of `claudeops serve` for programs. `/openapi.json` has fields and answers; [Call the REST " +
			"API](../guides/rest.md) says how.\n")
	tag := "-"
	scope := regexp.MustCompile(`Needs the scope (\w+)`)
	for _, o := range all {
		if its := strings.Join(o.Tags, " "); its != tag {
			tag = its
			fmt.Fprintf(&b, "\n## %s\n\n| request | what | scope |\n|---|---|---|\n", cmp.Or(tag, "server"))
		}
		needs := ""
		if found := scope.FindStringSubmatch(o.Description); found != nil {
			needs = found[1]
		}
		fmt.Fprintf(&b, "| `%s %s` | %s | %s |\n", o.Method, o.Path, strings.ReplaceAll(o.Summary, "|", `\|`), needs)
	}
	if len(all) < 20 {
		t.Fatalf("only %d routes", len(all))
	}
	operationtest.Golden(t, filepath.Join("..", "..", "docs", "reference", "rest.md"), []byte(b.String()))
}
