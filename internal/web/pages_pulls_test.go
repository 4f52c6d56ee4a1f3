package web_test

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/gitprovider/local"
	"github.com/claudeops/claudeops/internal/gitprovider/providertest"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/proposals/review"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func TestPullRequestsOfAllRepositoriesEachWithItsOwnFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.fake.AddRepo("joe", "other", map[string]string{"README.md": "x"})
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	w.page("/doctor?ask=forges", 200).has("fake:joe/infra 1")
	people := w.fake.World(t, gitprovider.RepoRef{Owner: "joe", Name: "infra"})
	people.Push("claude-ops/fix/x")
	people.OpenPR("claude-ops/fix/x", "Of another installation", "claude-ops")
	w.flow.Authority.Policy.Targets.EnvRepositories = append(w.flow.Authority.Policy.Targets.EnvRepositories,
		pattern(t, "fake:joe/infra"), pattern(t, "joe/other"),
		pattern(t, "gitea:joe/x"), pattern(t, "joe/*"), pattern(t, "fake:joe/missing"))
	w.build()
	d := w.page("/doctor?ask=forges", 200)
	d.has("fake:joe/infra 2 Not in these records: #2 Of another installation", "fake:joe/other None is open",
		"gitea:joe/x Forge is off", "GITEA_TOKEN is not set",
		"fake:joe/missing Does not exist")
	if n := len(d.within(d.find("tbody")[0]).find("tr")); n != 4 {
		t.Errorf("%d repositories", n)
	}
	w.page("/pulls/fake/joe/infra/1", 200).has("Check inodes, too #1", "Needs review",
		"Reviewing and merging happen at the provider")
	for _, target := range []string{"/pulls/fake/joe/infra/99", "/pulls/fake/joe/infra/0", "/pulls/fake/joe/infra/x",
		"/pulls/fake/-joe/infra/1", "/pulls/nothing/joe/infra/1"} {
		w.page(target, 404)
	}
}

// Who wants to see a change whose forge is down is led to what was proposed to it.
func TestAChangeWhoseForgeIsDownIsShownAsItWasProposed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	w.fake.Script.FailBefore("Status", fault.New(fault.UpstreamError, "the host is down"))
	d := w.page("/pulls/fake/joe/infra/1", 502)
	d.has("The forge failed", "What is recorded of it")
	for _, link := range d.within(d.find("main")[0]).find("a") {
		if at := attr(link, "href"); strings.HasPrefix(at, "/proposals/") {
			w.page(at, 200).has("Check inodes, too", "What it changes")
			return
		}
	}
	t.Error("no link leads to what was proposed")
}

func TestAPersonReviewsByAForm(t *testing.T) {
	t.Parallel()
	r := &reviewer{}
	w := reviewing(t, r, nil)
	const at = "/pulls/fake/joe/infra/1"
	d := w.page(at, 200)
	d.has("Approve #1", "Where it stands", "old", "new <i>")
	head := d.fields().Get("head")
	for _, button := range d.find("button") {
		action := attr(button, "value")
		if action == "" { // signs out
			continue
		}
		a := w.submit(at+"/review", url.Values{"action": {action}, "comment": {"Good.\r\nYes."}, "head": {head},
			"force": {"yes"}})
		if action == "close" {
			w.read(a, "close", 409).has("is closed already")
			continue
		}
		if a.StatusCode != 303 || a.Header.Get("Location") != at+"?done="+action {
			t.Errorf("%s: %d %s", action, a.StatusCode, a.body)
		}
		want := review.Request{Provider: "fake", Owner: "joe", Name: "infra", Number: 1, Verb: action, Comment: "Good.\nYes.",
			Head: head, Force: true,
			By: operation.Caller{Actor: record.Actor{Door: record.DoorWeb, Client: "ann"}}}
		got := r.done[len(r.done)-1]
		got.By.Recheck = nil
		if fmt.Sprint(got) != fmt.Sprint(want) || head == "" {
			t.Errorf("%+v", got)
		}
		w.page(a.Header.Get("Location"), 200).has("You")
	}
	if len(r.done) != 4 {
		t.Errorf("%d reviews", len(r.done))
	}
	r.warnings = []string{"the branch was not deleted"}
	w.read(w.submit(at+"/review", url.Values{"action": {"merge"}}), "merge", 200).has("You have merged it",
		"the branch was not deleted")
	for name, form := range map[string]url.Values{"no action": {}, "an unknown one": {"action": {"push"}},
		"two": {"action": {"merge", "close"}}} {
		if a := w.submit(at+"/review", form); a.StatusCode != 400 {
			t.Errorf("%s: %d", name, a.StatusCode)
		}
	}
	reader := w.signIn(w.token("reader", 3, "read", "propose"))
	w.page(at, 200, with(reader)).has("Reviewing needs the scope review")
	w.read(w.submit(at+"/review", url.Values{"action": {"merge"}}, with(reader)), "merge", 403)
	if len(r.done) != 5 || len(r.refused) != 5 || r.refused[4].By.String() != "reader" {
		t.Errorf("%d reviews, refused %+v", len(r.done), r.refused)
	}
}

