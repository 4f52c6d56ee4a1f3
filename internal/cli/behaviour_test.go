package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/app"
	"github.com/claudeops/claudeops/internal/testkit/must"

	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/records/record"
)

// behaviourSettings are the settings under which every operation is asked, by their name. $DIR is the folder of the
// world.
func behaviourSettings() map[string]map[string]string {
	with := func(pairs ...string) map[string]string {
		env := map[string]string{"CLAUDEOPS_TIER": "3", "CLAUDEOPS_ALLOW_WRITE": "true"}
		for i := 0; i < len(pairs); i += 2 {
			env[pairs[i]] = pairs[i+1]
		}
		return env
	}
	return map[string]map[string]string{
		"01 tier 1":                        with("CLAUDEOPS_TIER", "1"),
		"02 tier 2":                        with("CLAUDEOPS_TIER", "2"),
		"03 tier 3":                        with(),
		"04 no leave to write":             with("CLAUDEOPS_ALLOW_WRITE", "false"),
		"05 read-only":                     with("CLAUDEOPS_READ_ONLY", "true"),
		"06 dry run":                       with("CLAUDEOPS_DRY_RUN", "true"),
		"07 a policy that is broken":       with("CLAUDEOPS_POLICY", "$DIR/broken.yaml"),
		"08 a list without the repository": with("CLAUDEOPS_REPOS", "joe/other"),
		"09 a malformed list":              with("CLAUDEOPS_REPOS", "joe"),
		"10 the default toolset alone":     with("CLAUDEOPS_TOOLSETS", "pr"),
		"11 tiers that the policy raises":  with("CLAUDEOPS_TIER", "2", "CLAUDEOPS_POLICY", "$DIR/raised.yaml"),
		"12 a caller of tier 1":            with("token", "tier-one"),
		"13 a caller without the scope":    with("token", "no-scope"),
	}
}

// settingOfComparison is the one whose answers the table has in full. Of the others it has those that differ.
const settingOfComparison = "03 tier 3"

// TestTheBehaviourOfEveryOperation holds what every way in answers to a good request and to one that is malformed,
// under each setting, and the rows that the audit gets, as one table. A change of the table is a change of behaviour,
// and belongs in the changelog.
func TestTheBehaviourOfEveryOperation(t *testing.T) {
	t.Parallel()
	settings := behaviourSettings()
	names := sortedKeys(settings)
	answers := make([][]string, len(names))
	t.Run("settings", func(t *testing.T) {
		for i, name := range names {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				answers[i] = behaviourUnder(t, settings[name])
			})
		}
	})
	compared := answers[slices.Index(names, settingOfComparison)]
	var table strings.Builder
	for i, name := range names {
		what := ", where it differs from " + settingOfComparison[3:]
		if name == settingOfComparison {
			what = ""
		}
		fmt.Fprintf(&table, "# %s%s\n", name[3:], what)
		for at, line := range answers[i] {
			if what == "" || line != compared[at] {
				table.WriteString(line)
			}
		}
		table.WriteString("\n")
	}
	operationtest.Golden(t, filepath.Join("testdata", "behaviour.txt"), []byte(table.String()))
}

