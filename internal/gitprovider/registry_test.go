package gitprovider_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// named is a provider that has only a name; any other call would panic, which is the point: resolving calls nothing.
type named struct {
	gitprovider.Provider
	name string
}

func (n named) Name() string { return n.name }

type manifests map[string]gitprovider.Manifest

func (m manifests) Find(owner, name string) (gitprovider.Manifest, bool, error) {
	if owner == "broken" {
		return gitprovider.Manifest{}, false, errors.New("CLAUDE-OPS.md:3: unknown key")
	}
	found, ok := m[owner+"/"+name]
	return found, ok, nil
}

func TestResolve(t *testing.T) {
	github := gitprovider.Registration{Name: "github", Provider: named{name: "github"}, Hosts: []string{"github.com"}}
	gitea := gitprovider.Registration{Name: "gitea", Provider: named{name: "gitea"},
		Hosts: []string{"git.example.org:3000"}}
	off := gitprovider.Registration{Name: "local", Hosts: []string{gitprovider.HostLocal},
		Disabled: "CLAUDEOPS_LOCAL_ROOT is not set"}
	all := []gitprovider.Registration{github, gitea, off}
	mounted := manifests{
		"joe/mounted": {Provider: "gitea", BaseBranch: "trunk"},
		"joe/remote":  {Remote: "https://git.example.org:3000/joe/remote"},
		"joe/odd":     {Provider: "sourcehut"}, "joe/kept": {Provider: "github", BaseBranch: "elsewhere"},
	}
	pins := []gitprovider.Pin{
		{Provider: "gitea", Owner: "joe", Name: "pinned"}, {Provider: "github", Owner: "joe", Name: "kept"},
		{Provider: "gitea", Owner: "Joe", Name: "Kept", Policy: true}, {Owner: "joe", Name: "mounted", BaseBranch: "main",
			Policy: true},
		{Provider: "local", Owner: "joe", Name: "shut", Policy: true}, {Provider: "sourcehut", Owner: "joe", Name: "typo",
			Policy: true},
	}
	cases := []struct {
		name      string
		entries   []gitprovider.Registration
		fallback  string
		repo, url string
		want      string // provider, or the refusal's code
		says      string
	}{
		{"the host of the clone URL", all, "", "x", "https://github.com/joe/x.git", "github", "clone_url"},
		{"a host with its port", all, "", "x", "ssh://git@git.example.org:3000/joe/x", "gitea", "clone_url"},
		{"a host without the port is another host", all, "", "x", "https://git.example.org/joe/x", "provider_unresolved",
			"Possible as clone_url: https://github.com/joe/x (github), https://git.example.org:3000/joe/x (gitea)"},
		{"a look-alike host", all, "", "x", "https://github.com.evil.example/joe/x", "provider_unresolved",
			"github.com (github)"},
		{"a subdomain", all, "", "x", "https://api.github.com/joe/x", "provider_unresolved", "exactly"},
		{"a provider that is disabled", all, "", "x", "file:///srv/joe/x", "provider_disabled",
			"CLAUDEOPS_LOCAL_ROOT is not set"},
		{"the manifest first", all, "github", "mounted", "", "gitea", "CLAUDE-OPS.md"},
		{"the manifest against the clone URL", all, "", "mounted", "https://github.com/joe/mounted", "provider_unresolved",
			"https://git.example.org:3000/joe/mounted"},
		{"the manifest with the clone URL", all, "", "mounted", "https://git.example.org:3000/joe/mounted", "gitea",
			"CLAUDE-OPS.md"},
		{"the manifest's remote", all, "", "remote", "", "gitea", "remote"},
		{"a manifest with an unknown provider", all, "", "odd", "", "provider_unresolved", "does not exist"},
		{"a pin before the default", all, "github", "pinned", "", "gitea", "CLAUDEOPS_REPOS"},
		{"the policy before the manifest", all, "github", "kept", "", "gitea", "policy"},
		{"the policy against the clone URL", all, "", "kept", "https://github.com/joe/kept", "provider_unresolved", "policy"},
		{"the policy with the clone URL", all, "", "kept", "https://git.example.org:3000/joe/kept", "gitea", "policy"},
		{"the policy that pins a base alone", all, "github", "mounted", "", "gitea", "CLAUDE-OPS.md"},
		{"the policy with a provider that is disabled", all, "github", "shut", "", "provider_disabled",
			"CLAUDEOPS_LOCAL_ROOT"},
		{"the policy with an unknown provider", all, "github", "typo", "", "provider_unresolved", "does not exist"},
		{"the default provider", all, "github", "x", "", "github", "CLAUDEOPS_DEFAULT_PROVIDER"},
		{"a default provider that is disabled", all, "local", "x", "", "provider_disabled", "CLAUDEOPS_LOCAL_ROOT"},
		{"two enabled and nothing said", all, "", "x", "", "provider_unresolved",
			"give clone_url: https://github.com/joe/x (github), https://git.example.org:3000/joe/x (gitea); or"},
		{"the only enabled one", []gitprovider.Registration{github, off}, "", "x", "", "github", "only"},
		{"none enabled", []gitprovider.Registration{off}, "", "x", "", "provider_disabled", "CLAUDEOPS_LOCAL_ROOT"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ref, problems := gitprovider.NewRepoRef("joe", c.repo, c.url)
			if problems != nil {
				t.Fatal(problems)
			}
			res, err := gitprovider.NewRegistry(c.entries, pins, c.fallback, mounted).Resolve(ref)
			got, text := string(fault.CodeOf(err)), res.Via
			if err == nil {
				got = res.Provider.Name()
			} else {
				text = err.Error()
			}
			if got != c.want || !strings.Contains(text, c.says) {
				t.Errorf("got %s (%s), want %s and %q", got, text, c.want, c.says)
			}
		})
	}
}

func TestAManifestAddsTheBaseBranchAndABrokenOneStopsTheRequest(t *testing.T) {
	entries := []gitprovider.Registration{{Name: "gitea", Provider: named{name: "gitea"}}}
	registry := gitprovider.NewRegistry(entries, nil, "", manifests{"joe/x": {BaseBranch: "trunk"}})
	res, err := registry.Resolve(gitprovider.RepoRef{Owner: "joe", Name: "x"})
	if err != nil || res.BaseBranch != "trunk" {
		t.Errorf("got %+v, %v", res, err)
	}
	pins := []gitprovider.Pin{
		{Owner: "joe", Name: "x", BaseBranch: "main", Policy: true},
		{Provider: "gitea", Owner: "broken", Name: "x", BaseBranch: "main", Policy: true},
	}
	pinned := gitprovider.NewRegistry(entries, pins, "", manifests{"joe/x": {BaseBranch: "trunk"}})
	for _, owner := range []string{"joe", "JOE", "broken"} { // the manifest is not asked for what the policy settles
		for _, resolve := range []func(gitprovider.RepoRef) (gitprovider.Resolution, error){
			pinned.Resolve, func(ref gitprovider.RepoRef) (gitprovider.Resolution,
				error) {
				return pinned.ResolveAt("gitea", ref)
			},
		} {
			if res, err := resolve(gitprovider.RepoRef{Owner: owner, Name: "x"}); owner != "JOE" &&
				(err != nil || res.BaseBranch != "main") {
				t.Errorf("%s: got %+v, %v", owner, res, err)
			}
		}
	}
	_, err = registry.Resolve(gitprovider.RepoRef{Owner: "broken", Name: "x"})
	if fault.CodeOf(err) != fault.ProviderUnresolved || !strings.Contains(err.Error(), ":3:") {
		t.Errorf("a broken manifest gave %v", err)
	}
}

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
