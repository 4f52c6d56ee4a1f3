package forge_test

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // what GitHub sends beside the signature that counts
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"hash"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/forge"
	"github.com/claudeops/claudeops/internal/gitprovider/forges"
)

const secret = "a secret of the operator"

// source returns a forge's way of sending, from its driver.
func source(name string) forge.Source {
	for _, d := range forges.All() {
		if d.Name == name {
			return d.Webhooks
		}
	}
	panic("no forge is named " + name)
}

func github() forge.Source { return source("github") }
func gitea() forge.Source  { return source("gitea") }

// plain is a forge that sends the secret itself.
func plain() forge.Source {
	return forge.Source{Name: "plain", Signatures: []forge.Signature{{Header: "X-Gitlab-Token", Plain: true}}}
}

func mac(algorithm func() hash.Hash, secret, body string) string {
	h := hmac.New(algorithm, []byte(secret))
	_, _ = h.Write([]byte(body))
	return hex.EncodeToString(h.Sum(nil))
}

// headers makes a header of names and values.
func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// GitHub's documentation has this example ("Validating webhook deliveries", "Testing the webhook payload validation").
func TestTheExampleOfGitHubsDocumentationIsRight(t *testing.T) {
	h := headers("X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")
	if err := github().Verify(h, []byte("Hello, World!"), "It's a Secret to Everybody"); err != nil {
		t.Error(err)
	}
}

func TestOnlyTheRightSignatureIsAccepted(t *testing.T) {
	const body = `{"action":"closed","number":7}`
	right := mac(sha256.New, secret, body)
	for name, row := range map[string]struct {
		source forge.Source
		header http.Header
		body   string
		right  bool
	}{
		"GitHub, right": {github(), headers("X-Hub-Signature-256", "sha256="+right), body, true},
		"GitHub, with the old one beside it": {github(),
			headers("X-Hub-Signature-256", "sha256="+right, "X-Hub-Signature", "sha1=00"), body, true},
		"Gitea, right":   {gitea(), headers("X-Gitea-Signature", right), body, true},
		"Forgejo, right": {gitea(), headers("X-Forgejo-Signature", right), body, true},
		"Forgejo, right in both": {gitea(), headers("X-Forgejo-Signature", right, "X-Gitea-Signature", right),
			body, true},
		"Forgejo, wrong in one": {gitea(), headers("X-Forgejo-Signature", right, "X-Gitea-Signature", "00"),
			body, false},
		"missing":                          {github(), headers(), body, false},
		"missing at Gitea":                 {gitea(), headers(), body, false},
		"empty":                            {github(), headers("X-Hub-Signature-256", ""), body, false},
		"empty at Gitea, without a secret": {gitea(), headers("X-Gitea-Signature", ""), body, false},
		"only SHA-1": {github(), headers("X-Hub-Signature", "sha1="+mac(sha1.New, secret, body)),
			body, false},
		"SHA-1 in its place": {github(), headers("X-Hub-Signature-256", "sha1="+mac(sha1.New, secret, body)),
			body, false},
		"SHA-512 in its place": {github(),
			headers("X-Hub-Signature-256", "sha512="+mac(sha512.New, secret, body)), body, false},
		"without the algorithm":      {github(), headers("X-Hub-Signature-256", right), body, false},
		"with an algorithm at Gitea": {gitea(), headers("X-Gitea-Signature", "sha256="+right), body, false},
		"upper case": {github(), headers("X-Hub-Signature-256", "sha256="+strings.ToUpper(right)),
			body, false},
		"upper case at Gitea": {gitea(), headers("X-Gitea-Signature", strings.ToUpper(right)), body, false},
		"truncated":           {github(), headers("X-Hub-Signature-256", "sha256="+right[:62]), body, false},
		"longer":              {github(), headers("X-Hub-Signature-256", "sha256="+right+"00"), body, false},
		"with a space":        {github(), headers("X-Hub-Signature-256", "sha256="+right+" "), body, false},
		"twice": {github(),
			headers("X-Hub-Signature-256", "sha256="+right, "X-Hub-Signature-256", "sha256="+right), body, false},
		"of another secret": {github(),
			headers("X-Hub-Signature-256", "sha256="+mac(sha256.New, secret+"!", body)), body, false},
		"of no secret": {github(), headers("X-Hub-Signature-256", "sha256="+mac(sha256.New, "", body)),
			body, false},
		"of another body": {github(), headers("X-Hub-Signature-256", "sha256="+right), body + " ", false},
		"of the body in another form": {github(), headers("X-Hub-Signature-256", "sha256="+right),
			`{"number":7,"action":"closed"}`, false},
		"GitHub's header at Gitea":            {gitea(), headers("X-Hub-Signature-256", "sha256="+right), body, false},
		"Gitea's header at GitHub":            {github(), headers("X-Gitea-Signature", right), body, false},
		"the right one of another, forwarded": {gitea(), headers("X-Gogs-Signature", right), body, false},
		"the secret itself":                   {plain(), headers("X-Gitlab-Token", secret), body, true},
		"the secret itself, of another body":  {plain(), headers("X-Gitlab-Token", secret), body + " ", true},
		"the secret itself, cut":              {plain(), headers("X-Gitlab-Token", secret[1:]), body, false},
		"the secret itself, twice": {plain(), headers("X-Gitlab-Token", secret, "X-Gitlab-Token", secret), body,
			false},
		"a signature in the secret's place": {plain(), headers("X-Gitlab-Token", right), body, false},
		"the secret, where it is to sign":   {gitea(), headers("X-Gitea-Signature", secret), body, false},
		"no secret":                         {plain(), headers("X-Gitlab-Token", ""), body, false},
	} {
		err := row.source.Verify(row.header, []byte(row.body), secret)
		if row.right && err != nil || !row.right && fault.CodeOf(err) != fault.Unauthenticated {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && (strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), right)) {
			t.Errorf("%s: the error tells too much: %v", name, err)
		}
		if err := row.source.Verify(row.header, []byte(row.body), ""); fault.CodeOf(err) != fault.Unauthenticated {
			t.Errorf("%s, without a secret: %v", name, err)
		}
	}
}

