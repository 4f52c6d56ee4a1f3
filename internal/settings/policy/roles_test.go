package policy

import (
	"strings"
	"testing"
)

func TestRolesAreGivenByUserSubjectAndGroupOfOneProvider(t *testing.T) {
	p, err := Parse("policy.yaml", []byte(`version: 1
roles:
  viewer:
    - {provider: gitea, group: acme}
  reviewer:
    - {provider: gitea, group: "acme:reviewers"}
    - {provider: github, group: acme/sre}
  operator:
    - {provider: gitea, user: ann}
    - {provider: company, subject: "77"}
review: {four_eyes: true}
`))
	if err != nil || !p.People.FourEyes {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		who  Known
		want Role
	}{
		"a member": {Known{Provider: "gitea", User: "joe", Groups: []string{"acme"}}, RoleViewer},
		"a member of a team": {Known{Provider: "gitea", User: "joe",
			Groups: []string{"acme", "acme:reviewers"}}, RoleReviewer},
		"the highest of several":            {Known{Provider: "gitea", User: "ann", Groups: []string{"acme"}}, RoleOperator},
		"by subject":                        {Known{Provider: "company", Subject: "77"}, RoleOperator},
		"the same name at another provider": {Known{Provider: "github", User: "ann"}, ""},
		"a team of GitHub": {Known{Provider: "github", User: "x", Groups: []string{"acme/sre"}},
			RoleReviewer},
		"in other letters":      {Known{Provider: "gitea", User: "Ann"}, ""},
		"a name like a subject": {Known{Provider: "company", User: "77"}, ""},
		"a group like a user":   {Known{Provider: "gitea", Groups: []string{"ann"}}, ""},
		"nobody":                {Known{Provider: "gitea"}, ""},
		"nobody at all":         {Known{}, ""},
	} {
		if got := p.People.RoleOf(c.who); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if Default().People.RoleOf(Known{Provider: "gitea", User: "ann"}) != "" || Default().Hash() == p.Hash() {
		t.Error("the default gives a role, or roles are not in the hash")
	}
}

func TestRolesThatSayTooLittleOrTooMuchAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"roles: {operator: [{user: ann}]}":                                "provider",
		"roles: {operator: [{provider: gitea}]}":                          "exactly one",
		"roles: {operator: [{provider: gitea, user: ann, group: x}]}":     "exactly one",
		"roles: {operator: [{provider: gitea, user: ' ann'}]}":            "spaces",
		"roles: {admin: [{provider: gitea, user: ann}]}":                  "admin",
		"roles: {operator: [{provider: gitea, user: ann, role: viewer}]}": "role",
		"review: {four_eyes: perhaps}":                                    "wrong type",
	} {
		if _, err := Parse("policy.yaml", []byte("version: 1\n"+text+"\n")); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
