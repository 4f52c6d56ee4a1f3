//go:build linux

package scripts

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

// standIn is a PowerShell that runs nothing: it reads stdin as run.ps1 does and shows what the script would be called
// with. It refuses a wrapper that is not run.ps1, text for text, and what ConvertFrom-Json of PowerShell would not give
// back as it is.
const standIn = `#!/usr/bin/env python3
import json, re, sys
def value(v):
    if isinstance(v, str):
        assert v.startswith('='), v
        assert not re.match(r'\d{4}-\d\d-\d\d|/Date\(', v), v
        return v[1:]
    if isinstance(v, dict):
        assert list(v) == ['table'], v
        return {value(name): value(inner) for name, inner in v['table']}
    if isinstance(v, list):
        return [value(item) for item in v]
    return v
call = json.load(sys.stdin)
assert sorted(call) == ['named', 'path', 'plain'], call
print(json.dumps({'words': sys.argv[1:-1], 'wrapper': open(sys.argv[-1]).read(), 'path': call['path'], 'named': value(call['named']), 'plain': value(call['plain'])}))
sys.exit(5)
`

type powerShellCalled struct {
	Words   []string
	Wrapper string
	Path    string
	Named   map[string]any
	Plain   []string
}

func TestPowerShellGetsItsArgumentsAsTheyAre(t *testing.T) {
	b := newBench(t, map[string]string{
		"Git-Search.ps1": "param([Parameter(Mandatory)][ValidateSet('show','log')][string]$Action, [int]$Lines, " +
			"[switch]$All = $true, [bool]$On, [string[]]$Paths, [hashtable]$Map)",
		"Broken.ps1": "param(",
	})
	b.path = operationtest.WriteExecutables(t, t.TempDir(), map[string]string{"pwsh": standIn}) +
		string(filepath.ListSeparator) + b.path
	type object = map[string]any
	type list = []any
	for name, c := range map[string]struct {
		tool, arguments string
		named           object
		plain           []string
	}{
		"nothing more than it needs": {"git_search", `{"Action":"show"}`, object{"Action": "show"}, []string{}},
		"names in any letter case": {"git_search", `{"action":"LOG","LINES":-3}`, object{"Action": "LOG", "Lines": -3.0},
			[]string{}},
		"a switch that is off": {"git_search", `{"Action":"log","All":false,"On":false}`,
			object{"Action": "log", "All": false, "On": false}, []string{}},
		"a switch that is on": {"git_search", `{"Action":"log","All":true,"On":true}`,
			object{"Action": "log", "All": true, "On": true}, []string{}},
		"lists of none, one and more": {"git_search", `{"Action":"log","Paths":[]}`,
			object{"Action": "log", "Paths": list{}}, []string{}},
		"hyphens, spaces and nothing": {"git_search", `{"Action":"log","Paths":["-Force","b c","","--","-x:1"]}`,
			object{"Action": "log", "Paths": list{"-Force", "b c", "", "--", "-x:1"}}, []string{}},
		"texts that look like times": {"git_search",
			`{"Action":"log","Paths":["2026-01-02T03:04:05Z","2026-01-02","/Date(1)/"]}`,
			object{"Action": "log", "Paths": list{"2026-01-02T03:04:05Z", "2026-01-02", "/Date(1)/"}}, []string{}},
		"PowerShell in a text": {"git_search",
			`{"Action":"log","Paths":["$(Remove-Item x); & 'y' | z # \"","$env:HOME","@{a=1}","=x"]}`,
			object{"Action": "log", "Paths": list{`$(Remove-Item x); & 'y' | z # "`, "$env:HOME", "@{a=1}", "=x"}}, []string{}},
		"other alphabets and new lines": {"git_search", `{"Action":"log","Paths":["ünï 漢 😀\r\n\tx"]}`,
			object{"Action": "log", "Paths": list{"ünï 漢 😀\r\n\tx"}}, []string{}},
		"tables within tables": {"git_search",
			`{"Action":"log","Map":{"a":[1,{"b":null,"":true}],"A":"=","table":[["x"]]}}`,
			object{"Action": "log", "Map": object{"a": list{1.0, object{"b": nil, "": true}}, "A": "=",
				"table": list{list{"x"}}}}, []string{}},
		"a block that cannot be read": {"broken",
			`{"args":["-Name","x y","-Force","-On:$false","-N:-1","-5","--","-Last"]}`,
			object{"Name": "x y", "Force": true, "On": false, "N": "-1", "Last": true}, []string{"-5", "--"}},
		"values that follow a switch": {"broken", `{"args":["a","-Count","-3","b"]}`, object{"Count": "-3"},
			[]string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := b.run(t.Context(), "", c.tool, c.arguments)
			var called powerShellCalled
			if err := json.Unmarshal([]byte(got.Stdout), &called); err != nil || got.ExitCode != 5 {
				t.Fatalf("%+v: %v", got, err)
			}
			file := map[string]string{"git_search": "Git-Search.ps1", "broken": "Broken.ps1"}[c.tool]
			want := powerShellCalled{
				Words:   []string{"-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File"},
				Wrapper: string(powerShellWrapper),
				Path:    filepath.Join(b.dir, defaultFolder, file), Named: c.named, Plain: c.plain,
			}
			if diff := cmp.Diff(want, called); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if got := b.run(t.Context(), "", "git_search", `{"Action":"blame"}`); got.ExitCode != exitInvalid ||
		!strings.Contains(got.Stderr, "must be one of show, log") {
		t.Errorf("a value outside of the set: %+v", got)
	}
}
