package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// read is the text of all files that match.
func read(t *testing.T, patterns ...string) string {
	t.Helper()
	var all strings.Builder
	for _, pattern := range patterns {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: %v %v", pattern, names, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(name, "_test.go") {
				all.Write(text)
			}
		}
	}
	return all.String()
}

// What no page uses goes: templates, functions of templates, and rules for classes.
func TestNothingOfThePagesIsUnused(t *testing.T) {
	templates := read(t, "templates/*.html")
	for _, m := range regexp.MustCompile(`\{\{define "([^"]+)"`).FindAllStringSubmatch(templates, -1) {
		used := regexp.MustCompile(`\{\{(template|block) "` + m[1] + `"|\bpart "` + m[1] + `"`)
		if !used.MatchString(templates) {
			t.Errorf("no page uses the template %s", m[1])
		}
	}
	actions := strings.Join(regexp.MustCompile(`\{\{[^}]*\}\}`).FindAllString(templates, -1), "\n")
	for name := range (Shower{}).functions() {
		if name != "shown" && !regexp.MustCompile(`[{( |]`+name+`[ )|}]`).MatchString(actions) {
			t.Errorf("no template calls the function %s", name)
		}
	}
	code := templates + read(t, "*.go", "../dashboard/*.go", "../words/*.go", "static/live.js")
	rules := regexp.MustCompile(`(?s)/\*.*?\*/|\{[^{}]*\}`).ReplaceAllString(read(t, "static/app.css"), " ")
	composed := regexp.MustCompile(`^(is|c)-(good|bad|warn|info|done|mute)$`) // of a tone
	for _, m := range regexp.MustCompile(`\.([a-zA-Z][\w-]*)`).FindAllStringSubmatch(rules, -1) {
		if !composed.MatchString(m[1]) && !regexp.MustCompile(`\b`+m[1]+`\b`).MatchString(code) {
			t.Errorf("nothing has the class %s", m[1])
		}
	}
}
