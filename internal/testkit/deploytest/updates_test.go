package deploytest_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/claudeops/claudeops/internal/testkit/must"
)

// workflowJob is a job of a workflow, as far as its order matters here.
type workflowJob struct {
	Needs       string
	Permissions map[string]string
	Steps       []struct{ Run, Uses string }
}

func workflowJobs(t *testing.T, file string) map[string]workflowJob {
	t.Helper()
	var w struct{ Jobs map[string]workflowJob }
	if err := yaml.Unmarshal([]byte(read(t, file)), &w); err != nil {
		t.Fatal(file, err)
	}
	return w.Jobs
}

// stepWith returns the number of the first step whose command has a text; -1 if there is none.
func (j workflowJob) stepWith(text string) int {
	return slices.IndexFunc(j.Steps, func(s struct{ Run, Uses string }) bool { return strings.Contains(s.Run, text) })
}

// The versions are compared and the whole suite has run before anything is published, at each forge.
func TestAReleaseIsTestedBeforeItIsPublished(t *testing.T) {
	jobs := workflowJobs(t, ".github/workflows/release.yml")
	for _, command := range []string{`deploy/packages/release.sh "$GITHUB_REF_NAME"`, ".ci/run", "make release-snapshot"} {
		if jobs["test"].stepWith(command) < 0 {
			t.Errorf("GitHub's job test does not run %s", command)
		}
	}
	for name, job := range jobs {
		for right, level := range job.Permissions {
			if level == "write" && job.Needs != "test" {
				t.Errorf("GitHub's job %s may write %s, and does not wait for the job test", name, right)
			}
		}
	}
	if jobs["release"].stepWith("goreleaser release --clean") < 0 {
		t.Error("GitHub's job release does not run goreleaser")
	}

	gitea := workflowJobs(t, ".gitea/workflows/release.yml")["release"]
	last := -1
	for _, command := range []string{"deploy/packages/release.sh", ".ci/run", "goreleaser release --clean --skip=publish",
		"deploy/packages/test.sh", "deploy/packages/archives.sh", `"$api/$id/assets`} {
		at := gitea.stepWith(command)
		if at <= last {
			t.Errorf("Gitea's release runs %s as step %d, after step %d", command, at, last)
		}
		last = at
	}
	for _, step := range gitea.Steps {
		if strings.Contains(step.Uses, "artifact") {
			t.Errorf("Gitea's release uses %s, which speaks to GitHub alone", step.Uses)
		}
	}
}

// New versions of all that the repository names are looked for each week, in few groups, and known faults too.
func TestUpdatesAreLookedForEveryWeek(t *testing.T) {
	var renovate struct {
		Schedule     []string
		PackageRules []struct {
			MatchManagers, MatchPackageNames []string
			GroupName                        string
			Enabled                          *bool
		}
	}
	must.Do(t, json.Unmarshal([]byte(read(t, "renovate.json")), &renovate))
	var grouped, held []string
	for _, rule := range renovate.PackageRules {
		if rule.Enabled != nil && !*rule.Enabled {
			held = append(held, rule.MatchPackageNames...)
		}
		if rule.GroupName != "" {
			grouped = append(append(grouped, rule.MatchManagers...), rule.MatchPackageNames...)
		}
	}
	if !slices.Equal(renovate.Schedule, []string{"before 6am on monday"}) ||
		!slices.Equal(held, []string{"github.com/google/go-github/**", "modernc.org/libc"}) {
		t.Errorf("Renovate looks at %q, and holds %q back", renovate.Schedule, held)
	}
	for _, want := range []string{"gomod", "github-actions", "npm", "dockerfile", "docker-compose",
		"github.com/pressly/goose/**", "modernc.org/**"} {
		if !slices.Contains(grouped, want) {
			t.Errorf("Renovate has no group for %s", want)
		}
	}

	var dependabot struct {
		Updates []struct {
			Ecosystem string `yaml:"package-ecosystem"`
			Schedule  struct{ Interval string }
		}
	}
	must.Do(t, yaml.Unmarshal([]byte(read(t, ".github/dependabot.yml")), &dependabot))
	seen := map[string]bool{}
	for _, update := range dependabot.Updates {
		seen[update.Ecosystem] = update.Schedule.Interval == "weekly"
	}
	for _, ecosystem := range []string{"gomod", "github-actions", "npm", "docker"} {
		if !seen[ecosystem] {
			t.Errorf("Dependabot does not look at %s each week", ecosystem)
		}
	}
	for _, file := range []string{".github/workflows/test.yml", ".gitea/workflows/test.yml"} {
		looks := false
		for _, job := range workflowJobs(t, file) {
			looks = looks || job.stepWith("govulncheck ./...") >= 0
		}
		if !looks {
			t.Errorf("%s does not look for known faults", file)
		}
	}
}

// SQLite in Go is made for one version of the library of C in Go, and another one may break it.
func TestTheLibraryOfCIsTheOneThatSQLiteNames(t *testing.T) {
	const format = `{{if eq .Path "modernc.org/sqlite"}}{{.GoMod}}{{else}}{{.Version}}{{end}}`
	out, err := exec.Command("go", "list", "-m", "-f", format, "modernc.org/sqlite", "modernc.org/libc").Output()
	file, libc, found := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil || !found {
		t.Fatalf("%v: %q", err, out)
	}
	named, err := exec.Command("go", "mod", "edit", "-json", file).Output()
	must.Do(t, err)
	var sqlite struct {
		Require []struct{ Path, Version string }
	}
	must.Do(t, json.Unmarshal(named, &sqlite))
	for _, required := range sqlite.Require {
		if required.Path == "modernc.org/libc" && required.Version != libc {
			t.Errorf("modernc.org/libc is %s, and modernc.org/sqlite names %s", libc, required.Version)
		}
	}
}