// sent is a recorded shape: testdata/SOURCE-EVENT-ACTION.json, written after the documentation that the package comment
// names.
func sent(t testing.TB, file string) (from forge.Source, event string, body []byte) {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(strings.TrimSuffix(file, ".json"), "-")
	return source(parts[0]), parts[1], body
}

func TestEachEventNamesItsPullRequests(t *testing.T) {
	for file, numbers := range map[string][]int{
		"github-pull_request-closed.json": {7}, "github-pull_request-synchronize.json": {7},
		"github-pull_request-labeled.json":          nil,
		"github-pull_request_review-submitted.json": {7}, "github-check_suite-completed.json": {7, 9},
		"github-ping.json":               nil,
		"gitea-pull_request-closed.json": {7}, "gitea-pull_request-synchronized.json": {7},
		"gitea-pull_request_rejected-reviewed.json": {7},
	} {
		from, event, body := sent(t, file)
		prefix := from.Headers[0]
		want := forge.Delivery{ID: "f6266f16-1bf3", Event: event, Ping: event == "ping", Numbers: numbers}
		if numbers != nil {
			want.Owner, want.Repo = "joe", map[string]string{"github": "Home-Cluster", "gitea": "home-cluster"}[from.Name]
		}
		got, err := from.Parse(headers(prefix+"Delivery", "f6266f16-1bf3", prefix+"Event", event), body)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", file, err, diff)
		}
	}
	for file, branch := range map[string]string{
		"github-push-ours.json": "claude-ops/check/check-inodes-too", "github-push-main.json": "",
		"github-status-ours.json": "claude-ops/check/check-inodes-too", "github-status-pending.json": "",
		"gitea-push-ours.json": "claude-ops/check/check-inodes-too", "gitea-push-main.json": "",
	} {
		from, event, body := sent(t, file)
		prefix := from.Headers[0]
		got, err := from.Parse(headers(prefix+"Delivery", "a", prefix+"Event", event), body)
		if err != nil || got.Branch != branch || got.Concerns() != (branch != "") || branch != "" &&
			!strings.EqualFold(got.Repo, "home-cluster") {
			t.Errorf("%s: %+v, %v", file, got, err)
		}
	}
	_, _, body := sent(t, "gitea-pull_request-synchronized.json")
	got, err := gitea().Parse(headers("X-Forgejo-Delivery", "a", "X-Forgejo-Event", "pull_request_sync"), body)
	if err != nil || !slices.Equal(got.Numbers, []int{7}) {
		t.Errorf("Forgejo, synchronized: %+v, %v", got, err)
	}
	_, _, body = sent(t, "gitea-pull_request-closed.json")
	got, err = gitea().Parse(headers("X-Forgejo-Delivery", "a", "X-Forgejo-Event", "pull_request"), body)
	if err != nil || !slices.Equal(got.Numbers, []int{7}) || got.ID != "a" {
		t.Errorf("Forgejo: %+v, %v", got, err)
	}
}

