package config_test

import (
	"strings"
	"testing"
)

func TestAForgeIsUsableOrSaysWhichVariableIsWrong(t *testing.T) {
	const token = "t0ken"
	cases := map[string]struct {
		env      map[string]string
		url      string
		problem  string // a part of it; "" for none
		ofGitHub bool
	}{
		"GitHub with a token":    {map[string]string{"GITHUB_TOKEN": token}, "https://api.github.com/", "", true},
		"GitHub without a token": {nil, "", "GITHUB_TOKEN is not set", true},
		"GitHub, a placeholder": {map[string]string{"GITHUB_TOKEN": "${GITHUB_TOKEN}"}, "", "GITHUB_TOKEN is not set",
			true},
		"GitHub Enterprise": {map[string]string{"GITHUB_TOKEN": token,
			"GITHUB_API_URL": "https://GIT.example/api/v3"}, "https://git.example/api/v3/", "", true},
		"an address with a token": {map[string]string{"GITHUB_TOKEN": token,
			"GITHUB_API_URL": "https://s3cret@git.example/"}, "", "GITHUB_API_URL carries", true},
		"Gitea with both": {map[string]string{"GITEA_TOKEN": token, "GITEA_URL": "https://git.example"},
			"https://git.example/", "", false},
		"Gitea below a path": {map[string]string{"GITEA_TOKEN": token, "GITEA_URL": "https://git.example/gitea//"},
			"https://git.example/gitea/", "", false},
		"Gitea, the address of its API": {map[string]string{"GITEA_TOKEN": token, "GITEA_URL": "https://git.example/api/v1"},
			"", "without api/v1", false},
		"Gitea without anything": {nil, "", "GITEA_URL and GITEA_TOKEN are not set", false},
		"Gitea without a token": {map[string]string{"GITEA_URL": "https://git.example"}, "", "GITEA_TOKEN is not set",
			false},
		"Gitea without an address": {map[string]string{"GITEA_TOKEN": token}, "", "GITEA_URL is not set", false},
		"Gitea, no address": {map[string]string{"GITEA_TOKEN": token, "GITEA_URL": "git.example"}, "",
			"GITEA_URL is no address", false},
		"Gitea, another scheme": {map[string]string{"GITEA_TOKEN": token, "GITEA_URL": "ssh://git.example"}, "",
			"GITEA_URL is no address", false},
		"Gitea, an address with query": {map[string]string{"GITEA_TOKEN": token,
			"GITEA_URL": "https://git.example/?s3cret=1"}, "", "GITEA_URL has a query", false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			all := load(c.env)
			got := all.Forges.All[1]
			if c.ofGitHub {
				got = all.Forges.All[0]
			}
			if c.problem != "" {
				if !strings.Contains(got.Problem, c.problem) || strings.Contains(got.Problem, "s3cret") || got.URL != nil &&
					got.Token.Text != "" {
					t.Errorf("got %+v, want the problem %q", got, c.problem)
				}
				return
			}
			if got.Problem != "" || got.URL.String() != c.url || got.Token.Text != token {
				t.Errorf("got %+v", got)
			}
		})
	}
}
