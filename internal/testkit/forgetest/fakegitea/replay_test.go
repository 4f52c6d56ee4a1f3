package fakegitea

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/testkit/forgetest"
)

// recordings lists the files in the order in which they were recorded, which is that of their numbers and ids.
func recordings() []string {
	return strings.Fields(`version repo-get repo-missing repo-renamed bad-token branch-get branch-missing labels-list git-tree
		contents-get contents-get-missing label-create contents-post-multi contents-post-branch-exists
		contents-post-wrong-sha contents-post-without-sha contents-post-without-dates contents-post-missing-base
		contents-post-create-existing contents-post-update-missing contents-post-delete-missing contents-post-empty-files
		contents-post-identical contents-post-paths contents-post-parallel pulls-post pulls-post-duplicate
		pulls-post-unknown-label pulls-post-head-missing pulls-post-no-difference pulls-post-draft pulls-post-parallel
		pull-files reader errors-not-json pulls-list-open-pages pulls-list-labels pull-get-open pull-get-missing
		pull-get-recheck pull-get-conflict pull-get-merged pull-get-closed pull-head-deleted pulls-list-closed
		pull-reviews commit-status protected-branch archived-repo empty-repo`)
}

// outOfScope gives the reason why a recorded exchange is not held against the fake: nil for nearly all.
func outOfScope() map[string]string {
	const people = "the adapter may not call this route; people act through the host, and this refusal concerns them alone"
	const renamed = "the host cannot rename: the repository has its new name from the start, and Settings.RenamedFrom"
	return map[string]string{
		"contents-post-branch-exists 1": people,
		"reader 7":                      people,
		"pull-reviews 21":               people,
		"repo-renamed 0":                renamed,
		"repo-renamed 1":                renamed,
	}
}

// replay is a server that the recorded exchanges are played against.
type replay struct {
	t       *testing.T
	s       *Server
	ids     *bijection
	like    patterns
	pending map[string]forgetest.Answer // answers to requests that another exchange sent already
	reports []string
}

func TestTheFakeAnswersAsTheRealServerWasRecorded(t *testing.T) {
	r := newReplay(t)
	played, skipped := 0, outOfScope()
	for _, file := range recordings() {
		for i, e := range forgetest.Recorded(t, file) {
			at := fmt.Sprintf("%s %d", file, i)
			if skipped[at] != "" {
				delete(skipped, at)
				continue
			}
			r.before(at)
			got := r.act(at, e)
			if problems := r.comparison().Problems(e.Response, got); len(problems) > 0 {
				t.Errorf("%s: %s (%s %s)\n  %s", at, e.Name, e.Request.Method, e.Request.Path, strings.Join(problems, "\n  "))
			}
			played++
		}
	}
	if len(skipped) > 0 {
		t.Errorf("these forgetest.Exchanges do not exist: %v", skipped)
	}
	if files, _ := filepath.Glob("testdata/recorded/*.json"); len(files) != len(recordings()) || played < 230 {
		t.Errorf("%d files of %d and %d exchanges were played", len(recordings()), len(files), played)
	}
	r.checkReports()
}

// checkReports demands the complaints about those recorded requests that are not as described, and no others.
func (r *replay) checkReports() {
	r.t.Helper()
	expected := []string{
		`POST /api/v1/repos/joe/home-cluster/pulls: the body is not as described`, // label names
		`GET /api/v1/nope has no route`,
		`PUT /api/v1/repos/joe/home-cluster/pulls has no route`,
		`/contents: the body is not as described`, // unknown operation
	}
	for _, report := range r.reports {
		known := false
		for i, want := range expected {
			if want != "" && strings.Contains(report, want) {
				expected[i], known = "", true
				break
			}
		}
		if !known {
			r.t.Errorf("unexpected complaint: %s", report)
		}
	}
	if left := strings.Join(expected, ""); left != "" {
		r.t.Errorf("a complaint is missing: %q", expected)
	}
}

// act plays one forgetest.Exchange: a setup step of people's as they would do it, everything else as a request.
func (r *replay) act(at string, e forgetest.Exchange) forgetest.Answer {
	r.t.Helper()
	if got, sent := r.pending[at]; sent {
		return got
	}
	if step := r.peoplesStep(e); step != nil {
		return step(e)
	}
	return r.send(e.Request.Method, e.Request.Path, e.Request.Body, senderOf(r.s, e.Name))
}

// senderOf is the token of the user whom the forgetest.Exchange's name ends in.
func senderOf(s *Server, name string) string {
	switch {
	case strings.HasSuffix(name, "[reviewer]"):
		return "token-of-reviewer"
	case strings.HasSuffix(name, "[no token]"):
		return ""
	case strings.HasSuffix(name, "[bad token]"):
		return "wrong"
	default:
		return s.Token()
	}
}

