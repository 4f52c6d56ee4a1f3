package deploytest_test

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/system/confine"
	"github.com/claudeops/claudeops/internal/testkit/deploytest"
)

func TestImagesAreNamedByTheirExactVersion(t *testing.T) {
	build, cli, final := stages(t)
	exact := regexp.MustCompile(`^[a-z0-9-]+\.[a-z0-9.-]+/[a-z0-9./_-]+:\d+\.\d+\.\d+-[a-z0-9.-]+(@sha256:[0-9a-f]{64})?$`)
	for _, image := range []string{build.Base, cli.Base, final.Base, composed(t).Services["gitea"].Image} {
		if !exact.MatchString(image) {
			t.Errorf("%s does not name its registry and its exact version", image)
		}
	}
	if cli.Base != final.Base {
		t.Errorf("the CLI is installed on %s and runs on %s", cli.Base, final.Base)
	}
	want := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))
	if want == nil || !strings.HasPrefix(build.Base, "docker.io/library/golang:"+want[1]+".") {
		t.Errorf("go.mod asks for Go %v, the image builds with %s", want, build.Base)
	}
}

func TestTheImageHasWhatTheAgentsFilesName(t *testing.T) {
	_, _, final := stages(t)
	var mcp struct {
		Servers map[string]struct {
			Command string `json:"command"`
		} `json:"mcpServers"`
	}
	if err := json.Unmarshal([]byte(read(t, ".claude/mcp.json")), &mcp); err != nil {
		t.Fatal(err)
	}
	binary := mcp.Servers["claudeops"].Command
	got := map[string]string{}
	for _, c := range final.Each("COPY") {
		if words := c.Operands(); len(words) == 2 {
			got[words[1]] = c.Flag("from") + ":" + words[0]
		}
	}
	want := map[string]string{
		binary: "build:/out/claudeops", path.Dir(binary) + "/claudeops-connect": "build:/out/claudeops-connect",
		"/app/prompts": ":prompts", "/app/.claude": ":.claude", "/usr/local/bin/claude": "cli:/opt/claude/claude",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the image copies %q, want %q", got, want)
	}
	if !slices.Equal(final.Last("ENTRYPOINT").Words, []string{binary}) ||
		!slices.Equal(final.Last("CMD").Words, []string{"serve"}) ||
		!strings.HasSuffix(final.Last("HEALTHCHECK").Args, `CMD ["`+binary+`", "health"]`) {
		t.Errorf("entry %q, command %q, health check %q", final.Last("ENTRYPOINT").Args, final.Last("CMD").Args,
			final.Last("HEALTHCHECK").Args)
	}
	repos := final.Env()["CLAUDEOPS_REPOS_DIR"]
	for _, name := range []string{"prompts/tier1-observe.md", "prompts/tier2-investigate.md",
		"prompts/tier3-remediate.md"} {
		if !strings.Contains(read(t, name), "`"+repos+"`") {
			t.Errorf("%s does not say that working copies are in %s", name, repos)
		}
	}
	settings := read(t, ".claude/settings.json")
	for _, rule := range []string{"Read(/" + repos + "/**)", "Edit(/" + path.Dir(binary) + "/**)",
		"Bash(" + binary + " *)", "Read(//run/secrets/**)"} {
		if !strings.Contains(settings, `"`+rule+`"`) {
			t.Errorf(".claude/settings.json has no rule %s", rule)
		}
	}
}

