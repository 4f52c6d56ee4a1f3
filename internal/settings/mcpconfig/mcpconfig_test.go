package mcpconfig_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/settings/mcpconfig"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

const ours = `{"type":"stdio","command":"/app/claudeops","args":["mcp-server"],"env":{"GITHUB_TOKEN":"${GITHUB_TOKEN:-}"}}`

func system() []mcpconfig.System {
	return []mcpconfig.System{{Name: "claudeops", JSON: json.RawMessage(ours)}}
}

func rules(mode mcpconfig.Mode) mcpconfig.Rules {
	return mcpconfig.Rules{
		Forges: []string{"GITHUB_", "GITEA_"},
		Mode:   mode, Env: []string{"GRAFANA_TOKEN", "GITHUB_TOKEN"}, Blank: []string{"GITHUB_TOKEN", "DATABASE_URL"},
		Binary: "/opt/door",
	}
}

func from(folder, servers string) mcpconfig.Contribution {
	return mcpconfig.Contribution{From: folder, Text: []byte(`{"mcpServers":{` + servers + `}}`)}
}

// assertOnlyOurs checks that nothing was added and that our entry is unchanged.
func assertOnlyOurs(t *testing.T, r mcpconfig.Result) {
	t.Helper()
	if len(r.Servers) != 1 {
		t.Errorf("servers were added: %+v", r.Servers[1:])
	}
	must.Equal(t, string(r.Config()["mcpServers"]["claudeops"]), ours)
}