// longDiff has two parts.
func longDiff() string {
	return "--- a/checks/long.md\n+++ b/checks/long.md\n@@ -1 +1,4001 @@\n-old\n" + strings.Repeat("+new\n", 4001) +
		"--- /dev/null\n+++ b/checks/new.md\n@@ -0,0 +1,2 @@\n+# New\n+Text\n"
}

func TestMergingTakesABoxWhileSomethingWasNotShown(t *testing.T) {
	t.Parallel()
	r := &reviewer{diff: longDiff()}
	w := reviewing(t, r, nil)
	const at = "/pulls/fake/joe/infra/1"
	merge := url.Values{"action": {"merge"}, "comment": {"Take it."}}
	w.read(w.submit(at+"/review", merge), "nothing shown", 409).has("You have not been shown the difference",
		"Merge it all the same", "Take it.")
	if len(r.done) != 0 || len(r.refused) != 1 {
		t.Fatalf("done %+v, refused %+v", r.done, r.refused)
	}
	w.page(at, 200).has("You have not been shown part 2 of 2", "The file goes on in part 2.", "2 files")
	w.read(w.submit(at+"/review", merge), "one part shown", 409).has("part 2 of 2")
	second := w.page(at+"?part=2", 200)
	second.has("continued", "checks/new.md")
	second.lacks("You have not been shown")
	if a := w.submit(at+"/review", merge); a.StatusCode != 303 || len(r.done) != 1 {
		t.Errorf("all shown: %d, done %+v", a.StatusCode, r.done)
	}
	reader := w.signIn(w.token("bob", 3, "read", "review"))
	w.read(w.submit(at+"/review", merge, with(reader)), "another person", 409)
	merge.Set("force", "yes")
	if a := w.submit(at+"/review", merge, with(reader)); a.StatusCode != 303 || len(r.done) != 2 {
		t.Errorf("with the box: %d, done %+v", a.StatusCode, r.done)
	}
}

func TestACommentOnALineIsWrittenBelowIt(t *testing.T) {
	t.Parallel()
	r := &reviewer{diff: longDiff(), texts: map[string]string{"checks/new.md": "# New\n\n| a |\n|---|\n| b |\n"}}
	w := reviewing(t, r, nil)
	const at = "/pulls/fake/joe/infra/1"
	d := w.page(at+"?part=2&on=f2n2", 200)
	d.has("Comment on line 2 of checks/new.md")
	w.page(at+"?part=2&view=read", 200).has("As it reads", "New a b")
	form := d.withID("line-form").fields()
	form.Set("action", "comment")
	form.Set("comment", "Why?")
	a := w.submit(at+"/review", form)
	if to := a.Header.Get("Location"); a.StatusCode != 303 || to != at+"?done=comment&part=2#f2n2" {
		t.Fatalf("%d %s", a.StatusCode, to)
	}
	want := []gitprovider.LineComment{{Path: "checks/new.md", Line: 2, Body: "Why?"}}
	if got := r.done[0]; got.Comment != "" || fmt.Sprint(got.Comments) != fmt.Sprint(want) {
		t.Errorf("%+v", got)
	}
	form.Set("line", "x")
	w.read(w.submit(at+"/review", form), "no line", 400).has("a comment on a line names a file and a line", "Why?")
	w.page(at+"?part=2&on=%3Cx", 200).lacks("Comment on line")
}