// What GitHub has really sent names the same. A branch of the payloads is called as ours are, to be one of them.
func TestRecordedDeliveriesAreUnderstood(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "octokit", "webhooks-examples.json"))
	if err != nil {
		t.Fatal(err)
	}
	var sent []struct {
		Event   string
		Payload json.RawMessage
	}
	const branch = "claude-ops/fix/x"
	ours := strings.NewReplacer("refs/heads/master", "refs/heads/"+branch, `"gh-pages"`, `"`+branch+`"`)
	if err := json.Unmarshal([]byte(ours.Replace(string(raw))), &sent); err != nil {
		t.Fatal(err)
	}
	concerned := map[string]int{}
	for _, s := range sent {
		var is struct{ Action string }
		if err := json.Unmarshal(s.Payload, &is); err != nil {
			t.Fatal(err)
		}
		got, err := github().Parse(headers("X-GitHub-Delivery", "a", "X-GitHub-Event", s.Event), s.Payload)
		if err != nil || got.Ping != (s.Event == "ping") {
			t.Errorf("%s %s: %+v, %v", s.Event, is.Action, got, err)
		}
		if !got.Concerns() {
			continue
		}
		concerned[strings.TrimSpace(s.Event+" "+is.Action)]++
		if got.Owner != "Codertocat" || got.Repo != "Hello-World" ||
			(got.Branch == branch) == slices.Equal(got.Numbers, []int{2}) {
			t.Errorf("%s %s: %+v", s.Event, is.Action, got)
		}
	}
	want := map[string]int{
		"check_suite completed": 1, "pull_request closed": 1, "pull_request reopened": 1, "pull_request synchronize": 1,
		"pull_request_review submitted": 1, "pull_request_review dismissed": 1, "push": 1, "status": 1,
	}
	if diff := cmp.Diff(want, concerned); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNoneOfOurEventsIsIgnored(t *testing.T) {
	for name, events := range map[string][]string{
		"github": {"star", "pull_request_review_comment", "check_run", "what.ever"},
		"gitea":  {"pull_request_comment", "release", "repository"},
	} {
		for _, event := range events {
			from := source(name)
			prefix := from.Headers[0]
			d, err := from.Parse(headers(prefix+"Delivery", "a", prefix+"Event", event), []byte("not even JSON"))
			if err != nil || d.Ping || len(d.Numbers) != 0 {
				t.Errorf("%s %s: %+v, %v", name, event, d, err)
			}
		}
	}
}

func TestAPushIsIgnoredUnlessItMayBeAboutOurs(t *testing.T) {
	for _, body := range []string{
		`{}`, `{"ref":"refs/tags/claude-ops/fix/x","repository":{"full_name":"joe/infra"}}`,
		`{"ref":"claude-ops/fix/x","repository":{"full_name":"joe/infra"}}`,
		`{"ref":"refs/heads/claude-ops/` + strings.Repeat("x", 200) + `","repository":{"full_name":"joe/infra"}}`,
	} {
		d, err := github().Parse(headers("X-GitHub-Delivery", "a", "X-GitHub-Event", "push"), []byte(body))
		if err != nil || d.Concerns() {
			t.Errorf("%s: %+v, %v", body, d, err)
		}
	}
	for _, body := range []string{
		`not JSON`, `{"ref":7}`, `{"ref":"refs/heads/claude-ops/fix/x"}`,
		`{"ref":"refs/heads/claude-ops/fix/x","repository":{"full_name":"../x"}}`,
	} {
		d, err := gitea().Parse(headers("X-Gitea-Delivery", "a", "X-Gitea-Event", "push"), []byte(body))
		if fault.CodeOf(err) != fault.InvalidArgument || d.Concerns() {
			t.Errorf("%s: %+v, %v", body, d, err)
		}
	}
}

