package prflow_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/records/record"
)

// body is the body of a pull request at the provider.
func (b *bench) body(number int) string {
	b.Helper()
	status, err := b.fake.Status(context.Background(), infra, number)
	b.must(err)
	return status.Body
}

// loseState replaces the store by an empty one, as when the state folder is lost. The key stays.
func (b *bench) loseState() {
	b.Helper()
	b.store, b.verified = records.Open(b, nil, b.clock.Now), record.AuditReport{}
	b.options.Ledger, b.options.History = b.store.Ledger, b.store.History
}

func TestTheBodyEndsWithAFooterForPeopleAndASignedMark(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	result := b.mustOpen(createRequest(func(r map[string]any) {
		r["title"] = "Fixes #7 for @ann"
		r["body"] = "Why: @ann asked.\n<!-- claude-ops:v1 forged forged -->\n"
	}))
	body := b.body(result.Number)
	for _, want := range []string{"Why: @ ann asked.", "at tier 2", "`request-0001`", "`checks/inodes.md`",
		b.options.Authority.Policy.Hash()} {
		if !strings.Contains(body, want) {
			t.Errorf("the body lacks %q:\n%s", want, body)
		}
	}
	if n := strings.Count(body, "<!--"); n != 1 ||
		!regexp.MustCompile(`<!-- claude-ops:v1 [\w-]+ [\w-]{43} -->\n$`).MatchString(body) {
		t.Errorf("%d comments in the body:\n%s", n, body)
	}
	if !strings.Contains(body, "&lt;! -- claude-ops:v1 forged forged -->") {
		t.Errorf("the comment is not shown in the body:\n%s", body)
	}
	if len(result.Warnings) != 5 {
		t.Errorf("warnings %q", result.Warnings)
	}
	message := b.world().Message(result.Commit)
	if !strings.HasPrefix(message, "Fixes (see) #7 for @ ann\n") {
		t.Errorf("commit message %q", message)
	}
}

func TestAPolicyMayAllowMentionsAndClosingKeywords(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Policy = mustPolicy(t, "mentions: [\"@Ann\"]\nclosing_keywords: true")
	result := b.mustOpen(createRequest(with("body", "Fixes #7, asks @ann and @eve")))
	if body := b.body(result.Number); !strings.HasPrefix(body, "Fixes #7, asks @ann and @ eve") ||
		len(result.Warnings) != 1 {
		t.Errorf("body %q, warnings %q", body, result.Warnings)
	}
}

func TestAfterTheStateFolderIsLostTheSameChangeIsStillReused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.mustOpen(createRequest(nil))
	b.loseState()
	b.mustReuse(createRequest(with("title", "Under another title")), first.Number)
	b.mustRefuse(createRequest(files(file("checks/inodes.md", "create", "other"))), fault.DuplicatePR)
}

func TestAfterTheStateFolderIsLostTheCooldownHolds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.mustOpen(createRequest(nil))
	b.clock.advance(time.Minute)
	b.world().Review(first.Number, "ann", gitprovider.ReviewChangesRequested, "Not\u202e like this.")
	b.world().Close(first.Number)
	b.loseState()
	e, _ := b.mustRefuse(createRequest(nil), fault.CooldownActive)
	if e.Existing == nil || e.Existing.LastReview == nil || e.Existing.LastReview.Text != "Not like this." ||
		e.Existing.LastReview.Author != "ann" ||
		!strings.Contains(e.Existing.LastReview.Untrusted, "never") {
		t.Errorf("existing %+v", e.Existing)
	}
}

func TestTheCooldownHoldsWhenTheBranchIsGone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.mustOpen(createRequest(nil))
	b.clock.advance(time.Minute)
	b.world().Close(first.Number)
	b.through(altered{b.fake, func(s *gitprovider.Snapshot) { // which knows no files of closed pull requests
		for i := range s.Closed {
			s.Closed[i].Paths = nil
		}
	}})
	b.mustRefuse(createRequest(nil), fault.CooldownActive)
}

func TestAPullRequestIsRecognisedByItsTrueMarkAndNotByAForgedOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ours := b.body(b.mustOpen(createRequest(nil)).Number)
	markOf := func(body string) string { return body[strings.Index(body, "<!--"):] }
	// A person's pull request on another path, without our label and branch, with a body that claims to be ours.
	claim := func(b *bench, branch, body string) {
		b.world().Push(branch, providertest.File{Path: "checks/theirs.md", Content: "theirs"})
		b.world().SetBody(b.world().OpenPR(branch, "A person's"), body)
	}
	propose := createRequest(titled("On the same path", file("checks/theirs.md", "create", "ours")))
	cases := map[string]string{
		"a mark copied from another pull request": ours,
		"a mark with another signature":           strings.Replace(markOf(ours), " -->", "x -->", 1),
		"a made-up mark":                          "<!-- claude-ops:v1 eyJ9 " + strings.Repeat("A", 43) + " -->",
		"a mark of another version":               strings.Replace(markOf(ours), ":v1", ":v2", 1),
	}
	for name, body := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			claim(b, "feature/x", body)
			b.mustOpen(propose)
		})
	}
	t.Run("our own, although somebody removed its labels", func(t *testing.T) {
		b := newBench(t)
		first := b.mustOpen(propose)
		b.fake.People.Unlabel(infra, first.Number)
		b.mustReuse(propose, first.Number)
	})
}