func TestAReviewThatIsRefusedComesBackWithItsText(t *testing.T) {
	t.Parallel()
	w := reviewing(t, &reviewer{}, nil)
	const at = "/pulls/fake/joe/infra/1"
	d := w.read(w.submit(at+"/review", url.Values{"action": {"close"}, "comment": {"Not now, <i> please."}}), "refused",
		409)
	d.has("is closed already", "Not now, <i> please.")
	if area := d.withID("do-close-comment").root; attr(area, "aria-invalid") != "true" ||
		attr(area, "aria-describedby") != "do-close-problem" || !hasAttr(area, "autofocus") {
		t.Errorf("the field says not what is wrong: %v", area.Attr)
	}
	for path, to := range map[string]string{at + "/review": at, at + "/review?part=2": at,
		"/proposals/x/promote": "/proposals/x", "/sessions/x/stop": "/sessions/x", "/sign-out": "/"} {
		w.leads(w.get(path, browser), to) // a reload
	}
}

func TestAReviewThatIsRefusedIsRecordedAndDoesNothing(t *testing.T) {
	t.Parallel()
	merge := url.Values{"action": {"merge"}}
	for name, tt := range map[string]struct {
		at     string
		form   url.Values
		status int
		want   string // provider, owner, name, number and action of the row
	}{
		"no action":         {"fake/joe/infra/1", url.Values{}, 400, "fake joe infra 1 review"},
		"an unknown action": {"fake/joe/infra/1", url.Values{"action": {"push"}}, 400, "fake joe infra 1 review"},
		"two actions": {"fake/joe/infra/1", url.Values{"action": {"merge", "close"}}, 400,
			"fake joe infra 1 review"},
		"a repository not on the list": {"fake/joe/other/1", merge, 403, "fake joe other 1 review.merge"},
		"a provider reviewed there":    {"gitea/joe/infra/1", merge, 400, "gitea joe infra 1 review.merge"},
		"a number that is none":        {"fake/joe/infra/x", merge, 404, "fake joe infra 0 review"},
		"a name that is none":          {"fake/-joe/infra/1", merge, 404, "fake -joe infra 1 review"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reviewer{}
			w := reviewing(t, r)
			w.flow.Authority.Policy.Targets.EnvRepositories = []policy.RepoPattern{pattern(t, "joe/infra")}
			w.read(w.submit("/pulls/"+tt.at+"/review", tt.form), name, tt.status)
			if len(r.done) != 0 || len(r.refused) != 1 {
				t.Fatalf("done %+v, refused %+v", r.done, r.refused)
			}
			got := w.attempts()[0]
			text := fmt.Sprint(got.Provider, " ", got.Owner, " ", got.Repo, " ", got.PRNumber, " ", got.Action)
			if text != tt.want || got.Caller != "ann" || got.Outcome != record.OutcomeRefused {
				t.Errorf("recorded %q by %s as %s, want %q", text, got.Caller, got.Outcome, tt.want)
			}
		})
	}
	r := &reviewer{}
	w := reviewing(t, r)
	w.read(w.do("POST", "/pulls/fake/joe/infra/1/review", `{"action":"merge"}`, browser), "not a form", 415)
	if len(r.done) != 0 || len(r.refused) != 1 || r.refused[0].Number != 1 {
		t.Errorf("done %+v, refused %+v", r.done, r.refused)
	}
	r.problem = "policy.yaml:3: unknown key"
	w.read(w.submit("/pulls/fake/joe/infra/1/review", merge), "a broken policy", 403)
	if len(r.done) != 0 || len(r.refused) != 2 {
		t.Errorf("with a broken policy: done %+v, refused %+v", r.done, r.refused)
	}
}

func pattern(t *testing.T, text string) policy.RepoPattern {
	t.Helper()
	p, err := policy.ParseRepoPattern(text)
	must.Do(t, err)
	return p
}

func TestTheOverviewAsksNoForge(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.page("/", 200).has("Nothing waits for reviewers")
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	w.advance(9 * time.Minute)
	w.fake.Script.ForgetCalls()
	w.page("/", 200).has("Check inodes, too Nobody has reviewed it · joe/infra #1 9 min Open")
	for _, call := range w.fake.Script.Calls() {
		if call != "Ping" { // whether it answers at all is asked beside the page
			t.Errorf("the overview asked the provider: %v", call)
		}
	}
	w.seen(1, func(r *record.PullRecord) { r.RemindedAt, r.UpdatedAt = w.Now(), w.Now() })
	front := w.page("/", 200)
	front.has("Nobody has reviewed it, and nobody has acted on it for 9 min")
	front.lacks("will be closed")
}

