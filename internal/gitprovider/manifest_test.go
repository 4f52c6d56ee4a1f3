package gitprovider_test

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

func TestParseManifest(t *testing.T) {
	full := gitprovider.Manifest{
		Provider: "gitea", Remote: "https://git.example.org/joe/infra.git", Owner: "joe", Repo: "infra", BaseBranch: "main",
	}
	cases := map[string]struct {
		text string
		want gitprovider.Manifest
	}{
		"list items": {"# X\n\n## Git Provider\n\n- provider: gitea\n- remote: https://git.example.org/joe/infra.git\n" +
			"- owner: joe\n- repo: infra\n- base_branch: main\n\n## Other\n\n- provider: github\n", full},
		"bold keys, code values, CRLF": {"## Git Provider\r\n\r\n* **provider**: `gitea`\r\n* **remote:** " +
			"`https://git.example.org/joe/infra.git`\r\n" +
			"* owner: joe\r\n* repo: infra\r\n* base_branch: main\r\n", full},
		"plain lines with prose": {"## Git Provider\n\nThis is where we live: a small forge.\nprovider: local\n",
			gitprovider.Manifest{Provider: "local"}},
		"a fenced block": {"## Git Provider\n```\nprovider: local\n```\n",
			gitprovider.Manifest{Provider: "local"}},
		"no section":    {"# Only prose\n\n- provider: github\n", gitprovider.Manifest{}},
		"an empty file": {"", gitprovider.Manifest{}},
		"a deeper heading is inside": {"## Git Provider\n- owner: joe\n### More\n- repo: x\n",
			gitprovider.Manifest{Owner: "joe"}},
		"another case of heading": {"## git provider ##\n- owner: joe\n", gitprovider.Manifest{Owner: "joe"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := gitprovider.ParseManifest(c.text)
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestParseManifestNamesTheLineThatIsWrong(t *testing.T) {
	cases := map[string]struct{ text, says string }{
		"an unknown key":    {"## Git Provider\n- provider: x\n- base-branch: main\n", ":3: unknown key"},
		"a key given twice": {"## Git Provider\n- owner: a\n- owner: b\n", ":3: owner was given on line 2"},
		"an empty value":    {"## Git Provider\n- owner:\n", ":2: owner has no value"},
		"a second section":  {"## Git Provider\n- owner: a\n## Git Provider\n", ":3: a second section"},
		"a huge file":       {strings.Repeat("x", 1<<20+1), "larger than"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := gitprovider.ParseManifest(c.text)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %+v, %v; want an error that says %q", got, err, c.says)
			}
		})
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add("## Git Provider\n\n- provider: gitea\n- owner: joe\n- repo: `infra`\n- base_branch: main\n")
	f.Add("## Git Provider\n```\nprovider: local\n```\n## Git Provider\n")
	f.Add("##\tGit Provider #\n*\towner:**\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := gitprovider.ParseManifest(text)
		if err != nil {
			return
		}
		for _, v := range []string{m.Provider, m.Remote, m.Owner, m.Repo, m.BaseBranch} {
			if strings.ContainsAny(v, "\n`") || v != strings.TrimSpace(v) {
				return // such values cannot be written back in one line; the registry and the gates refuse them
			}
		}
		again, err := gitprovider.ParseManifest(m.String())
		if err != nil || again != m {
			t.Fatalf("%+v does not survive being written and read: %+v, %v", m, again, err)
		}
	})
}
