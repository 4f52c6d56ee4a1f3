package deploytest_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider/forges"
	"github.com/claudeops/claudeops/internal/settings/config"
	"github.com/claudeops/claudeops/internal/system/confine"
	"github.com/claudeops/claudeops/internal/testkit/deploytest"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func stages(t *testing.T) (build, cli, final deploytest.Stage) {
	t.Helper()
	all, err := deploytest.ParseDockerfile(read(t, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 3 || all[0].Name != "build" || all[1].Name != "cli" {
		t.Fatalf("the stages are %+v", all)
	}
	return all[0], all[1], all[2]
}

// composed is compose.yaml with nothing in .env.
func composed(t *testing.T) deploytest.Compose {
	t.Helper()
	c, err := deploytest.ParseCompose(read(t, "compose.yaml"), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ofImage are the variables that the image settles: what they name is inside of it.
func ofImage() map[string]string {
	return map[string]string{
		"CLAUDEOPS_ADDR": "0.0.0.0:8080", "CLAUDEOPS_REPOS_DIR": "/repos", "CLAUDEOPS_STATE_DIR": "/state",
		"CLAUDEOPS_CLAUDE_BIN": "/usr/local/bin/claude", "CLAUDEOPS_PROMPTS_DIR": "/app/prompts",
		"CLAUDEOPS_RUN_AS": "claudeops", "CLAUDEOPS_AGENT_USER": confine.DefaultAccount + "+16",
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
	if err != nil {
		t.Fatal(err)
	}
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
	out, err := exec.CommandContext(t.Context(), "sh", filepath.Join("..", "..", "..", "deploy", "secrets.sh"),
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
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
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
	if err := os.WriteFile(own, []byte(first[own]), 0o600); err != nil {
		t.Fatal(err)
	}
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
