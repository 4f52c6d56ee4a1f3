package deploytest_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/system/sandbox"
	"github.com/claudeops/claudeops/internal/testkit/deploytest"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

const top = "../../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text := operationtest.ReadFile(t, filepath.Join(top, filepath.FromSlash(name)))
	return string(text)
}

func stages(t *testing.T) (build, cli, final deploytest.Stage) {
	t.Helper()
	all, err := deploytest.ParseDockerfile(read(t, "Dockerfile"))
	must.Do(t, err)
	if len(all) != 3 || all[0].Name != "build" || all[1].Name != "cli" {
		t.Fatalf("the stages are %+v", all)
	}
	return all[0], all[1], all[2]
}

// composed is compose.yaml with nothing in .env.
func composed(t *testing.T) deploytest.Compose {
	t.Helper()
	c, err := deploytest.ParseCompose(read(t, "compose.yaml"), func(string) string { return "" })
	must.Do(t, err)
	return c
}

// ofImage are the variables that the image settles: what they name is inside of it.
func ofImage() map[string]string {
	return map[string]string{
		"CLAUDEOPS_ADDR": "0.0.0.0:8080", "CLAUDEOPS_REPOS_DIR": "/repos", "CLAUDEOPS_STATE_DIR": "/state",
		"CLAUDEOPS_CLAUDE_BIN": "/usr/local/bin/claude", "CLAUDEOPS_PROMPTS_DIR": "/app/prompts",
		"CLAUDEOPS_RUN_AS": "claudeops", "CLAUDEOPS_AGENT_USER": sandbox.DefaultAccount + "+16",
	}
}

// secretFile is the name of the file of a secret.
func secretFile(v config.Variable) string { return strings.ToLower(v.Name) }

func secrets() []config.Variable {
	return slices.DeleteFunc(deployed(), func(v config.Variable) bool { return !v.Secret })
}

// deployed are the variables that a service can have. CLAUDEOPS_TOKEN is that of a person at the command line.
func deployed() []config.Variable {
	return slices.DeleteFunc(
		config.Variables(forges.All()),
		func(v config.Variable) bool { return v.Name == "CLAUDEOPS_TOKEN" },
	)
}

func TestParsersRefuseWhatTheyDoNotUnderstand(t *testing.T) {
	for name, text := range map[string]string{
		"no FROM": "# nothing\n", "unknown": "FROM a\nONBUILD RUN x\n", "before FROM": "RUN x\n",
		"quotes":   "FROM a\nENV A=\"b c\"\n",
		"bad JSON": "FROM a\nCMD [a\n", "no arguments": "FROM a\nRUN\n",
	} {
		if got, err := deploytest.ParseDockerfile(text); err == nil {
			t.Errorf("%s: read as %+v", name, got)
		}
	}
	if got, err := deploytest.ParseCompose("services: {a: {privileged: true}}",
		func(string) string { return "" }); err == nil {
		t.Errorf("an unknown key was read as %+v", got)
	}
}

func TestADockerfileIsRead(t *testing.T) {
	all, err := deploytest.ParseDockerfile(
		"ARG B=x:1\nFROM ${B} AS one\nRUN a \\\n  # remark\n  && b\nFROM y\nCOPY --from=one /a /b\nENV A=1 \\\n B=2\nCMD [\"c\"]\n",
	)
	must.Do(t, err)
	if len(all) != 2 || all[0].Base != "x:1" || all[0].Name != "one" || all[0].Last("RUN").Args != "a && b" {
		t.Fatalf("got %+v", all)
	}
	if c := all[1].Last("COPY"); c.Flag("from") != "one" || !slices.Equal(c.Operands(), []string{"/a", "/b"}) ||
		all[1].Env()["B"] != "2" ||
		all[1].Last("CMD").Words[0] != "c" {
		t.Errorf("got %+v", all[1])
	}
	ignored := deploytest.Ignore("# remark\n*\n!a\n!b/c\n")
	for path, want := range map[string]bool{"a": false, "a/x": false, "ab": true, "b": true, "b/c/d": false, "b/d": true} {
		if ignored(path) != want {
			t.Errorf("%s is ignored: %t", path, !want)
		}
	}
}

const page = "docs/guides/deployment.md"