func TestPeopleSeeWhenAPullRequestWillBeClosedAndThatItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.flow.Authority.Policy.CloseAfter = 30 * 24 * time.Hour })
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	on := w.Now().Add(30 * 24 * time.Hour).Format(time.DateOnly)
	w.advance(8 * 24 * time.Hour)
	w.seen(1, func(r *record.PullRecord) { r.RemindedAt = w.Now() })
	w.page("/", 200).has("it will be closed on " + on + ", unless somebody acts")
	w.page("/pulls/fake/joe/infra/1", 200).has("on " + on + ", unless somebody acts")
	w.fake.World(t, gitprovider.RepoRef{Owner: "joe", Name: "infra"}).Close(1)
	w.seen(1, func(r *record.PullRecord) {
		r.State, r.EndedAt, r.ExpiredAt = gitprovider.StateClosed, w.Now(), w.Now()
	})
	shut := w.page("/pulls/fake/joe/infra/1", 200)
	shut.has("Claude Ops closed as stale")
	shut.lacks("unless somebody acts")
}

// A forge that merges follows a person who has moved the file; what it writes then is not shown, and the page says so.
func TestAChangeToAFileThatTheBaseHasMovedIsMarked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(w *world) { w.flow.Authority.DryRun = true })
	w.want(w.do("POST", "/api/v1/prs", request(files(file("checks/disk.md", "update", "# Disk\n\nnew\n")))), 200, "")
	const says = "has no checks/disk.md any more: if a file was moved, a merge follows it"
	at := "/proposals/" + w.attempts()[0].RequestID
	w.page(at, 200).lacks(says)
	w.flow.Authority.DryRun, w.handler = false, nil
	w.want(w.do("POST", "/api/v1/prs", request(map[string]any{
		"title": "Away", "files": []any{map[string]any{"path": "checks/disk.md", "action": "delete"}},
	})), 201, "")
	w.fake.World(t, gitprovider.RepoRef{Owner: "joe", Name: "infra"}).Merge(1)
	w.page(at, 200).has(says)
}

// The page has the conversation among the reviews, keeps the newest, and counts what it leaves out.
func TestAPullRequestShowsTheNewestThatWasSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	people, can := w.fake.World(t, gitprovider.RepoRef{Owner: "joe", Name: "infra"}).(providertest.Commenter)
	if !can {
		t.Fatal("nobody can comment")
	}
	for i := range 101 {
		w.advance(time.Second)
		people.Comment(1, "ann", fmt.Sprintf("remark %d.", i))
	}
	d := w.page("/pulls/fake/joe/infra/1", 200)
	d.has("remark 100.", "1 older review not shown")
	d.lacks("remark 0.")
}

func TestPagesThatRefreshThemselvesShareAReading(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.want(w.do("POST", "/api/v1/prs", request(nil)), 201, "")
	refresh := header("HX-Request", "true")
	reads := func(edits ...edit) int {
		w.fake.Script.ForgetCalls()
		w.page("/doctor?ask=forges", 200, edits...)
		return w.fake.Script.Count("ListOpen")
	}
	if n := reads(); n != 1 {
		t.Fatalf("a page costs %d lists", n)
	}
	if shared, own := reads(refresh), reads(); shared != 0 || own != 1 {
		t.Errorf("a refresh costs %d lists, a person's look %d", shared, own)
	}
	w.refuse(1)
	if n := reads(refresh); n != 1 {
		t.Errorf("after a change a refresh costs %d lists", n)
	}
	w.advance(16 * time.Second)
	if n := reads(refresh); n != 1 {
		t.Errorf("when the reading is old a refresh costs %d lists", n)
	}

	entered, release := w.fake.Script.Block("ListOpen")
	w.fake.Script.ForgetCalls()
	var group sync.WaitGroup
	group.Go(func() { w.get("/doctor?ask=forges", browser) })
	<-entered
	for range 5 {
		group.Go(func() { w.get("/doctor?ask=forges", browser, refresh) })
	}
	release()
	group.Wait()
	if n := w.fake.Script.Count("ListOpen"); n != 1 {
		t.Errorf("pages at the same time cost %d lists", n)
	}
}