func TestAContributionThatIsNotAdmittedIsRefusedWithTheReason(t *testing.T) {
	const web, tool = `{"type":"http","url":"https://x.example/mcp"}`, `{"command":"/usr/bin/tool"}`
	http := func(url, headers string) string {
		return `"x":{"type":"http","url":"` + url + `","headers":{` + headers + `}}`
	}
	cases := []struct{ name, servers, says string }{
		{"the name of our server", `"claudeops":` + web, "that of the system server"},
		{"it in another letter case", `"ClaudeOps":` + web, "that of the system server"},
		{"a name under which its tools would be below ours", `"claudeops__x":` + web, "shadows the system server"},
		{"a name that becomes so by normalisation", `"claudeops.":` + web, "shadows the system server"},
		{"a name with a space behind", `"claudeops ":` + web, "shadows the system server"},
		{"a name that only looks like ours", `"claudeops-2":` + web, "shadows the system server"},
		{"a name that an escape hides", `"claude\u006fps":` + web, "that of the system server"},
		{"a double underscore", `"a__b":` + web, "not made of"},
		{"an underscore at the end", `"a_":` + web, "not made of"},
		{"a name that has to be normalised", `"a.b":` + web, "not made of"},
		{"another script's letters", `"сlaudeops":` + web, "not made of"},
		{"an empty name", `"":` + web, "not made of"},
		{"a long name", `"` + strings.Repeat("x", 41) + `":` + web, "longer than 40 bytes"},
		{"a name that Claude Code drops in silence", `"workspace":` + web, "reserved by Claude Code"},
		{"it in another letter case, too", `"Computer-Use":` + web, "reserved by Claude Code"},
		{"a key that JavaScript knows", `"__proto__":` + web, "not made of"},
		{"a name of a connector", `"claude_ai_mail":` + web, "begin with claude are reserved"},
		{"a name that looks like a tool's", `"mcp":` + web, "begin with mcp are reserved"},
		{"an unknown type", `"x":{"type":"ws","url":"wss://x.example"}`, `the type "ws" is unknown`},
		{"no type and no command", `"x":{}`, `the type "" is unknown`},
		{"null", `"x":null`, `the type "" is unknown`},
		{"a helper for headers, which is a command", `"x":{"type":"http","url":"https://x.example","headersHelper":"id"}`,
			`"headersHelper" is unknown`},
		{"a field in another letter case", `"x":{"Command":"/usr/bin/tool"}`, `"Command" is unknown`},
		{"a field of another type", `"x":{"command":["id"]}`, `"/command" is of another type`},
		{"both kinds at once", `"x":{"type":"http","url":"https://x.example","command":"id"}`, "has a url and neither"},
		{"a program with a url", `"x":{"type":"stdio","command":"id","url":"https://x.example"}`, "neither url nor headers"},
		{"a program without a command", `"x":{"type":"stdio"}`, "has a command"},
		{"our own program", `"x":{"command":"/opt/door"}`, "would start claudeops"},
		{"our own program by its usual name", `"x":{"command":"claudeops","args":["mcp-server"]}`, "would start claudeops"},
		{"our own program behind another", `"x":{"command":"env","args":["CLAUDEOPS_TIER=3","/app/claudeops"]}`,
			"would start claudeops"},
		{"our own program in a shell's line", `"x":{"command":"sh","args":["-c","X=1 exec '/app/ClaudeOps.exe' mcp-server"]}`,
			"would start claudeops"},
		{"a command from the environment", `"x":{"command":"${GRAFANA_TOKEN}"}`, "may not be expanded"},
		{"a variable of ours in args", `"x":{"command":"t","args":["${CLAUDEOPS_MARK_KEY}"]}`, "no repository may have"},
		{"a variable of ours in env, with a default", `"x":{"command":"t","env":{"A":"b${GITEA_TOKEN:-none}"}}`,
			"no repository may have"},
		{"the agent's own account", `"x":{"command":"t","args":["${ANTHROPIC_API_KEY}"]}`, "no repository may have"},
		{"a variable that was admitted by mistake", `"x":{"command":"t","args":["${GITHUB_TOKEN}"]}`,
			"no repository may have"},
		{"a secret of another name", `"x":{"command":"t","args":["${DATABASE_URL}"]}`, "no repository may have"},
		{"a variable that is not admitted", `"x":{"command":"t","args":["${HOME}"]}`, "CLAUDEOPS_MOUNTED_ENV does not name"},
		{"one behind an admitted one", `"x":{"command":"t","args":["${GRAFANA_TOKEN}${HOME}"]}`,
			"CLAUDEOPS_MOUNTED_ENV does not name"},
		{"one within a default", `"x":{"command":"t","args":["${GRAFANA_TOKEN:-${HOME}}"]}`, "neither ${NAME} nor"},
		{"an expansion without an end", `"x":{"command":"t","args":["${GRAFANA_TOKEN"]}`, "neither ${NAME} nor"},
		{"a variable of ours that it sets", `"x":{"command":"t","env":{"CLAUDEOPS_TIER":"3"}}`, "only the operator may set"},
		{"a variable of ours in lower case", `"x":{"command":"t","env":{"github_token":"x"}}`, "only the operator may set"},
		{"a variable whose name is expanded", `"x":{"command":"t","env":{"${GRAFANA_TOKEN}":"x"}}`, "not a valid variable name"},
		{"a url from the environment", http("https://${GRAFANA_TOKEN}.example", ""), "may not be expanded"},
		{"a url with a password", http("https://a:b@x.example", ""), "user name or password"},
		{"a url of another scheme", http("file:///etc/passwd", ""), "not of the form"},
		{"a url without a host", http("https:///x", ""), "not of the form"},
		{"a header with a secret of ours", http("https://x.example", `"X-Key":"${GITHUB_TOKEN}"`), "no repository may have"},
		{"a header with a secret that is written out", http("https://x.example", `"authorization":"Basic YTpi"`),
			"has its secret written out"},
		{"an admitted variable over plain http", http("http://10.0.0.1/mcp", `"Authorization":"Bearer ${GRAFANA_TOKEN}"`),
			"over plain http"},
		{"a header with a line break", http("https://x.example", `"X-A":"b\r\nAuthorization: c"`), "not printable ASCII"},
		{"a header with a strange name", http("https://x.example", `"X A":"b"`), "not a valid header name"},
		{"a duplicate server", `"x":` + tool + `,"x":` + tool, `"x" is given twice`},
		{"a duplicate field", `"x":{"command":"a","command":"b"}`, `"command" is given twice`},
		{"a duplicate field behind an escape", `"x":{"command":"a","comm\u0061nd":"b"}`, `"command" is given twice`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := mcpconfig.Merge(system(), []mcpconfig.Contribution{from("infra", c.servers)}, rules(mcpconfig.All))
			assertOnlyOurs(t, r)
			if len(r.Refused) != 1 || !strings.Contains(r.Refused[0].Reason, c.says) || r.Refused[0].From != "infra" {
				t.Errorf("refused %q, want one that says %q", r.Refused, c.says)
			}
		})
	}
}

