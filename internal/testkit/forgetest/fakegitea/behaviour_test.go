package fakegitea

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/httpfault"
	"github.com/claudeops/claudeops/internal/testkit/forgetest/memhost"
)

func TestAnUpdateKeepsTheExecutableBit(t *testing.T) {
	b := newBench(t)
	b.want(201, `"files"`, post, "contents",
		`{"branch":"main","new_branch":"x","files":[{"operation":"update","path":"run.sh","content":"eQo="}]}`)
	b.want(200, `{"path":"run.sh","mode":"100755"`, get, "git/trees/x", "")
}

func TestABaseThatMovesMeanwhileIsNotNoticed(t *testing.T) {
	b := newBench(t)
	world := b.s.Host().World(t, b.ref, nil)
	before := world.Branches()["main"]
	b.s.Configure(b.ref, func(s *Settings) {
		s.Delays.BeforeRefUpdate = func() { world.Push("main", memhost.File{Path: "new.md", Content: "n\n"}) }
	})
	b.want(201, `"parents":[{"url":"`+b.s.URL()+`/api/v1/repos/`+b.ref.String()+`/git/commits/`+before, post, "contents",
		commitBody("x", "x.md"))
	b.want(201, "", post, "contents", commitBody("y", "y.md")) // the hook ran once
	if got := world.Parents(world.Branches()["y"]); !slices.Equal(got, []string{world.Branches()["main"]}) {
		t.Errorf("the second commit is on %v, want the new base", got)
	}
}

func TestOneOfManySendersMakesABranch(t *testing.T) {
	b := newBench(t)
	var wg sync.WaitGroup
	answers := make([]said, 12)
	failures := make([]error, len(answers))
	for i := range answers {
		wg.Go(func() { answers[i], failures[i] = b.try(post, "contents", commitBody("x", fmt.Sprintf("f%d.md", i))) })
	}
	wg.Wait()
	made := 0
	for i, got := range answers {
		switch {
		case failures[i] != nil:
			t.Error(failures[i])
		case got.status == http.StatusCreated:
			made++
		case got.status == 403 && strings.Contains(got.raw, "cannot lock ref 'refs/heads/x': reference already exists"):
		case got.status == 422 && strings.Contains(got.raw, "branch already exists [name: x]"):
		default:
			t.Errorf("got %d %s", got.status, got.raw)
		}
	}
	if made != 1 {
		t.Errorf("%d of %d made the branch", made, len(answers))
	}
}

func TestLaxParallelCreationsOverlookEachOther(t *testing.T) {
	b := newBench(t)
	b.propose("x")
	b.s.Configure(b.ref, func(s *Settings) { s.Delays.LaxParallel = 2 })
	for i, want := range []int{201, 201, 409} {
		if got := b.do(post, "pulls", pullBody("x")); got.status != want {
			t.Errorf("creation %d: got %d %s, want %d", i+1, got.status, got.raw, want)
		}
	}
	if open := into[[]pullJSON](b, b.do(get, "pulls", "")); len(open) != 3 {
		t.Errorf("%d are open, want 3", len(open))
	}
}

func TestMergeableIsStaleThenWrongThenTrue(t *testing.T) {
	b := newBench(t)
	b.s.Configure(b.ref, func(s *Settings) { s.Delays.MergeableReads = MergeableReads{Stale: 2, Checking: 1} })
	fits, conflicts := b.propose("fits").Number, b.propose("conflicts").Number
	b.s.Host().World(t, b.ref, nil).Push("main", memhost.File{Path: "conflicts.md", Content: "other\n"})
	for number, want := range map[int][]bool{fits: {true, true, false, true, true},
		conflicts: {true, true, false, false}} {
		for i, mergeable := range want {
			list := into[[]pullJSON](b, b.do(get, "pulls?sort=oldest", "")) // does not count as a read
			one := into[pullJSON](b, b.do(get, fmt.Sprintf("pulls/%d", number), ""))
			if one.Mergeable != mergeable || list[number-1].Mergeable != mergeable {
				t.Errorf("#%d, read %d: %v, in the list %v; want %v", number, i+1, one.Mergeable, list[number-1].Mergeable,
					mergeable)
			}
		}
	}
}