// reviewer is the use case of reviews over the fake's pull requests. It notes what it is asked for.
type reviewer struct {
	*world
	done     []review.Request
	refused  []review.Request
	warnings []string
	problem  string // why the policy cannot be read
	diff     string // "" for a small one
	texts    map[string]string
}

// reviewing is a world with these pull requests, which r reviews, and a person signed in who may do everything.
func reviewing(t *testing.T, r *reviewer, changes ...map[string]any) *world {
	t.Helper()
	w := newWorld(t, func(w *world) { r.world, w.web.Providers.Reviewer = w, r })
	w.signedIn()
	for _, change := range changes {
		w.opened(change)
	}
	return w
}

// service is the use case with the settings of the world as they are now.
func (r *reviewer) service() *review.Service {
	return review.New(review.Options{
		Provider: "fake", Host: reviewHost{r}, Records: r.store.Ledger, Notifier: nobody{}, Pulls: r.store.Pulls,
		Starters: r.store.Pulls.Starters, NewestChange: r.store.Pulls.NewestChange,
		Kernel: operation.NewKernel(operation.KernelOptions{
			Authority: operation.Authority{DryRun: r.flow.Authority.DryRun,
				Rules: operation.Rules{Policy: r.flow.Authority.Policy, Problem: r.problem}},
			Audit: r.store.Ledger, Redact: scanner.Redact, Log: r.flow.Log, Now: r.Now, NewID: r.flow.NewID,
		}),
	})
}

func (r *reviewer) Reviews(provider string) bool { return r.service().Reviews(provider) }

func (r *reviewer) Show(ctx context.Context, provider string, ref gitprovider.RepoRef, number int) (local.Detail,
	error) {
	return r.service().Show(ctx, provider, ref, number)
}

func (r *reviewer) Texts(ctx context.Context, provider string, ref gitprovider.RepoRef, head string, paths []string,
	maxBytes int) (map[string]string, error) {
	return r.service().Texts(ctx, provider, ref, head, paths, maxBytes)
}

func (r *reviewer) Do(ctx context.Context, request review.Request) (review.Outcome, error) {
	out, err := r.service().Do(ctx, request)
	if err != nil {
		r.refused = append(r.refused, request)
	} else {
		r.done = append(r.done, request)
	}
	return out, err
}

func (r *reviewer) Refused(ctx context.Context, request review.Request, why error) error {
	r.refused = append(r.refused, request)
	return r.service().Refused(ctx, request, why)
}

// reviewHost lets everything be done to the fake's pull requests but closing them.
type reviewHost struct{ *reviewer }

func (h reviewHost) Texts(context.Context, gitprovider.RepoRef, string, []string, int) (map[string]string, error) {
	return h.texts, nil
}

func (h reviewHost) Show(ctx context.Context, ref gitprovider.RepoRef, number int) (local.Detail, error) {
	status, err := h.fake.Status(ctx, ref, number)
	return local.Detail{Status: status, Diff: cmp.Or(h.diff, "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new <i>\n")}, err
}

func (h reviewHost) List(ctx context.Context, ref gitprovider.RepoRef, _ gitprovider.State) ([]gitprovider.PullRequest,
	error) {
	return h.fake.ListOpen(ctx, ref, gitprovider.LabelOurs)
}

func (reviewHost) Approve(context.Context, gitprovider.RepoRef, int, local.Note) error { return nil }
func (reviewHost) RequestChanges(context.Context, gitprovider.RepoRef, int, local.Note) error {
	return nil
}
func (reviewHost) Comment(context.Context, gitprovider.RepoRef, int, local.Note) error { return nil }

func (reviewHost) Close(context.Context, gitprovider.RepoRef, int, local.Note) error {
	return fault.New(fault.Conflict, "pull request #1 is closed already")
}

func (h reviewHost) Merge(context.Context, gitprovider.RepoRef, int, local.MergeNote) (local.Merged, error) {
	return local.Merged{Warnings: h.warnings}, nil
}

// nobody sends no notifications.
type nobody struct{}

// Notices implements record.Notifier.
func (nobody) Notices(record.Event, record.Attempt) []record.Notice { return nil }

// Kick implements record.Notifier.
func (nobody) Kick(context.Context) {}
