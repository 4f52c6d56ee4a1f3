package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// replay passes the lines of a recorded `go test -json` to a report and returns the report's output.
func replay(t *testing.T, flags []string, packages []string, lines ...string) (string, bool) {
	t.Helper()
	var out bytes.Buffer
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := newReport(&out, flags, func() time.Time { return now })
	r.expect(packages)
	for _, line := range lines {
		var e event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		r.take(e)
	}
	now = now.Add(90 * time.Second)
	ok := r.end()
	return out.String(), ok
}

func TestAReportSaysWhatRanAndHowToRepeatWhatFailed(t *testing.T) {
	const web, api = module + "/internal/web", module + "/internal/web/api"
	for name, test := range map[string]struct {
		flags    []string
		packages []string
		lines    []string
		ok       bool
		has      []string
		hasNot   []string
	}{
		"a group is printed when its last package ends": {
			packages: []string{web, api}, ok: true,
			lines: []string{
				`{"Action":"run","Package":"` + web + `","Test":"TestA"}`,
				`{"Action":"output","Package":"` + web + `","Test":"TestA","Output":"chatter\n"}`,
				`{"Action":"pass","Package":"` + web + `","Test":"TestA","Elapsed":1.5}`,
				`{"Action":"pass","Package":"` + web + `","Elapsed":2}`,
				`{"Action":"skip","Package":"` + api + `","Elapsed":0}`,
			},
			has: []string{"ok   web                    2 packages      1 tests     2.0 s", "1.5 s  ./internal/web TestA",
				"1 passed, 0 failed\n", "in 1m30s"},
			hasNot: []string{"chatter", "skipped"},
		},
		"a failed subtest has the command, its parent has none": {
			flags: []string{"-p=4", "-race"}, packages: []string{web},
			lines: []string{
				`{"Action":"output","Package":"` + web + `","Output":"-test.shuffle 42\n"}`,
				`{"Action":"run","Package":"` + web + `","Test":"TestA"}`,
				`{"Action":"run","Package":"` + web + `","Test":"TestA/it's_(bad)"}`,
				`{"Action":"output","Package":"` + web + `","Test":"TestA/it's_(bad)","Output":"    a_test.go:7: no\n"}`,
				`{"Action":"fail","Package":"` + web + `","Test":"TestA/it's_(bad)","Elapsed":1}`,
				`{"Action":"fail","Package":"` + web + `","Test":"TestA","Elapsed":1}`,
				`{"Action":"fail","Package":"` + web + `","Elapsed":1}`,
			},
			has: []string{"a_test.go:7: no", "FAIL web", "0 passed, 2 failed\n",
				`go test -count=1 -race -shuffle=42 -run '^TestA$/^it'\''s_\(bad\)$' ./internal/web`},
			hasNot: []string{"-run '^TestA$' "},
		},
		"a package that panics names what was running": {
			packages: []string{web},
			lines: []string{
				`{"Action":"run","Package":"` + web + `","Test":"TestA"}`,
				`{"Action":"output","Package":"` + web + `","Test":"TestA","Output":"panic: here\n"}`,
				`{"Action":"fail","Package":"` + web + `","Elapsed":1}`,
			},
			has: []string{"TestA was running:\npanic: here", "go test -count=1 ./internal/web", "0 passed, 1 failed"},
		},
		"a package that does not compile says why": {
			packages: []string{web},
			lines: []string{
				`{"ImportPath":"` + web + `","Action":"build-output","Output":"web.go:1:1: expected 'package'\n"}`,
				`{"ImportPath":"` + web + `","Action":"build-fail"}`,
				`{"Action":"fail","Package":"` + web + `","Elapsed":0,"FailedBuild":"` + web + `"}`,
			},
			has: []string{"expected 'package'", "0 passed, 1 failed"},
		},
		"a skipped test is named with its reason": {
			packages: []string{web}, ok: true,
			lines: []string{
				`{"Action":"run","Package":"` + web + `","Test":"TestA"}`,
				`{"Action":"output","Package":"` + web + `","Test":"TestA","Output":"=== RUN   TestA\n"}`,
				`{"Action":"output","Package":"` + web + `","Test":"TestA","Output":"    a_test.go:9: needs a camel\n"}`,
				`{"Action":"skip","Package":"` + web + `","Test":"TestA","Elapsed":0}`,
				`{"Action":"pass","Package":"` + web + `","Elapsed":0}`,
			},
			has: []string{"skipped: ./internal/web TestA: a_test.go:9: needs a camel", "0 passed, 0 failed, 1 skipped\n"},
		},
		"a package that never ended is a failure": {
			packages: []string{web, api}, lines: []string{`{"Action":"pass","Package":"` + web + `","Elapsed":2}`},
			has: []string{"FAIL web"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := replay(t, test.flags, test.packages, test.lines...)
			if ok != test.ok {
				t.Errorf("ok is %t", ok)
			}
			for _, want := range test.has {
				if !strings.Contains(got, want) {
					t.Errorf("lacks %q:\n%s", want, got)
				}
			}
			for _, bad := range test.hasNot {
				if strings.Contains(got, bad) {
					t.Errorf("has %q:\n%s", bad, got)
				}
			}
		})
	}
}

// TestModuleOfPackages runs the command on a small module that passes, fails once and does not compile.
func TestModuleOfPackages(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":            "module example\n\ngo 1.25\n",
		"good/good_test.go": "package good\n\nimport \"testing\"\n\nfunc TestGood(t *testing.T) { t.Run(\"part\", func(*testing.T) {}) }\n",
		"bad/bad_test.go":   "package bad\n\nimport \"testing\"\n\nfunc TestBad(t *testing.T) { t.Error(\"on purpose\") }\n",
		"torn/torn_test.go": "package torn\n\nfunc TestTorn(\n",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	for pattern, want := range map[string]string{
		"./good": "2 passed, 0 failed", "./bad": "on purpose", "./torn": "0 passed, 1 failed",
	} {
		var out bytes.Buffer
		err := run(context.Background(), []string{pattern}, &out)
		if (err == nil) != (pattern == "./good") || !strings.Contains(out.String()+fmt.Sprint(err), want) {
			t.Errorf("%s: %v\n%s", pattern, err, out.String())
		}
	}
}