func TestAFileThatCannotBeTakenIsRefusedAsAWhole(t *testing.T) {
	good := from("a", `"x":{"command":"t"}`)
	var many []string
	for i := range mcpconfig.MaxServers + 1 {
		many = append(many, fmt.Sprintf(`"x%d":{"command":"t"}`, i))
	}
	cases := []struct {
		name string
		c    mcpconfig.Contribution
		says string
	}{
		{"no JSON", mcpconfig.Contribution{From: "a", Text: []byte(`{"mcpServers":`)}, "malformed at byte offset"},
		{"more behind the end", mcpconfig.Contribution{From: "a", Text: append(slices.Clone(good.Text), '{')},
			"malformed at byte offset"},
		{"another member", mcpconfig.Contribution{From: "a", Text: []byte(`{"mcpServers":{},"hooks":{}}`)},
			`"hooks" is unknown`},
		{"an array", mcpconfig.Contribution{From: "a", Text: []byte(`[]`)}, "another type"},
		{"invalid UTF-8", mcpconfig.Contribution{From: "a", Text: []byte("{\"mcpServers\":{\"x\xff\":{}}}")}, "malformed"},
		{"too large", mcpconfig.Contribution{From: "a",
			Text: append(slices.Clone(good.Text), slices.Repeat([]byte(" "), mcpconfig.MaxFileBytes)...)},
			"larger than 65536 bytes"},
		{"too many servers", from("a", strings.Join(many, ",")), "more than 20 servers"},
		{"not read", mcpconfig.Contribution{From: "a", Text: good.Text, Problem: "is a symbolic link"}, "is a symbolic link"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := mcpconfig.Merge(system(), []mcpconfig.Contribution{c.c}, rules(mcpconfig.All))
			assertOnlyOurs(t, r)
			if len(r.Refused) != 1 || r.Refused[0].Name != "" || !strings.Contains(r.Refused[0].Reason, c.says) {
				t.Errorf("refused %q, want the whole with %q", r.Refused, c.says)
			}
		})
	}
}

