package fakegitea

import (
	"net/http"
	"strings"
	"testing"
)

const (
	get, post, patch = http.MethodGet, http.MethodPost, http.MethodPatch
	put, del         = http.MethodPut, http.MethodDelete
)

func TestWhoMayDoWhat(t *testing.T) {
	commit := commitBody("claude-ops/x", "x.md")
	for name, tc := range map[string]struct {
		set                func(*Settings)
		token              string
		method, path, body string
		status             int
		text               string
	}{
		"a wrong token is refused on a public repository": {
			token: "wrong", method: get, path: "branches", status: 401, text: "user does not exist [uid: 0, name: ]"},
		"without a token a public repository is read": {
			token: "none", method: get, path: "branches", status: 200, text: `"user_can_push":false`},
		"without a token nothing is written": {
			token: "none", method: post, path: "contents", body: commit, status: 401, text: "token is required"},
		"without a token a private repository does not exist": {
			set: private, token: "none", method: get, path: "branches", status: 404, text: `"message":"not found"`},
		"another user does not see a private repository either": {
			set: private, token: "token-of-ann", method: get, path: "branches", status: 404, text: `"errors":null`},
		"the owner reads a private repository": {
			set: private, method: get, path: "branches", status: 200, text: `"name":"main"`},
		"a collaborator writes": {
			set:   func(s *Settings) { s.Collaborators = map[string]string{"ann": "write"} },
			token: "token-of-ann", method: post, path: "contents", body: commit, status: 201, text: `"name":"ann"`},
		"a reading token commits nothing": {
			set: readOnly, method: post, path: "contents", body: commit, status: 403,
			text: "user should have a permission to write to the target branch"},
		"a reading token opens nothing": {
			set: readOnly, method: post, path: "pulls", body: pullBody("old"), status: 403, text: "user must be a collaborator"},
		"a reading token deletes nothing": {
			set: readOnly, method: del, path: "branches/old", status: 403,
			text: "user should have a permission to write to a repo"},
		"a reading token labels nothing": {
			set: readOnly, method: post, path: "issues/1/labels", body: `{"labels":["claude-ops"]}`, status: 403,
			text: "write permission is required"},
		"a reading token defines no label": {
			set: readOnly, method: post, path: "labels", body: `{"name":"x","color":"#123456"}`, status: 403,
			text: "user should have a permission to write to a repo"},
		"a reading token closes nothing, and no reason is given": {
			set: readOnly, method: patch, path: "pulls/1", body: `{"state":"closed"}`, status: 403, text: ""},
		"a reading token shows in the permissions": {
			set: readOnly, method: get, path: "", status: 200, text: `"permissions":{"admin":false,"push":false,"pull":true}`},
		"a protected pattern refuses a new branch": {
			set:    func(s *Settings) { s.Protection.ProtectedPatterns = []string{"claude-ops/**"} },
			method: post, path: "contents", body: commit, status: 403,
			text: "Not allowed to push to protected branch claude-ops/x"},
		"a star does not reach into the next segment": {
			set:    func(s *Settings) { s.Protection.ProtectedPatterns = []string{"claude*"} },
			method: post, path: "contents", body: commit, status: 201, text: `"commit"`},
		"an archived repository takes no commit": {
			set: archived, method: post, path: "contents", body: commit, status: 423, text: "is not allowed to edit"},
		"an archived repository takes a label": {
			set: archived, method: post, path: "issues/1/labels", body: `{"labels":["claude-ops"]}`, status: 200,
			text: "claude-ops"},
		"an archived repository shows it": {
			set: archived, method: get, path: "", status: 200, text: `"archived":true`},
		"a fork shows it": {
			set: func(s *Settings) { s.Fork = true }, method: get, path: "", status: 200, text: `"fork":true`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.propose("old")
			b.s.TokenOf("ann")
			if tc.set != nil {
				b.s.Configure(b.ref, tc.set)
			}
			switch tc.token {
			case "":
			case "none":
				b.token = ""
			default:
				b.token = tc.token
			}
			got := b.want(tc.status, tc.text, tc.method, tc.path, tc.body)
			if strings.Contains(name, "closes") && got.raw != "" {
				t.Errorf("got %q, want no body", got.raw)
			}
		})
	}
}

func private(s *Settings)  { s.Private = true }
func readOnly(s *Settings) { s.ReadOnly = true }
func archived(s *Settings) { s.Archived = true }

func TestATokenLacksScopes(t *testing.T) {
	for name, tc := range map[string]struct {
		scopes             string
		method, path, body string
		status             int
		need               string
	}{
		"reading a repository":             {"read:repository", get, "", "", 200, ""},
		"writing with a reading scope":     {"read:repository", post, "contents", "{}", 403, "write:repository"},
		"reading with a writing scope":     {"write:repository", get, "pulls", "", 200, ""},
		"labels are issues":                {"write:repository", get, "labels", "", 403, "read:issue"},
		"labelling is writing to an issue": {"write:repository read:issue", put, "issues/1/labels", `{}`, 403, "write:issue"},
		"oneself is another scope":         {"write:repository", get, "/user", "", 403, "read:user"},
		"reading many files takes writing": {"read:repository", post, "file-contents", `{"files":[]}`, 403,
			"write:repository"},
		"or a query": {"read:repository", get, "file-contents?body=%7B%7D", "", 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.propose("old")
			scopes := strings.Fields(tc.scopes)
			b.s.SetScopes(scopes...)
			text := ""
			if tc.need != "" {
				text = "token does not have at least one of required scope(s), required=[" + tc.need + "], token scope=" +
					strings.Join(scopes, ",")
			}
			b.want(tc.status, text, tc.method, tc.path, tc.body)
			b.s.SetScopes()
			if got := b.do(tc.method, tc.path, tc.body); got.status == http.StatusForbidden {
				t.Errorf("with all scopes: %s", got.raw)
			}
		})
	}
}

func TestARenamedRepositoryRedirectsReadsAndWrites(t *testing.T) {
	for name, root := range map[string]string{"at the root": "", "below a path": "/gitea"} {
		t.Run(name, func(t *testing.T) {
			b := benchAt(t, root)
			b.s.Configure(b.ref, func(s *Settings) { s.RenamedFrom = "former" })
			now := b.ref
			b.ref.Name = "former"
			for _, tc := range [][4]string{
				{get, "pulls?state=open", "", "/pulls?state=open"}, {post, "contents", commitBody("x", "x.md"), "/contents"},
			} {
				got := b.want(http.StatusMovedPermanently, "", tc[0], tc[1], tc[2])
				if want := root + "/api/v1/repos/" + now.String() + tc[3]; got.header.Get("Location") != want {
					t.Errorf("%s: Location %q, want %q", tc[0], got.header.Get("Location"), want)
				}
			}
			b.ref = now
			if got := b.do(get, "branches", ""); strings.Contains(got.raw, `"name":"x"`) {
				t.Error("the redirected write was done")
			}
		})
	}
}