func TestTheImageIsSettledForItsPlaces(t *testing.T) {
	build, _, final := stages(t)
	env := final.Env()
	for name, want := range ofImage() {
		if env[name] != want {
			t.Errorf("%s is %q in the image, want %q", name, env[name], want)
		}
	}
	// It starts as root, and becomes the user that CLAUDEOPS_RUN_AS names before anything else is done.
	if user := final.Last("USER").Args; user != "0:0" {
		t.Errorf("the image starts as %s", user)
	}
	setUp := final.Last("RUN").Args
	for _, part := range []string{
		" git ", "--uid 10001 --gid 10001 --create-home --shell /usr/sbin/nologin " + env["CLAUDEOPS_RUN_AS"] + " ",
		"groupadd --gid 10002 " + confine.DefaultAccount + " ",
		"for n in $(seq " + strings.TrimPrefix(env["CLAUDEOPS_AGENT_USER"], confine.DefaultAccount+"+") + "); do",
		"groupadd --gid $((10010 + n)) " + confine.DefaultAccount + "-$n ", "install -d -m 0700 " + confine.ClaimFolder,
		"--uid $((10010 + n)) --gid $((10010 + n)) --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin " +
			confine.DefaultAccount + "-$n ", "-o 10001 -g 10001 " + env["CLAUDEOPS_STATE_DIR"] + " /git",
		"install -d " + env["CLAUDEOPS_REPOS_DIR"],
	} {
		if !strings.Contains(setUp, part) {
			t.Errorf("the set-up lacks %q: %s", part, setUp)
		}
	}
	if !strings.HasSuffix(env["CLAUDEOPS_ADDR"], ":"+final.Last("EXPOSE").Args) || env["HOME"] != "/home/claudeops" {
		t.Errorf("address %s, port %s, home %s", env["CLAUDEOPS_ADDR"], final.Last("EXPOSE").Args, env["HOME"])
	}
	makefile := read(t, "Makefile")
	for _, flag := range []string{"CGO_ENABLED", "-trimpath", "-ldflags='-s -w'"} {
		if !strings.Contains(makefile, flag) || !strings.Contains(build.Last("RUN").Args+build.Last("ENV").Args, flag) {
			t.Errorf("the Makefile and the image do not both build with %s", flag)
		}
	}
}

// The build must see everything that it copies or embeds, and no secret, record or history.
func TestTheBuildSeesWhatItNeedsAndNothingElse(t *testing.T) {
	ignored := deploytest.Ignore(read(t, ".dockerignore"))
	build, cli, final := stages(t)
	for _, stage := range []deploytest.Stage{build, cli, final} {
		for _, c := range stage.Each("COPY") {
			if words := c.Operands(); c.Flag("from") == "" {
				for _, source := range words[:len(words)-1] {
					if source != "." && ignored(source) {
						t.Errorf("%s is copied, and .dockerignore keeps it out", source)
					}
				}
			}
		}
	}
	for _, name := range []string{"secrets/github_token", ".env", ".git/config", "bin/claudeops", "e2e/node_modules/x",
		"repos/a", "deploy/secrets.sh"} {
		if !ignored(name) {
			t.Errorf("%s reaches the build", name)
		}
	}
	embedded := regexp.MustCompile(`(?m)^//go:embed (.+)$`).FindStringSubmatch(read(t, "procedures.go"))
	if embedded == nil {
		t.Fatal("procedures.go embeds nothing")
	}
	for _, name := range append(strings.Fields(embedded[1]), "procedures.go", "internal/settings/config/config.go",
		"cmd/claudeops/main.go", "cmd/claudeops-connect/main.go") {
		if ignored(name) {
			t.Errorf("%s is needed, and .dockerignore keeps it out", name)
		}
	}
	entries, err := os.ReadDir(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") && ignored(e.Name()) {
			t.Errorf("%s is source, and .dockerignore keeps it out", e.Name())
		}
	}
}

type lockfile struct {
	Packages map[string]map[string]any `json:"packages"`
}

// The CLI of the image is the one that the end-to-end tests drive, byte for byte: same version, same checksums.
func TestTheImagesCLIIsTheOneThatIsTested(t *testing.T) {
	var tested, image lockfile
	for name, into := range map[string]*lockfile{"e2e/package-lock.json": &tested,
		"deploy/claude/package-lock.json": &image} {
		if err := json.Unmarshal([]byte(read(t, name)), into); err != nil {
			t.Fatal(err)
		}
	}
	const cli = "node_modules/@anthropic-ai/claude-code"
	var manifest struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	if err := json.Unmarshal([]byte(read(t, "deploy/claude/package.json")), &manifest); err != nil {
		t.Fatal(err)
	}
	if got, want := manifest.Dependencies["@anthropic-ai/claude-code"], tested.Packages[cli]["version"]; len(
		manifest.Dependencies) != 1 || got != want {
		t.Errorf("the image installs %q, the tests drive %v", manifest.Dependencies, want)
	}
	count := 0
	for name, entry := range tested.Packages {
		if !strings.HasPrefix(name, cli) {
			continue
		}
		count++
		if !reflect.DeepEqual(entry, image.Packages[name]) {
			t.Errorf("%s differs between the lock files", name)
		}
	}
	if count < 3 || len(image.Packages) != count+1 {
		t.Errorf("%d packages are tested, %d are in the image", count, len(image.Packages)-1)
	}
}