func TestPeopleAreSeenThroughTheAPI(t *testing.T) {
	b := newBench(t)
	world := b.s.Host().World(t, b.ref, nil)
	world.Push("feature", memhost.File{Path: "f.md", Content: "f\n"})
	number := world.OpenPR("feature", "By a person", gitprovider.LabelOurs, "bug")
	world.Review(number, "ann", gitprovider.ReviewChangesRequested, "No.")
	world.Review(number, "ann", gitprovider.ReviewApproved, "Yes.")
	one := into[pullJSON](b, b.do(get, "pulls/1", ""))
	if len(one.Labels) != 2 || one.Labels[0].Name != "bug" || one.Labels[1].Name != gitprovider.LabelOurs ||
		one.Head.SHA != world.Branches()["feature"] || *one.ChangedFiles != 1 {
		t.Errorf("got %+v", one)
	}
	reviews := into[[]reviewJSON](b, b.do(get, "pulls/1/reviews", ""))
	if len(reviews) != 2 || !reviews[0].Dismissed || reviews[1].Dismissed || reviews[1].User.Login != "ann" {
		t.Errorf("got %+v, want the first dismissed by the second", reviews)
	}
	world.Merge(number)
	b.want(200, `"state":"closed"`, get, "pulls/1", "")
	b.want(200, `"merged":true`, get, "pulls/1", "")
	world.DeleteBranch("feature")
	b.want(200, `"label":"feature","ref":"refs/pull/1/head"`, get, "pulls/1", "")
}

func TestATagWinsOverABranchInTreesOnly(t *testing.T) {
	b := newBench(t)
	world := b.s.Host().World(t, b.ref, nil)
	main := world.Branches()["main"]
	tip := world.Push("v1", memhost.File{Path: "v.md", Content: "v\n"})
	b.s.Configure(b.ref, func(s *Settings) { s.Tags = map[string]string{"v1": main} })
	b.want(200, `"sha":"`+main, get, "git/trees/v1", "")
	b.want(200, `"sha":"`+tip, get, "git/trees/refs%2Fheads%2Fv1", "")
	b.want(200, `"sha":"`+tip, get, "commits/v1/status", "")
	b.want(200, `"ref":"refs/tags/v1"`, get, "git/refs/tags", "")
}

func TestFileContentsAreCutAfterOnePage(t *testing.T) {
	b := newBench(t)
	body := `{"files":["none.md"` + strings.Repeat(`,"README.md"`, 40) + `]}`
	list := into[[]*contentJSON](b, b.want(200, "", post, "file-contents", body))
	if len(list) != defaultLimit || list[0] != nil || list[1] == nil || *list[1].Content != encode("# Home\n") {
		t.Errorf("got %d entries, the first %v", len(list), list[0])
	}
	b.s.Configure(b.ref, func(s *Settings) { s.Features.NoFileContents = true })
	got := b.want(404, "404 page not found\n", post, "file-contents", body)
	if kind := got.header.Get("Content-Type"); !strings.HasPrefix(kind, "text/plain") {
		t.Errorf("an older server answers %s, want text", kind)
	}
}

func TestPagesLinkBelowTheInstallation(t *testing.T) {
	b := benchAt(t, "/gitea")
	for i := range 3 {
		b.propose(fmt.Sprintf("x%d", i))
	}
	got := b.want(200, "", get, "pulls?limit=2&page=1", "")
	want := `<` + b.s.URL() + `/api/v1/repos/` + b.ref.String() + `/pulls?limit=2&page=2>; rel="next"`
	if !strings.HasPrefix(got.header.Get("Link"), want) || !strings.Contains(b.s.URL(), "/gitea") {
		t.Errorf("Link %q, want it to begin with %q", got.header.Get("Link"), want)
	}
	for name := range got.header {
		if strings.Contains(strings.ToLower(name), "ratelimit") || name == "Etag" {
			t.Errorf("the header %s is there; the real server has none", name)
		}
	}
}

