// Command workflow runs the steps of a release's workflow on this machine, as far as it can, and says which it could
// not run, and why. Usage: workflow FILE FOLDER, such as .github/workflows/release.yml and a folder for what is made.
// It publishes and signs nothing. The last commit is what is released, with the tag that CHANGELOG.md names.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: workflow FILE FOLDER")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := runWorkflow(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func runWorkflow(ctx context.Context, file, folder string) error {
	jobs, err := readWorkflow(file)
	if err != nil {
		return err
	}
	m, err := newMachine(folder)
	if err != nil {
		return err
	}
	changes, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return err
	}
	newest := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+)`).FindSubmatch(changes)
	if newest == nil {
		return fmt.Errorf("CHANGELOG.md begins with no version")
	}
	m.tag = "v" + string(newest[1])
	for name, job := range jobs {
		fmt.Printf("job %s of %s\n", name, filepath.Base(file))
		for _, s := range job.Steps {
			if err := m.runStep(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", s.title(), err)
			}
		}
	}
	return nil
}

// runStep runs a step, or says why not.
func (m *machine) runStep(ctx context.Context, s workflowStep) error {
	command, partly, why := m.planOf(ctx, s)
	if why != "" {
		fmt.Printf("  not run  %s: %s\n", s.title(), why)
		return nil
	}
	start := time.Now()
	if err := m.runBash(ctx, command); err != nil {
		return err
	}
	fmt.Printf("  done     %s (%s)", s.title(), time.Since(start).Round(time.Second))
	if partly != "" {
		fmt.Printf("; in part: %s", partly)
	}
	fmt.Println()
	return nil
}

type job struct {
	Steps []workflowStep `yaml:"steps"`
}

type workflowStep struct {
	Name string            `yaml:"name"`
	Uses string            `yaml:"uses"`
	Run  string            `yaml:"run"`
	Env  map[string]string `yaml:"env"`
}

func (s workflowStep) title() string {
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
func (m *machine) planOf(ctx context.Context, s workflowStep) (command, partly, why string) {
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

// machine stands for the forge's runner: a clone in which the steps run, and what one step leaves for those after it.
type machine struct {
	source, clone, temp string
	added, variables    string // the files in which steps leave folders of programs, and variables
	tag                 string
}

// newMachine makes the folder of a run; what was in its clone is removed.
func newMachine(folder string) (*machine, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	source, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	m := &machine{
		source: source, clone: filepath.Join(folder, "clone"), temp: filepath.Join(folder, "temp"),
		added: filepath.Join(folder, "path"), variables: filepath.Join(folder, "env"),
	}
	err = errors.Join(os.RemoveAll(m.clone), os.MkdirAll(m.clone, 0o755), os.MkdirAll(m.temp, 0o755),
		os.WriteFile(m.added, nil, 0o600), os.WriteFile(m.variables, nil, 0o600))
	if err != nil {
		return nil, err
	}
	if _, noSudo := exec.LookPath("sudo"); noSudo != nil && os.Getuid() == 0 { // root needs none
		bin := filepath.Join(folder, "bin")
		err = errors.Join(os.MkdirAll(bin, 0o755), os.WriteFile(m.added, []byte(bin+"\n"), 0o600),
			os.WriteFile(filepath.Join(bin, "sudo"), []byte("#!/bin/sh\nexec \"$@\"\n"), 0o755))
	}
	return m, err
}

// checkout is the command that clones.
func (m *machine) checkout() string {
	return fmt.Sprintf(`git clone --quiet --no-tags "file://$(git -C '%s' rev-parse --path-format=absolute `+
		`--git-common-dir)" . && git checkout --quiet "$(git -C '%s' rev-parse HEAD)" && `+
		`git -c user.name=trial -c user.email=trial@localhost tag --annotate --message trial '%s'`,
		m.source, m.source, m.tag)
}

// runBash runs a command as the runner does: by bash, which ends at the first failure.
func (m *machine) runBash(ctx context.Context, command string) error {
	added, err := os.ReadFile(m.added)
	if err != nil {
		return err
	}
	variables, err := os.ReadFile(m.variables)
	if err != nil {
		return err
	}
	for _, folder := range strings.Fields(string(added)) {
		command = fmt.Sprintf("PATH='%s':$PATH\n%s", folder, command)
	}
	cmd := exec.CommandContext(ctx, "bash", "-e", "-o", "pipefail", "-c", command)
	cmd.Dir = m.clone
	cmd.Env = append(cmd.Environ(), strings.Fields(string(variables))...)
	cmd.Env = append(cmd.Env, "RUNNER_TEMP="+m.temp, "GITHUB_PATH="+m.added, "GITHUB_ENV="+m.variables,
		"GITHUB_ACTOR=trial", "HOMEBREW_TAP_TOKEN=none")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}