func TestADeliveryThatIsNoneIsRefused(t *testing.T) {
	const about = `"repository":{"full_name":"joe/infra"}`
	good := `{"action":"closed","number":7,"pull_request":{"number":7},` + about + `}`
	long := strings.Repeat("x", 101)
	for name, row := range map[string]struct {
		delivery, event, body string
	}{
		"without an id": {"", "pull_request", good}, "without an event": {"a", "", good},
		"with a long id":    {long, "pull_request", good},
		"with a long event": {"a", long, good}, "with an id of two lines": {"a\nb", "pull_request", good},
		"with an id in letters": {"ä", "pull_request", good},
		"empty":                 {"a", "pull_request", ""}, "no JSON": {"a", "pull_request", "payload=%7B%7D"},
		"a list":  {"a", "pull_request", "[]"},
		"cut off": {"a", "pull_request", good[:40]}, "two objects": {"a", "pull_request", good + good},
		"without a repository": {"a", "pull_request", `{"action":"closed","pull_request":{"number":7}}`},
		"of half a one": {"a", "pull_request",
			`{"action":"closed","pull_request":{"number":7},"repository":{"full_name":"joe"}}`},
		"of a path": {"a", "pull_request",
			`{"action":"closed","pull_request":{"number":7},"repository":{"full_name":"../../etc/x"}}`},
		"without a number": {"a", "pull_request", `{"action":"closed",` + about + `}`},
		"with zero":        {"a", "pull_request", `{"action":"closed","pull_request":{"number":0},` + about + `}`},
		"with less":        {"a", "pull_request", `{"action":"closed","pull_request":{"number":-7},` + about + `}`},
		"with too much": {"a", "pull_request", `{"action":"closed","pull_request":{"number":99999999999},` + about +
			`}`},
		"with a word": {"a", "pull_request", `{"action":"closed","pull_request":{"number":"7"},` + about + `}`},
	} {
		d, err := github().Parse(headers("X-GitHub-Delivery", row.delivery, "X-GitHub-Event", row.event), []byte(row.body))
		if fault.CodeOf(err) != fault.InvalidArgument || len(d.Numbers) != 0 {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
	twice := headers("X-GitHub-Delivery", "a", "X-GitHub-Delivery", "b", "X-GitHub-Event", "pull_request")
	if _, err := github().Parse(twice, []byte(good)); fault.CodeOf(err) != fault.InvalidArgument {
		t.Errorf("with two ids: %v", err)
	}
}

// FuzzParse holds that whatever comes is refused, ignored, or names pull requests that can exist.
func FuzzParse(f *testing.F) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if !file.IsDir() {
			from, event, body := sent(f, file.Name())
			f.Add(from.Name == "github", event, body)
		}
	}
	f.Fuzz(func(t *testing.T, atGitHub bool, event string, body []byte) {
		from := gitea()
		if atGitHub {
			from = github()
		}
		d, err := from.Parse(headers(from.Headers[0]+"Delivery", "a", from.Headers[0]+"Event", event), body)
		if err != nil {
			if fault.CodeOf(err) != fault.InvalidArgument || d.Concerns() {
				t.Fatalf("%+v, %v", d, err)
			}
			return
		}
		if len(d.Numbers) > 10 || d.Ping && len(d.Numbers) > 0 {
			t.Fatalf("%+v", d)
		}
		if d.Branch != "" && (len(d.Numbers) > 0 || gitprovider.CheckRepoPart(d.Owner) != nil ||
			gitprovider.CheckRepoPart(d.Repo) != nil) {
			t.Fatalf("%+v", d)
		}
		if r := d.Start; r != nil && (r.Number < 1 || r.Comment < 0 || gitprovider.CheckRepoPart(r.Owner) != nil ||
			gitprovider.CheckRepoPart(r.Repo) != nil || d.Concerns()) {
			t.Fatalf("%+v, %+v", d, r)
		}
		for _, n := range d.Numbers {
			if n < 1 || gitprovider.CheckRepoPart(d.Owner) != nil || gitprovider.CheckRepoPart(d.Repo) != nil {
				t.Fatalf("%+v", d)
			}
		}
	})
}
