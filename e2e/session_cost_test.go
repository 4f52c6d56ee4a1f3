//go:build e2e && linux

package e2e

import (
	"math"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// costly is a reply that takes as many tokens as those of internal/agents/session/usage_test.go.
func costly(r reply) reply {
	r.used = map[string]any{
		"input_tokens": 1000, "cache_creation_input_tokens": 2000, "cache_read_input_tokens": 30000, "output_tokens": 400,
		"cache_creation": map[string]any{"ephemeral_5m_input_tokens": 1500, "ephemeral_1h_input_tokens": 500},
	}
	return r
}

// The figures are those that internal/agents/session compares its estimate with.
func TestTheClientCountsCostAsWeDo(t *testing.T) {
	for model, want := range map[string]float64{
		"claude-haiku-5-5": 0.0026625, "claude-haiku-4-5": 0.026625, "claude-sonnet-4-6": 0.079875,
		"claude-sonnet-5":   0.05325,
		"claude-sonnet-5-5": 0.04425, "claude-opus-5": 0.133125, "claude-opus-5-5": 0.0885,
		"us.anthropic.claude-opus-4-8-v1:0": 0.133125,
		"claude-fable-5":                    0.26625, "claude-fable-5-1": 0.19875, "somebody-elses-model": 0.0885,
	} {
		o := newOperator(t)
		o.vars["CLAUDEOPS_TIER1_MODEL"] = model
		list := costly(use("list_prs", ofRepository()))
		got, out := o.run(t, scriptedSession(list, list, costly(say("done"))), "--tier", "1")
		source := "client"
		if strings.HasPrefix(model, "somebody") {
			source = "client_guess"
		}
		if len(got.Sessions) != 1 || out.code != 0 {
			t.Fatalf("%s: exit %d: %s%s", model, out.code, out.stdout, out.stderr)
		}
		if s := got.Sessions[0]; math.Abs(s.Cost-want) > 1e-9 || s.CostSource != source || s.Output != 1200 {
			t.Errorf("%s: %v USD (%s) for %d tokens of output, want %v", model, s.Cost, s.CostSource, s.Output, want)
		}
	}
}

func TestASessionThatCostsTooMuchIsEndedWhileItRuns(t *testing.T) {
	o := newOperator(t)
	o.vars["CLAUDEOPS_MAX_COST_USD"] = "0.1"
	o.vars["CLAUDEOPS_TIER1_MODEL"] = "claude-opus-5-5"
	turns := 0
	got, out := o.run(t, func(string, []seenResult) reply {
		turns++
		return costly(use("list_prs", ofRepository()))
	}, "--tier", "1")
	if len(got.Sessions) != 1 || out.code == 0 {
		t.Fatalf("exit %d: %s%s", out.code, out.stdout, out.stderr)
	}
	if s := got.Sessions[0]; s.State != "limit" || !strings.Contains(s.Reason, "0.1 USD (CLAUDEOPS_MAX_COST_USD)") ||
		s.Cost < 0.1 || s.Cost > 0.15 || turns > 5 {
		t.Errorf("after %d turns %+v", turns, s)
	}
}

func TestARefusedCredentialEndsASessionAtOnce(t *testing.T) {
	o := newOperator(t)
	stub := newSessionStub(t, nil)
	asked := 0
	refuse := refusing(http.StatusUnauthorized, "authentication_error")
	stub.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			asked++
		}
		refuse(w, r)
	})
	out := run(t, program{path: claudeops(t), args: []string{"run", "--json", "--tier", "1"}, dir: t.TempDir(),
		env: o.environment(stub.URL)})
	got := decode[sessions](t, out.stdout)
	if len(got.Sessions) != 1 || got.Sessions[0].State != "failed" ||
		!strings.Contains(got.Sessions[0].Reason, "status 401") || asked > 3 {
		t.Errorf("asked %d times: %s", asked, out.stdout)
	}
}

// starter is the line of .env.example that an operator begins with.
func starter(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../.env.example")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^# CLAUDEOPS_AGENT_TOOLS=(.+)$`).FindSubmatch(text)
	if line == nil {
		t.Fatal(".env.example has no line to begin with")
	}
	return string(line[1])
}

func TestTheFirstPermissionsLetAnAgentLookAndChangeNothing(t *testing.T) {
	o := newOperator(t)
	o.vars["CLAUDEOPS_AGENT_TOOLS"] = starter(t)
	forbidden := filepath.Join(t.TempDir(), "written")
	permitted := []string{"df -h", "df", "free -m", "uptime", "systemctl status cron", "systemctl list-units --failed",
		"docker ps -a", "docker system df", "df -h / | df"}
	refused := []string{
		"touch " + forbidden, "df -h > " + forbidden, "df -h; touch " + forbidden, "df -h && touch " + forbidden,
		"df $(touch " + forbidden + ")",
		"free -m | tee " + forbidden, "systemctl restart cron", "systemctl stop cron", "docker stop x", "docker rm x",
		"docker system prune -f", "journalctl --vacuum-time=1s", "uptime & touch " + forbidden,
		"bash -c 'touch " + forbidden + "'",
	}
	var script []reply
	for _, command := range append(append([]string{}, permitted...), refused...) {
		script = append(script, free("Bash", map[string]any{"command": command}))
	}
	var results []seenResult
	model := scripted(script...)
	got, out := o.run(t, func(_ string, seen []seenResult) reply {
		results = seen
		return model(seen)
	}, "--tier", "1")
	if len(got.Sessions) != 1 || got.Sessions[0].State != "succeeded" || len(results) != len(script) {
		t.Fatalf("exit %d, %d results: %s%s", out.code, len(results), out.stdout, out.stderr)
	}
	for i, command := range append(append([]string{}, permitted...), refused...) {
		denied := strings.Contains(results[i].text, "ermission")
		if want := i >= len(permitted); denied != want {
			t.Errorf("%s: denied %v: %s", command, denied, results[i].text)
		}
	}
	if _, err := os.Stat(forbidden); err == nil {
		t.Error("a file was written")
	}
}
