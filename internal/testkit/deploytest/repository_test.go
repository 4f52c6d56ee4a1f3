package deploytest_test

import (
	"os"
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
	return slices.DeleteFunc(config.Variables(forges.All()), func(v config.Variable) bool { return !v.Secret })
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
		"ARG B=x:1\nFROM ${B} AS one\nRUN a \\\n  # remark\n  && b\nFROM y\nCOPY --from=one /a /b\nENV A=1 \\\n B=2\nCMD [\"c\"]\n")
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