func TestTheModeDecidesWhichKindsAreAdmitted(t *testing.T) {
	c := []mcpconfig.Contribution{from("a", `"web":{"type":"http","url":"https://x.example/mcp"},"prog":{"command":"t"}`)}
	for mode, want := range map[mcpconfig.Mode][]string{
		"": {"claudeops"}, mcpconfig.Off: {"claudeops"}, "else": {"claudeops"},
		mcpconfig.HTTP: {"claudeops", "web"}, mcpconfig.All: {"claudeops", "prog", "web"},
	} {
		var got []string
		r := mcpconfig.Merge(system(), c, rules(mode))
		for _, s := range r.Servers {
			got = append(got, s.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", mode, got, want)
		}
		if mode != mcpconfig.All && (len(r.Refused) != 1 ||
			!strings.Contains(r.Refused[0].String(), "CLAUDEOPS_MOUNTED_MCP")) {
			t.Errorf("%q: the refusal %q does not name the variable", mode, r.Refused)
		}
	}
}

func TestAnAdmittedServerIsWrittenAnew(t *testing.T) {
	r := mcpconfig.Merge(system(), []mcpconfig.Contribution{
		from("b",
			`"web":{"type":"sse","url":"http://127.0.0.1:8/mcp?a=1&b=2","headers":{"Authorization":"Bearer ${GRAFANA_TOKEN}"}}`),
		from("a", `"prog":{"command":"/srv/tool","args":["--t=${GRAFANA_TOKEN:-x}","$HOME"],"env":{"A":"b"}}`),
	}, rules(mcpconfig.All))
	if len(r.Refused) > 0 || len(r.Servers) != 3 || r.Servers[1].From != "a" || r.Servers[2].From != "b" {
		t.Fatalf("got %+v", r)
	}
	servers := r.Config()["mcpServers"]
	want := `{"type":"stdio","command":"/srv/tool","args":["--t=${GRAFANA_TOKEN:-x}","$HOME"],"env":{"A":"b","DATABASE_URL":"","GITHUB_TOKEN":""}}`
	must.Equal(t, string(servers["prog"]), want)
	want = `{"type":"sse","url":"http://127.0.0.1:8/mcp?a=1&b=2","headers":{"Authorization":"Bearer ${GRAFANA_TOKEN}"}}`
	must.Equal(t, string(servers["web"]), want)
}

func TestOfTwoServersWithOneNameTheFirstFolderKeepsIt(t *testing.T) {
	r := mcpconfig.Merge(system(), []mcpconfig.Contribution{
		from("zoo", `"tools":{"command":"z"}`), from("ann/web", `"Tools":{"command":"a"}`),
	}, rules(mcpconfig.All))
	if len(r.Servers) != 2 || r.Servers[1].From != "ann/web" {
		t.Errorf("servers %+v", r.Servers)
	}
	if len(r.Refused) != 1 || r.Refused[0].From != "zoo" || !strings.Contains(r.Refused[0].Reason, "ann/web") {
		t.Errorf("refused %q", r.Refused)
	}
}

func TestThereIsABoundForAllRepositoriesTogether(t *testing.T) {
	var contributions []mcpconfig.Contribution
	for i := range mcpconfig.MaxServers + 2 {
		contributions = append(contributions, from(fmt.Sprintf("r%02d", i), fmt.Sprintf(`"x%d":{"command":"t"}`, i)))
	}
	r := mcpconfig.Merge(system(), contributions, rules(mcpconfig.All))
	if len(r.Servers) != mcpconfig.MaxServers+1 || len(r.Refused) != 2 ||
		!strings.Contains(r.Refused[0].Reason, "20 servers") {
		t.Errorf("%d servers, refused %q", len(r.Servers), r.Refused)
	}
}

func TestARefusalCannotWriteToATerminal(t *testing.T) {
	r := mcpconfig.Merge(system(), []mcpconfig.Contribution{
		from("a", `"\u001b[2Jx\nrefused  b":{"command":"t"},"y":{"type":"\u202e`+strings.Repeat("x", 500)+`"}`),
	}, rules(mcpconfig.All))
	if len(r.Refused) != 2 {
		t.Fatalf("refused %q", r.Refused)
	}
	for _, refusal := range r.Refused {
		if line := refusal.String(); len(line) > 300 ||
			strings.ContainsFunc(line, func(c rune) bool { return c < ' ' || c > '~' }) {
			t.Errorf("the line is %q", line)
		}
	}
}

func FuzzMerge(f *testing.F) {
	f.Add(`{"mcpServers":{"claudeops":{"command":"x"},"tools":{"command":"t","args":["${GRAFANA_TOKEN:-x}"]}}}`,
		`{"mcpServers":{"Tools":{}}}`)
	f.Add(`{"mcpServers":{"claudeops__x":{"type":"http","url":"https://x.example","headers":{"A":"${GITHUB_TOKEN}"}}}}`,
		`[]`)
	f.Add(`{"mcpServers":{"a":{"type":"sse","url":"http://h/?q=<&>"},"ｃlaudeops":null}}`, "{\"mcpServers\":{\"\xff\":{}}}")
	f.Fuzz(func(t *testing.T, a, b string) {
		contributions := []mcpconfig.Contribution{{From: "b", Text: []byte(b)}, {From: "a", Text: []byte(a)}}
		r := mcpconfig.Merge(system(), contributions, rules(mcpconfig.All))
		config := r.Config()["mcpServers"]
		if string(config["claudeops"]) != ours || len(config) != len(r.Servers) || len(config) > mcpconfig.MaxServers+1 {
			t.Fatalf("the configuration is %s", config)
		}
		normalise := regexp.MustCompile(`[^A-Za-z0-9_-]`)
		for name, entry := range config {
			normal := strings.ToLower(normalise.ReplaceAllString(name, "_"))
			if name != "claudeops" && (strings.HasPrefix(normal, "claudeops") || strings.Contains(name, "__") ||
				normalise.MatchString(name)) {
				t.Errorf("the name %q shadows ours", name)
			}
			text := strings.ToUpper(strings.ReplaceAll(string(entry), `"GITHUB_TOKEN":""`, ""))
			if name != "claudeops" && (strings.Contains(text, "${GITHUB_") || strings.Contains(text, "${CLAUDEOPS_") ||
				!json.Valid(entry)) {
				t.Errorf("%q asks for a variable of ours: %s", name, entry)
			}
		}
		for _, refusal := range r.Refused {
			if refusal.Reason == "" || len(refusal.String()) > 600 {
				t.Errorf("a poor refusal: %q", refusal)
			}
		}
	})
}

func TestAddress(t *testing.T) {
	for given, want := range map[string]string{
		"https://ops.example.org": "https://ops.example.org/mcp", "https://ops.example.org/": "https://ops.example.org/mcp",
		"https://ops.example.org/mcp":        "https://ops.example.org/mcp",
		"https://ops.example.org/mcp/":       "https://ops.example.org/mcp",
		"https://ops.example.org:8443/base/": "https://ops.example.org:8443/base/mcp",
		"http://localhost:8080":              "http://localhost:8080/mcp",
		"http://127.0.0.1:8080/ops":          "http://127.0.0.1:8080/ops/mcp", "http://[::1]:8080": "http://[::1]:8080/mcp",
		"http://ops.example.org": "", "http://127.0.0.1.example.org": "", "http://10.0.0.1": "",
		"https://ann:secret@ops.example.org":   "",
		"https://ops.example.org?token=secret": "", "https://ops.example.org#x": "", "https://": "", "https:///base": "",
		"https://[::1":          "",
		"ftp://ops.example.org": "", "ops.example.org": "", "unix:/x": "", "": "",
	} {
		got, err := mcpconfig.Address(given)
		if got != want || (err == nil) != (want != "") || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %q, %v", given, got, err)
		}
	}
}