func TestAWriteWhoseAnswerIsLostWasDone(t *testing.T) {
	b := newBench(t)
	b.s.Faults().PlanNth(1, httpfault.Fault{Kind: httpfault.ResetAfter})
	if got, err := b.try(post, "contents", commitBody("x", "x.md")); err == nil {
		t.Fatalf("got %d %s, want a lost answer", got.status, got.raw)
	}
	b.want(200, `"name":"x"`, get, "branches/x", "")
	if seen := b.s.Faults().Requests(); len(seen) != 2 || seen[0].Status != 0 || seen[1].Status != 200 {
		t.Errorf("got %+v, want two requests, the first without an answer", seen)
	}
}

func TestStatusesAreCombinedByPage(t *testing.T) {
	b := newBench(t)
	tip := b.s.Host().World(t, b.ref, nil).Branches()["main"]
	b.s.Configure(b.ref, func(s *Settings) {
		list := []Status{{State: "failure", Context: "first"}}
		for i := range defaultLimit {
			list = append(list, Status{State: "success", Context: fmt.Sprintf("c%d", i)})
		}
		s.Statuses = map[string][]Status{tip: list}
	})
	got := b.want(200, `"state":"success"`, get, "commits/"+tip+"/status", "")
	if got.header.Get("X-Total-Count") != "31" {
		t.Errorf("X-Total-Count %s, want 31", got.header.Get("X-Total-Count"))
	}
	b.want(200, `"state":"failure"`, get, "commits/"+tip+"/status?page=2", "")
}

