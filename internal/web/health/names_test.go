package health

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"github.com/claudeops/claudeops/internal/operation/operationtest"
)

// metric is a metric of the registry.
type metric struct {
	labels []string
	help   string
}

// described are the metrics of ours, as the registry has them.
func described(t *testing.T) map[string]metric {
	t.Helper()
	m := NewMetrics(MetricsOptions{
		Health: New(Options{}), Now: time.Now,
		Streams:   func() int { return 0 },
		Remaining: func() map[string]int { return nil }, Latency: NewProviderLatency(),
	})
	descs := make(chan *prometheus.Desc, 1000)
	m.registry.Describe(descs)
	close(descs)
	out := map[string]metric{}
	parts := regexp.MustCompile(
		`fqName: "(claudeops_[a-z_]+)", help: (".*"), unit: ".*", constLabels: \{(.*)\}, variableLabels: \{([^}]*)\}`)
	for desc := range descs {
		found := parts.FindStringSubmatch(desc.String())
		if found == nil {
			continue
		}
		labels := strings.FieldsFunc(found[4], func(r rune) bool { return r == ',' })
		for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(found[3], -1) {
			labels = append(labels, label[1])
		}
		slices.Sort(labels)
		help, err := strconv.Unquote(found[2])
		if err != nil {
			t.Fatal(err)
		}
		out[found[1]] = metric{labels, help}
	}
	return out
}

func read(t *testing.T, parts ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", "..", ".."}, parts...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// docs/reference/metrics.md is made from the metrics: `make golden` writes it.
func TestThePageOfMetricsIsMadeFromThem(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Metrics\n\n<!-- Written by `make golden` from internal/web/health; edit that. -->\n\n" +
		"What `GET /metrics` answers; [Monitor it](../guides/metrics.md) says how to ask. Go's and the process's own " +
		"metrics stand beside\n" +
		"these (`go_`, `process_`).\n\n| metric | labels | what |\n|---|---|---|\n")
	code := described(t)
	for _, name := range slices.Sorted(maps.Keys(code)) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, strings.Join(code[name].labels, ", "),
			strings.ReplaceAll(code[name].help, "|", `\|`))
	}
	b.WriteString("\n## Alerts\n\nThose of `deploy/prometheus/claudeops.rules.yaml`.\n\n" +
		"| alert | severity | what to do |\n|---|---|---|\n")
	for _, a := range alerts(t) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", a.Alert, a.Labels.Severity, a.Annotations.Description)
	}
	operationtest.Golden(t, filepath.Join("..", "..", "..", "docs", "reference", "metrics.md"), []byte(b.String()))
}

// alert is a rule of deploy/prometheus/claudeops.rules.yaml.
type alert struct {
	Alert       string
	Labels      struct{ Severity string }
	Annotations struct{ Description string }
}

func alerts(t *testing.T) (out []alert) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alert } }
	if err := yaml.Unmarshal([]byte(read(t, "deploy", "prometheus", "claudeops.rules.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Groups {
		out = append(out, group.Rules...)
	}
	for _, a := range out {
		if a.Alert == "" || a.Labels.Severity == "" || a.Annotations.Description == "" {
			t.Errorf("an alert lacks its name, severity or description: %+v", a)
		}
	}
	return out
}

// Rules and dashboard ask for metrics that there are, by labels that these have.
func TestRulesAndDashboardAskForWhatThereIs(t *testing.T) {
	code := described(t)
	rules := read(t, "deploy", "prometheus", "claudeops.rules.yaml")
	var expressions []string
	for _, expr := range regexp.MustCompile(`(?m)^\s+expr: (.*)$`).FindAllStringSubmatch(rules, -1) {
		expressions = append(expressions, expr[1])
	}
	alerts := len(expressions)
	expressions = append(expressions, dashboardQueries(t)...)
	if alerts < 8 || len(expressions) < alerts+10 {
		t.Fatalf("%d alerts and %d expressions were found", alerts, len(expressions))
	}
	for _, name := range []string{"schedule_skips_total", "schedule_last_success_timestamp_seconds",
		"audit_export_failing", "state_disk_free_bytes", "records_bytes"} {
		if !slices.ContainsFunc(expressions[:alerts], func(e string) bool { return strings.Contains(e, "claudeops_"+name) }) {
			t.Errorf("no alert watches %s", name)
		}
	}
	for _, name := range []string{"sessions_total", "schedule_sessions_total", "schedule_skips_total",
		"schedule_last_success_timestamp_seconds", "records_bytes"} {
		if !slices.ContainsFunc(expressions[alerts:], func(e string) bool { return strings.Contains(e, "claudeops_"+name) }) {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
	for _, expr := range expressions {
		if strings.ContainsAny(expr, "|>") && strings.HasPrefix(expr, "|") {
			t.Errorf("an expression stands on one line: %s", expr)
		}
		names := regexp.MustCompile(`claudeops_[a-z_]+`).FindAllString(expr, -1)
		labels := map[string]bool{"job": true, "instance": true, "le": true}
		for _, name := range names {
			base := name
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if _, exists := code[base]; !exists {
					base = strings.TrimSuffix(name, suffix)
				}
			}
			has, exists := code[base]
			if !exists {
				t.Errorf("%s asks for %s, which there is not", expr, name)
			}
			for _, label := range has.labels {
				labels[label] = true
			}
		}
		asked := regexp.MustCompile(`(\w+)\s*=~?\s*"|(\w+)\s*!~?=?\s*"`).FindAllStringSubmatch(expr, -1)
		for _, by := range regexp.MustCompile(`by \(([^)]*)\)`).FindAllStringSubmatch(expr, -1) {
			for _, label := range strings.Split(by[1], ",") {
				asked = append(asked, []string{"", strings.TrimSpace(label), ""})
			}
		}
		for _, label := range asked {
			if name := label[1] + label[2]; !labels[name] {
				t.Errorf("%s asks for the label %s, which %v lack", expr, name, names)
			}
		}
	}
}

func dashboardQueries(t *testing.T) (out []string) {
	t.Helper()
	var board any
	if err := json.Unmarshal([]byte(read(t, "deploy", "grafana", "claudeops.json")), &board); err != nil {
		t.Fatal(err)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if expr, ok := v["expr"].(string); ok {
				out = append(out, expr)
			}
			for _, part := range v {
				walk(part)
			}
		case []any:
			for _, part := range v {
				walk(part)
			}
		}
	}
	walk(board)
	return out
}
