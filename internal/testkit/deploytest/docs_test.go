package deploytest_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

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