func TestThePageNamesEveryPlaceAndVersion(t *testing.T) {
	text := read(t, page)
	build, cli, final := stages(t)
	want := []string{"GO_IMAGE=" + build.Base + "@sha256:", "NODE_IMAGE=" + cli.Base + "@sha256:"}
	for _, c := range final.Each("COPY") {
		words := c.Operands()
		want = append(want, "`"+words[len(words)-1]+"`")
	}
	s := composed(t).Services["claudeops"]
	for _, m := range s.Volumes {
		want = append(want, "| `"+m.Target+"` |")
	}
	for _, m := range s.Tmpfs {
		folder, _, _ := strings.Cut(m, ":")
		want = append(want, "`"+folder+"`")
	}
	for name := range ofImage() {
		want = append(want, "`"+name+"`")
	}
	keys := unit(t)
	program, _, _ := strings.Cut(keys["ExecStart"][0], " ")
	want = append(want, "bin/claudeops bin/claudeops-connect "+path.Dir(program)+"/\n",
		"/etc/systemd/system/claudeops.service", "deploy/secrets.sh /etc/claudeops/secrets",
		strings.TrimPrefix(keys["EnvironmentFile"][0], "-"), "CLAUDEOPS_STATE_DIR=/var/lib/"+keys["StateDirectory"][0])
	for _, part := range want {
		if !strings.Contains(text, part) {
			t.Errorf("%s does not say %q", page, part)
		}
	}
}

// makeSecrets runs deploy/secrets.sh for a folder.
func makeSecrets(t *testing.T, folder string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", filepath.Join(top, "deploy", "secrets.sh"),
		folder).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

func TestSecretsAreMadeOnceAndKept(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "a b", "secrets")
	said := makeSecrets(t, folder)
	info, err := os.Stat(folder)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("the folder is %v, %v", info, err)
	}
	first := map[string]string{}
	for _, v := range secrets() {
		file := filepath.Join(folder, secretFile(v))
		text := operationtest.ReadFile(t, file)
		mode := fs.FileMode(0o644)
		if os.Geteuid() == 0 { // then it belongs to the server's user in the container, and is read by no other
			mode = 0o400
		}
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s is %v, %v", file, info.Mode(), err)
		}
		first[file] = string(text)
		if isTokens := v.Name == "CLAUDEOPS_API_TOKENS"; isTokens != (len(text) == 64) || !isTokens && len(text) != 0 {
			t.Errorf("%s holds %d bytes", file, len(text))
		}
	}
	tokens := first[filepath.Join(folder, "claudeops_api_tokens")]
	if strings.Contains(said, tokens) {
		t.Error("the token was printed")
	}
	own := filepath.Join(folder, "github_token")
	first[own] = "an-own-token"
	must.Do(t, os.WriteFile(own, []byte(first[own]), 0o600))
	if said := makeSecrets(t, folder); said != "" {
		t.Errorf("the second run says %q", said)
	}
	for file, want := range first {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s was changed by the second run (%v)", file, err)
		}
	}
	if other := filepath.Join(t.TempDir(), "secrets"); makeSecrets(t, other) == "" {
		t.Error("another folder got no token")
	} else if got, err := os.ReadFile(filepath.Join(other, "claudeops_api_tokens")); err != nil || string(got) == tokens {
		t.Errorf("two folders have one token (%v)", err)
	}
}

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
	must.Do(t, json.Unmarshal([]byte(read(t, ".claude/mcp.json")), &mcp))
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
		"groupadd --gid 10002 " + sandbox.DefaultAccount + " ",
		"for n in $(seq " + strings.TrimPrefix(env["CLAUDEOPS_AGENT_USER"], sandbox.DefaultAccount+"+") + "); do",
		"groupadd --gid $((10010 + n)) " + sandbox.DefaultAccount + "-$n ", "install -d -m 0700 " + sandbox.ClaimFolder,
		"--uid $((10010 + n)) --gid $((10010 + n)) --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin " +
			sandbox.DefaultAccount + "-$n ", "-o 10001 -g 10001 " + env["CLAUDEOPS_STATE_DIR"] + " /git",
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
	entries, err := os.ReadDir(top)
	must.Do(t, err)
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
		must.Do(t, json.Unmarshal([]byte(read(t, name)), into))
	}
	const cli = "node_modules/@anthropic-ai/claude-code"
	var manifest struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	must.Do(t, json.Unmarshal([]byte(read(t, "deploy/claude/package.json")), &manifest))
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
