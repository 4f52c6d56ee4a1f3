package gitprovider_test

import (
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
)

func TestParseRemote(t *testing.T) {
	good := map[string][2]string{
		"https://github.com/joe/infra.git":           {"github.com", "joe/infra"},
		"https://Git.Example.org:3000/joe/infra":     {"git.example.org:3000", "joe/infra"},
		"https://host/gitea/joe/infra.git/":          {"host", "gitea/joe/infra.git"},
		"ssh://git@git.example.org:2222/joe/infra":   {"git.example.org:2222", "joe/infra"},
		"git@github.com:joe/infra.git":               {"github.com", "joe/infra"},
		"github.com:joe/infra":                       {"github.com", "joe/infra"},
		"file:///srv/git/joe/infra.git":              {gitprovider.HostLocal, "/srv/git/joe/infra"},
		"http://127.0.0.1:3000/joe/infra.git":        {"127.0.0.1:3000", "joe/infra"},
		"https://github.com.evil.example/joe/infra/": {"github.com.evil.example", "joe/infra"},
	}
	good["https://host/gitea/joe/infra.git/"] = [2]string{"host", "gitea/joe/infra"}
	for raw, want := range good {
		r, err := gitprovider.ParseRemote(raw)
		if err != nil || r.Host != want[0] || r.Path != want[1] {
			t.Errorf("ParseRemote(%q) = %+v, %v; want %v", raw, r, err, want)
		}
	}
	for _, bad := range []string{
		"https://joe:hunter2@github.com/joe/infra", "https://ghp_token@github.com/joe/infra", "ext::sh -c id",
		"-oProxyCommand=x:y",
		"https:///joe/infra", "file://otherhost/srv/x", "ftp://host/x", "just-a-name", "https://host/x?token=1",
		"https://host/x#f",
		"://", "/abs/path", "ext::x", "https://[::1", "git@:x", "javascript://x/y",
	} {
		if r, err := gitprovider.ParseRemote(bad); err == nil {
			t.Errorf("ParseRemote(%q) accepted %+v", bad, r)
		} else if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "ghp_") {
			t.Errorf("the error repeats a credential: %v", err)
		}
	}
}

func TestNewRepoRef(t *testing.T) {
	cases := []struct {
		name, owner, repo, url string
		problems               []string
	}{
		{"plain", "joe", "infra", "", nil},
		{"with a URL that names it", "joe", "infra", "https://github.com/Joe/Infra.git", nil},
		{"below a subpath", "joe", "infra", "https://host/gitea/joe/infra.git", nil},
		{"a URL that names another repository", "joe", "infra", "https://github.com/joe/other.git", []string{"clone_url"}},
		{"a URL whose path only ends alike", "joe", "infra", "https://github.com/xjoe/infra", []string{"clone_url"}},
		{"a URL with a token", "joe", "infra", "https://x@github.com/joe/infra", []string{"clone_url"}},
		{"nothing", "", "", "", []string{"repo_name", "repo_owner"}},
		{"a traversal", "..", "infra", "", []string{"repo_owner"}},
		{"a slash", "joe/x", "infra", "", []string{"repo_owner"}},
		{"a .git ending", "joe", "infra.git", "", []string{"repo_name"}},
		{"an option", "joe", "-rf", "", []string{"repo_name"}},
		{"a hidden name", "joe", ".git", "", []string{"repo_name"}},
		{"control characters", "joe\n", "infra", "", []string{"repo_owner"}},
		{"too long", strings.Repeat("a", 101), "infra", "", []string{"repo_owner"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, problems := gitprovider.NewRepoRef(c.owner, c.repo, c.url)
			if len(problems) != len(c.problems) {
				t.Fatalf("problems %v, want %v", problems, c.problems)
			}
			for _, argument := range c.problems {
				if problems[argument] == nil {
					t.Errorf("no problem with %s in %v", argument, problems)
				}
			}
		})
	}
}