// send sends a request in which ids are the recorded ones.
func (r *replay) send(method, path string, body json.RawMessage, token string) forgetest.Answer {
	r.t.Helper()
	if string(body) == "null" {
		body = nil
	}
	if token != "" {
		token = "token " + token
	}
	return forgetest.Ask(r.t, method, r.s.URL()+r.toOurs(path), r.toOurs(string(body)), token)
}

// bijection pairs recorded object ids with the fake's. Commit ids differ, for the host's commits are not git's; and so
// do the ids of what has stand-ins. Everything else must be the very same.
type bijection struct {
	ours, theirs map[string]string
	standIns     map[string]bool
}

// patterns are the kinds of text in which the two servers may differ.
type patterns struct{ objectID, moment, face, comment, workspace, mailbox *regexp.Regexp }

func newPatterns() patterns {
	return patterns{
		objectID:  regexp.MustCompile(`\b[0-9a-f]{40}\b`),
		moment:    regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`),
		face:      regexp.MustCompile(`/avatars/[0-9a-f]{32}$`),
		comment:   regexp.MustCompile(`#issuecomment-\d+$`),
		workspace: regexp.MustCompile(`upload\.git\d+`),
		mailbox:   regexp.MustCompile(`^(joe|reviewer)@example\.test$`),
	}
}

// toOurs replaces recorded ids in a request.
func (r *replay) toOurs(text string) string {
	return r.like.objectID.ReplaceAllStringFunc(text, func(id string) string {
		if ours, known := r.ids.ours[id]; known {
			return ours
		}
		return id
	})
}

// pair notes that two ids are the same object, or says why they cannot be.
func (b *bijection) pair(recorded, ours string, isBlob func(string) bool) string {
	if known, seen := b.ours[recorded]; seen && known != ours {
		return fmt.Sprintf("id %s is %s here and was %s before", recorded, ours, known)
	}
	if known, seen := b.theirs[ours]; seen && known != recorded {
		return fmt.Sprintf("id %s stands for %s and for %s", ours, recorded, known)
	}
	if recorded != ours && isBlob(ours) && !b.standIns[recorded] {
		return fmt.Sprintf("blob %s, recorded was %s", ours, recorded)
	}
	b.ours[recorded], b.theirs[ours] = ours, recorded
	return ""
}

// comparison compares answers with the recorded ones. Free are members that say how large, how busy or which version
// the recorded server was.
func (r *replay) comparison() forgetest.Comparison {
	return forgetest.Comparison{
		Headers: []string{"Content-Type", "Link", "X-Total-Count", "Location"},
		Text:    r.text,
		IsFree: func(object map[string]any, member string) bool {
			if _, isRepo := object["languages_url"]; isRepo && (member == "size" || member == "description") {
				return true
			}
			return member == "open_pr_counter" || member == "version"
		},
	}
}

// text compares strings in which addresses, times and ids may differ.
func (r *replay) text(recorded, got string) (differs string) {
	got = strings.ReplaceAll(got, r.s.URL(), "https://gitea.example")
	got = strings.ReplaceAll(got, "git@127.0.0.1:", "git@gitea.example:")
	got = r.like.mailbox.ReplaceAllString(got, "user@example.test")
	if r.like.moment.MatchString(recorded) && r.like.moment.MatchString(got) && special(recorded) == special(got) {
		return ""
	}
	for _, counted := range []*regexp.Regexp{r.like.face, r.like.comment, r.like.workspace} {
		recorded, got = counted.ReplaceAllString(recorded, "X"), counted.ReplaceAllString(got, "X")
	}
	theirs, ours := r.like.objectID.FindAllString(recorded, -1), r.like.objectID.FindAllString(got, -1)
	if len(theirs) == len(ours) {
		for i := range theirs {
			if problem := r.ids.pair(theirs[i], ours[i], r.isBlob); problem != "" {
				differs = problem
			}
		}
		recorded, got = r.like.objectID.ReplaceAllString(recorded, "ID"), r.like.objectID.ReplaceAllString(got, "ID")
	}
	if recorded != got {
		differs = fmt.Sprintf("%q, recorded was %q", got, recorded)
	}
	return differs
}

// special are times that mean something else than a moment.
func special(when string) string {
	for _, year := range []string{"0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "2001-01-01T00:00:00Z"} {
		if when == year {
			return when
		}
	}
	return ""
}

// isBlob reports whether an id is a file's in one of the fake's repositories.
func (r *replay) isBlob(id string) (is bool) {
	r.s.host.Locked(func() {
		for _, st := range r.s.repos {
			if n := st.objects.byID[id]; n != nil && n.kind == gitprovider.KindFile {
				is = true
			}
		}
	})
	return is
}

