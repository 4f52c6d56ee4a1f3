package main

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

type job struct {
	Steps []step `yaml:"steps"`
}

type step struct {
	Name string            `yaml:"name"`
	Uses string            `yaml:"uses"`
	Run  string            `yaml:"run"`
	Env  map[string]string `yaml:"env"`
}

func (s step) title() string {
	first, _, _ := strings.Cut(s.Run, "\n")
	action, _, _ := strings.Cut(s.Uses, "@")
	return cmp.Or(s.Name, first, action)
}

func readWorkflow(file string) (map[string]job, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var workflow struct {
		Jobs map[string]job `yaml:"jobs"`
	}
	err = yaml.Unmarshal(text, &workflow)
	return workflow.Jobs, err
}

// skipped is what goreleaser does not do in a trial.
const skipped = "publish,announce,validate,sign,docker"

// planOf is the command that stands for a step here, and what it leaves out, "" for nothing; or why there is none.
func (m *machine) planOf(ctx context.Context, s step) (command, partly, why string) {
	switch action := regexp.MustCompile(`[a-z-]+/[a-z-]+@`).FindString(s.Uses); action {
	case "":
	case "actions/checkout@":
		return m.checkout(), "the last commit of this clone, with the tag " + m.tag, ""
	case "actions/setup-go@":
		return "go version && go list ./cmd/... > /dev/null", "the Go that is installed here", ""
	default:
		return "", "", "an action, which the forge's runner has"
	}
	releases := regexp.MustCompile(`\bgoreleaser release --clean\b`)
	switch {
	case releases.MatchString(s.Run):
		return releases.ReplaceAllString(s.Run, "$0 --skip="+skipped), "without " + skipped, ""
	case regexp.MustCompile(`(?m)^\s*mcp-publisher `).MatchString(s.Run):
		return "", "", "it publishes, by the identity of the workflow"
	case strings.Contains(s.Run, "docker login"):
		return "", "", "it needs a token that the forge gives to the workflow"
	case regexp.MustCompile(`\bdocker `).MatchString(s.Run) && !hasEngine(ctx):
		return "", "", "no container engine answers `docker info` here"
	}
	return s.Run, "", ""
}

func hasEngine(ctx context.Context) bool {
	return exec.CommandContext(ctx, "docker", "info").Run() == nil
}