func TestEveryClientIsToldOfAnAddressWithoutAToken(t *testing.T) {
	const at = "https://ops.example.org/mcp"
	for _, f := range mcpconfig.AddressForms() {
		text := f.Text(at)
		if !strings.Contains(text, at) || !strings.Contains(text, mcpconfig.TokenVariable) || f.File == "" || f.Name == "" {
			t.Errorf("%s: %s", f.Client, text)
		}
		if f.Client != "codex" && !json.Valid([]byte(text)) {
			t.Errorf("%s: no JSON: %s", f.Client, text)
		}
		if words := strings.Join(f.Add(at), " "); (words == "") != (f.Client == "cursor") || words != "" &&
			(!strings.Contains(words, at) || !strings.Contains(words, mcpconfig.TokenVariable)) {
			t.Errorf("%s: %s", f.Client, words)
		}
	}
}

func TestShellLine(t *testing.T) {
	words := []string{"claude", "a b", "", "it's", "Bearer ${X}", "--url=https://ops.example/mcp"}
	const want = `claude 'a b' '' 'it'\''s' 'Bearer ${X}' --url=https://ops.example/mcp`
	if got := mcpconfig.ShellLine(words); got != want || words[1] != "a b" {
		t.Errorf("%s, from %q", got, words)
	}
}