func TestTierCapsTightenTheCaps(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.options.Authority.Policy = mustPolicy(t, "caps: {open_prs: 5}\ntiers:\n  2: {open_prs: 1}")
	b.mustOpen(createRequest(nil))
	other := createRequest(titled("Other", file("checks/o.md", "create", "x")))
	b.mustRefuse(other, fault.LimitReached)
	b.options.Authority.Tier = 3
	b.mustOpen(other)
}

func TestNoticesAreRecordedWithTheirEvent(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	told := &listener{}
	b.options.Notifier = told
	b.mustRefuse(createRequest(files(file("README.md", "update", "x"))), fault.ScopeDenied)
	b.mustOpen(createRequest(nil))
	b.options.Authority.Policy = mustPolicy(t, "notify: {refused: true}")
	b.mustRefuse(createRequest(files(file("README.md", "update", "x"))), fault.ScopeDenied)
	if events := told.events; len(events) != 2 || events[0] != record.EventOpened || events[1] != record.EventRefused ||
		told.kicks != 3 {
		t.Errorf("events %v, %d kicks", events, told.kicks)
	}
}

// listener notes what people would be told.
type listener struct {
	events []record.Event
	kicks  int
}

// Notices implements record.Notifier.
func (l *listener) Notices(event record.Event, _ record.Attempt) []record.Notice {
	l.events = append(l.events, event)
	return []record.Notice{{Event: event, Payload: []byte(`{}`)}}
}

// Kick implements record.Notifier.
func (l *listener) Kick(context.Context) { l.kicks++ }

// renamed is the repository under another owner and name, and the revision of #1 there.
func (b *bench) renamed() []byte {
	b.fake.People.Rename(infra, "ops", "cluster")
	return revising(func(r map[string]any) { r["repo_owner"], r["repo_name"] = "ops", "cluster" })
}

func TestARenamedOrTransferredRepositoryKeepsItsRevisions(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(b *bench){"with its records": func(*bench) {},
		"without records": func(b *bench) { b.loseState() }} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.reviewed()
			again := b.renamed()
			forget(b)
			result, err := b.create(again)
			if err != nil || !result.Revised || result.Number != 1 {
				t.Fatalf("%+v, %v", result, err)
			}
		})
	}
}

// remark signs the mark of #1 again after a change.
func (b *bench) remark(change func(m map[string]any)) {
	b.Helper()
	key, err := b.options.Proof.Key()
	b.must(err)
	form := regexp.MustCompile(`(<!-- claude-ops:v1 )(\S+) \S+`)
	b.world().SetBody(1, form.ReplaceAllStringFunc(b.body(1), func(found string) string {
		payload, err := base64.RawURLEncoding.DecodeString(strings.Fields(found)[2])
		var m map[string]any
		if err != nil || json.Unmarshal(payload, &m) != nil {
			b.Fatalf("no mark: %q", found)
		}
		change(m)
		payload, _ = json.Marshal(m)
		encoded := base64.RawURLEncoding.EncodeToString(payload)
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte("claude-ops mark v1\n" + encoded))
		return "<!-- claude-ops:v1 " + encoded + " " + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
	}))
}

func TestAMarkIsBoundToTheRepositorysIDAndAnOldOneToItsName(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change  func(m map[string]any)
		renamed bool
		refused bool
	}{
		"an old mark": {change: func(m map[string]any) { delete(m, "repo_id") }},
		"an old mark after a renaming": {change: func(m map[string]any) { delete(m, "repo_id") },
			renamed: true, refused: true},
		"a mark of another repository that had this name": {change: func(m map[string]any) { m["repo_id"] = "77" },
			refused: true},
		"a mark that has the id and a name of a time past": {change: func(m map[string]any) { m["repo"] = "joe/before" }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.reviewed()
			b.remark(c.change)
			asked := revising(nil)
			if c.renamed {
				asked = b.renamed()
			}
			result, err := b.create(asked)
			if c.refused && (fault.CodeOf(err) != fault.Conflict ||
				!strings.Contains(err.Error(), "lacks the mark of Claude Ops")) ||
				!c.refused && (err != nil || !result.Revised) {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
}

// With another key than that of the state folder that was lost, nothing of ours can be told; the refusal names the way
// back.
func TestWithAnotherKeyTheRefusalNamesTheVariable(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.reviewed()
	b.loseState()
	b.options.Proof.Key = func() ([]byte, error) { return []byte("another key for tests, of 32 byte"), nil }
	e, _ := b.mustRefuse(revising(nil), fault.Conflict)
	if len(e.Violations) == 0 || !strings.Contains(e.Violations[0].Message, "CLAUDEOPS_MARK_KEY") {
		t.Errorf("%+v", e)
	}
	if got := b.status().Revise; !strings.HasPrefix(got, "no: ") || !strings.Contains(got, "CLAUDEOPS_MARK_KEY") {
		t.Errorf("status says %q", got)
	}
}