func TestRequestsThatAreNotAsDescribedFailTheTest(t *testing.T) {
	for name, tc := range map[string]struct{ method, path, body, want string }{
		"an unknown route":            {get, "stargazers", "", "has no route (404)"},
		"a route for people":          {post, "pulls/1/merge", `{"Do":"merge"}`, "has no route (405)"},
		"a review of our own":         {post, "pulls/1/reviews", `{"event":"APPROVED"}`, "/event"},
		"a branch with plain slashes": {get, "git/trees/a/b", "", "has no route (404)"},
		"a method that is not there":  {put, "pulls", "", "has no route (405)"},
		"an unknown query parameter":  {get, "pulls?head=x", "", `no query parameter "head"`},
		"a query parameter of a type": {get, "pulls?page=first", "", `"page" has not the type integer`},
		"a repeated query parameter":  {get, "pulls?page=1&page=2", "", `"page" is there 2 times`},
		"a query where there is none": {get, "branches/main?limit=1", "", `no query parameter "limit"`},
		"an unknown member":           {post, "pulls", `{"head":"x","base":"main","title":"t","draft":true}`, "draft"},
		"a member of the wrong type":  {post, "pulls", `{"head":"x","base":"main","title":5}`, "/title"},
		"label names in a creation":   {post, "pulls", `{"head":"x","base":"main","title":"t","labels":["a"]}`, "/labels/0"},
		"an unknown member of a file": {post, "contents", `{"files":[{"operation":"create","path":"x","mode":"1"}]}`, "mode"},
		"an unknown operation": {post, "contents", `{"files":[{"operation":"frob","path":"x"}]}`,
			"/files/0/operation"},
		"a body where there is none": {get, "pulls", `{}`, "takes no body"},
		"a body that is not JSON":    {post, "labels", `name=x`, "is not JSON"},
		"a rename, which we never use": {post, "contents", `{"files":[{"operation":"update","path":"x","from_path":"y"}]}`,
			"from_path"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			var reports []string
			b.s.report = func(format string, args ...any) { reports = append(reports, fmt.Sprintf(format, args...)) }
			b.do(tc.method, tc.path, tc.body)
			if all := strings.Join(reports, "\n"); !strings.Contains(all, tc.want) {
				t.Errorf("got the complaints %q, want %q", all, tc.want)
			}
		})
	}
}

func TestNullIsTheSameAsAnAbsentMember(t *testing.T) {
	b := newBench(t)
	b.want(201, "", post, "contents", commitBody("x", "x.md"))
	b.want(201, `"labels":[]`, post, "pulls",
		`{"head":"x","base":"main","title":"t","labels":null,"assignees":null,"due_date":null}`)
}

func TestTheComparisonFindsWhatDiffers(t *testing.T) {
	r := newReplay(t)
	recorded := func() forgetest.Answer {
		return forgetest.Answer{Status: 200, Headers: map[string]string{"X-Total-Count": "2"}, Body: map[string]any{
			"name": "x", "sha": strings.Repeat("a", 40), "at": "2026-01-01T00:00:00Z", "list": []any{1.0, "b"}, "none": nil,
		}}
	}
	if problems := r.comparison().Problems(recorded(), recorded()); len(problems) > 0 {
		t.Fatalf("the same differs: %v", problems)
	}
	for name, change := range map[string]func(h *forgetest.Answer, body map[string]any){
		"another status":         func(h *forgetest.Answer, _ map[string]any) { h.Status = 201 },
		"a header less":          func(h *forgetest.Answer, _ map[string]any) { delete(h.Headers, "X-Total-Count") },
		"a header more":          func(h *forgetest.Answer, _ map[string]any) { h.Headers["Link"] = "<x>" },
		"a missing member":       func(_ *forgetest.Answer, body map[string]any) { delete(body, "none") },
		"a further member":       func(_ *forgetest.Answer, body map[string]any) { body["more"] = nil },
		"another value":          func(_ *forgetest.Answer, body map[string]any) { body["name"] = "y" },
		"another type":           func(_ *forgetest.Answer, body map[string]any) { body["name"] = 1.0 },
		"null for a value":       func(_ *forgetest.Answer, body map[string]any) { body["name"] = nil },
		"a value for null":       func(_ *forgetest.Answer, body map[string]any) { body["none"] = []any{} },
		"a time that means none": func(_ *forgetest.Answer, body map[string]any) { body["at"] = "0001-01-01T00:00:00Z" },
		"no time":                func(_ *forgetest.Answer, body map[string]any) { body["at"] = "yesterday" },
		"a shorter list":         func(_ *forgetest.Answer, body map[string]any) { body["list"] = []any{1.0} },
		"another order":          func(_ *forgetest.Answer, body map[string]any) { body["list"] = []any{"b", 1.0} },
		"an id that was another": func(_ *forgetest.Answer, body map[string]any) { body["sha"] = strings.Repeat("b", 40) },
	} {
		got := recorded()
		change(&got, got.Body.(map[string]any))
		if problems := r.comparison().Problems(recorded(), got); len(problems) == 0 {
			t.Errorf("%s is not found", name)
		}
	}
}