func sortedKeys[V any](m map[string]V) (keys []string) {
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// behaviour is a world in which every operation is asked.
type behaviour struct {
	*doors
	asked  string
	last   int64 // the newest row of the audit that was looked at
	reader *app.Parts
}

// behaviourUnder has a line for each request: the same ones in the same order under every setting.
func behaviourUnder(t *testing.T, env map[string]string) (lines []string) {
	b := &behaviour{doors: newDoors(t)}
	b.folder = t.TempDir()
	plain := b.app("", new(bytes.Buffer))
	secrets := map[string]string{}
	for _, token := range [][]string{{"tier-one", "1", "propose,read,review,operate"}, {"no-scope", "3", "review"}} {
		out, errs, code := runArgs(t, b.env, "token", "create", "--name", token[0], "--max-tier", token[1], "--scopes",
			token[2])
		if code != 0 {
			t.Fatal(errs)
		}
		secrets[token[0]] = strings.TrimSpace(out)
	}
	b.reader = plain.program().Wire(app.Needs{})
	b.rows()
	for name, text := range map[string]string{
		"broken.yaml": "version: 1\nnonsense: true\n",
		"raised.yaml": "version: 1\ntools: {tiers: {plan: 3, aam_list: 3, fractary_forge_agent_list: 3}}\n",
	} {
		must.Do(t, os.WriteFile(filepath.Join(b.folder, name), []byte(text), 0o600))
	}
	for name, value := range env {
		if b.env[name] = strings.ReplaceAll(value, "$DIR", b.folder); name == "token" {
			b.token = secrets[value]
		}
	}
	b.serveMCP()
	for _, o := range operation.List(plain.program().Toolsets()...) {
		if o.Tool.Title == "" {
			continue
		}
		good := goodRequest(o)
		wrong := strings.Replace(good, "{", `{"nonsense":"x",`, 1)
		lines = append(lines, b.line(o, "good", good),
			b.line(o, "malformed", strings.Replace(wrong, ",}", "}", 1)))
	}
	return lines
}

// line returns the answers of all protocols to one request, and the rows that they leave.
func (b *behaviour) line(o operation.Operation, kind, request string) (text string) {
	b.Helper()
	b.asked = o.Name
	text = fmt.Sprintf("%s, %s: MCP %s%s", o.Name, kind, b.sayMCP(o, request), b.rows())
	if status, ok := b.sayREST(o, request); ok {
		text += fmt.Sprintf(" | REST %s%s", status, b.rows())
	}
	return text + fmt.Sprintf(" | shell %s%s\n", b.sayCLI(o, request), b.rows())
}

// rows returns the new rows of the audit since the last look.
func (b *behaviour) rows() (text string) {
	b.Helper()
	rows, err := b.reader.Store.Audit.Page(b.Context(), record.AuditQuery{After: b.last, Ascending: true, Limit: 100})
	must.Do(b, err)
	for _, row := range rows {
		b.last = row.Seq
		if row.Action == b.asked {
			row.Action = string(row.Door)
		}
		text += fmt.Sprintf(" (row: %s %s)", row.Action, strings.TrimSpace(string(row.Outcome)+" "+string(row.Code)))
	}
	return text
}

// codeIn finds the code of a failure in what was answered.
func codeIn(text string) string {
	if m := regexp.MustCompile(`"(?:code|error)":\s*"([A-Za-z_]+)"`).FindStringSubmatch(text); m != nil {
		return m[1]
	}
	if m := regexp.MustCompile(`\[([A-Za-z_]+)\] `).FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return "failed"
}

func (b *behaviour) sayMCP(o operation.Operation, request string) string {
	b.Helper()
	result := b.ask(2, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, o.Name, request))
	if result["protocol"] != nil {
		return fmt.Sprintf("protocol error %v", result["protocol"])
	}
	text := must.Get(json.Marshal(result["structuredContent"]))(b)
	if result["isError"] == true || bytes.Contains(text, []byte(`"ok":false`)) {
		return codeIn(string(text))
	}
	return "ok"
}

func (b *behaviour) sayREST(o operation.Operation, request string) (string, bool) {
	b.Helper()
	if o.Route.Method == "" {
		return "", false
	}
	target, body, ok := b.restRequest(o, request)
	if !ok {
		b.Fatalf("%s cannot be asked %s over REST", o.Name, request)
	}
	status, answer := b.rest(o.Route.Method, target, body)
	if status < 300 {
		return fmt.Sprint(status), true
	}
	return fmt.Sprintf("%d %v", status, answer["code"]), true
}

func (b *behaviour) sayCLI(o operation.Operation, request string) string {
	b.Helper()
	a, out, err := b.runOperation(o, request)
	if err == nil {
		return "0"
	}
	exit := a.renderError(err)
	return fmt.Sprintf("%d %s", exit, codeIn(out.String()))
}