func TestLabellingTakesIDsOrNames(t *testing.T) {
	for name, tc := range map[string]struct {
		method, body string
		status       int
		want         []string
	}{
		"names": {post, `{"labels":["claude-ops","automated"]}`, 200,
			[]string{"automated", "claude-ops"}},
		"ids":                               {post, `{"labels":[2]}`, 200, []string{"automated"}},
		"what is there already stays":       {post, `{"labels":[]}`, 200, nil},
		"unknown names are dropped":         {post, `{"labels":["nope","automated"]}`, 200, []string{"automated"}},
		"unknown ids are dropped":           {post, `{"labels":[4711]}`, 200, nil},
		"letter case counts":                {post, `{"labels":["AUTOMATED"]}`, 200, nil},
		"a name stands for all of its kind": {post, `{"labels":["twice"]}`, 200, []string{"twice", "twice"}},
		"a mixture is refused":              {post, `{"labels":["automated",2]}`, 400, nil},
		"replacing":                         {put, `{"labels":["automated"]}`, 200, []string{"automated"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.s.Configure(b.ref, func(s *Settings) { s.Labels = append(s.Labels, Label{Name: "twice"}, Label{Name: "twice"}) })
			b.propose("x")
			if tc.method == put {
				b.want(200, "claude-ops", post, "issues/1/labels", `{"labels":["claude-ops"]}`)
			}
			b.want(tc.status, "", tc.method, "issues/1/labels", tc.body)
			var got []string
			for _, label := range into[[]labelJSON](b, b.do(get, "issues/1/labels", "")) {
				got = append(got, label.Name)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestPagesAreThirtyByDefaultAndFiftyAtMost(t *testing.T) {
	b := newBench(t)
	b.propose("x")
	b.s.Configure(b.ref, func(s *Settings) { s.Delays.LaxParallel = 60 })
	for range 59 {
		b.want(201, "", post, "pulls", pullBody("x"))
	}
	for path, want := range map[string]int{
		"pulls": 30, "pulls?limit=1000": 50, "pulls?limit=0": 30, "pulls?page=2": 30, "pulls?page=2&limit=50": 10,
		"pulls?page=3": 0, "pulls?limit=7&page=2": 7,
	} {
		got := b.do(get, path, "")
		if list := into[[]pullJSON](b, got); len(list) != want || got.header.Get("X-Total-Count") != "60" {
			t.Errorf("%s: %d of %s, want %d of 60", path, len(list), got.header.Get("X-Total-Count"), want)
		}
		if want == 0 && strings.Contains(got.header.Get("Link"), `rel="next"`) {
			t.Errorf("%s: there is a next page after the last: %s", path, got.header.Get("Link"))
		}
	}
	for i := range 60 {
		b.s.Configure(b.ref, func(s *Settings) { s.Labels = append(s.Labels, Label{Name: fmt.Sprintf("l%d", i)}) })
	}
	for query, want := range map[string]int{"limit=3": 62, "page=1": 30, "page=1&limit=1000": 50, "page=2&limit=3": 3} {
		if list := into[[]labelJSON](b, b.do(get, "labels?"+query, "")); len(list) != want {
			t.Errorf("labels?%s: %d labels, want %d", query, len(list), want)
		}
	}
}

// bench is a server with one repository, and somebody who sends requests about it.
type bench struct {
	t     *testing.T
	s     *Server
	ref   gitprovider.RepoRef
	token string
}

func newBench(t *testing.T, files ...memhost.File) *bench {
	t.Helper()
	return benchAt(t, "", files...)
}

func benchAt(t *testing.T, root string, files ...memhost.File) *bench {
	t.Helper()
	s := NewAt(t, root)
	if len(files) == 0 {
		files = []memhost.File{{Path: "README.md", Content: "# Home\n"}, {Path: "run.sh", Content: "x\n", Executable: true}}
	}
	return &bench{t: t, s: s, ref: s.AddRepo(files...), token: s.Token()}
}

// said is an answer.
type said struct {
	status int
	header http.Header
	raw    string
}

// do sends a request to a path below the repository, or below the API if it begins with a slash.
func (b *bench) do(method, path, body string) said {
	b.t.Helper()
	got, err := b.try(method, path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	return got
}

func (b *bench) try(method, path, body string) (said, error) {
	address := b.s.URL() + "/api/v1"
	if !strings.HasPrefix(path, "/") {
		address += "/repos/" + b.ref.String() + "/"
	}
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(b.t.Context(), method, address+path, content)
	if err != nil {
		return said{}, err
	}
	if b.token != "" {
		req.Header.Set("Authorization", "token "+b.token)
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return said{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	return said{status: resp.StatusCode, header: resp.Header, raw: string(raw)}, err
}

// want sends a request that must be answered with a status and a text.
func (b *bench) want(status int, text, method, path, body string) said {
	b.t.Helper()
	got := b.do(method, path, body)
	if got.status != status || !strings.Contains(got.raw, text) {
		b.t.Fatalf("%s %s: got %d %s, want %d with %q", method, path, got.status, got.raw, status, text)
	}
	return got
}

// into decodes an answer.
func into[T any](b *bench, got said) (out T) {
	b.t.Helper()
	if err := json.Unmarshal([]byte(got.raw), &out); err != nil {
		b.t.Fatalf("%v in %s", err, got.raw)
	}
	return out
}

// commitBody is a POST contents that creates one file on a new branch.
func commitBody(branch, path string) string {
	return fmt.Sprintf(
		`{"branch":"main","new_branch":%q,"message":"m","files":[{"operation":"create","path":%q,"content":%q}]}`,
		branch, path, base64.StdEncoding.EncodeToString([]byte("x\n")))
}

// propose makes a branch with one new file and opens a pull request for it.
func (b *bench) propose(branch string) pullJSON {
	b.t.Helper()
	b.want(http.StatusCreated, "", http.MethodPost, "contents", commitBody(branch, branch+".md"))
	return into[pullJSON](b, b.want(http.StatusCreated, "", http.MethodPost, "pulls", pullBody(branch)))
}

func pullBody(branch string) string {
	return fmt.Sprintf(`{"head":%q,"base":"main","title":"t"}`, branch)
}

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
