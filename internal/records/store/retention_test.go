package store

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/access"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/testkit/must"
)

func pruneAttempt(removed []record.Pruned) record.Attempt {
	return record.Attempt{Time: noon(), RequestID: "prune", Action: "prune", Outcome: record.OutcomeDone,
		Message: fmt.Sprint(removed)}
}

// aged makes a store in which a proposal of each state is 100 days old, and its clock stands at noon.
func aged(t testing.TB) *Store {
	t.Helper()
	ctx := context.Background()
	c := &clock{noon().AddDate(0, 0, -100)}
	s := openWith(t, Options{Now: c.Now})
	old := func(id string) record.Proposal {
		p := proposal(id, "checks/"+id+".md")
		p.CreatedAt = c.now
		return p
	}
	for _, id := range []string{"opened", "failed", "held", "reviewed"} {
		reserve(t, s, old(id), 0)
	}
	finish(t, s, "opened", record.Progress{State: record.StateOpened, PRNumber: 1, PRURL: "u"})
	finish(t, s, "failed", record.Progress{State: record.StateFailed})
	pr := must.Get(s.LocalPulls.InsertPR(ctx, "demo/home-cluster", gitprovider.PullRequest{Branch: "b", Base: "main",
		State: gitprovider.StateOpen}))(t)
	finish(t, s, "reviewed", record.Progress{State: record.StateOpened, PRNumber: pr.Number, PRURL: "u"})
	// no local pull request has that number
	must.Get(raw(t, s).Exec("UPDATE proposals SET pr_number = 9 WHERE id = 'opened'"))(t)
	dry := old("dry")
	must.Do(t, s.Ledger.Record(ctx, attempt("dry"), &dry, notice("pending")))
	must.Get(s.Replies.TakeKey(ctx, "c", "k", "h", 1000*time.Hour))(t)
	wantEqual(t, s.Access.InsertLogin(ctx, access.Login{Hash: "h", TokenHash: "t", CreatedAt: c.now, SeenAt: c.now}, c.now,
		c.now), nil)
	begin(t, s, "ended", "running")
	ended := agentSession("ended")
	ended.State = sessions.StateSucceeded
	wantEqual(t, s.AgentSessions.SaveSession(ctx, ended), nil)
	for _, id := range []string{"ended", "running"} {
		events := []sessions.Event{{Seq: 1, Time: c.now, Kind: "text", Text: "old"},
			{Seq: 2, Time: noon(), Kind: "text", Text: "young"}}
		wantEqual(t, s.AgentSessions.AppendEvents(ctx, id, events), nil)
	}
	wantEqual(t, s.AgentSessions.AppendJournal(ctx, noting("ended"), c.now, []string{"old"}), nil)
	wantEqual(t, s.AgentSessions.AppendJournal(ctx, noting("running"), noon(), []string{"young"}), nil)
	run := scriptRun("old-run")
	wantEqual(t, s.ScriptRuns().BeginScriptRun(ctx, run), nil)
	wantEqual(t, s.Ledger.Record(ctx, attempt("old-run"), nil), nil)
	c.now = noon()
	wantEqual(t, s.ScriptRuns().SettleScriptRuns(ctx, interrupted), nil)
	unsettled := scriptRun("unsettled-run")
	unsettled.EndsBy = noon().AddDate(1, 0, 0)
	wantEqual(t, s.ScriptRuns().BeginScriptRun(ctx, unsettled), nil)
	young := proposal("young", "checks/young.md")
	wantEqual(t, s.Ledger.Record(ctx, attempt("young"), &young), nil)
	return s
}

func TestPruningRemovesWhatIsOldAndNothingThatIsNeeded(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), aged(t)
	before := noon().AddDate(0, 0, -90)
	want := []record.Pruned{{Kind: "proposals", Rows: 3}, {Kind: "notices", Rows: 0}, {Kind: "idempotency_keys", Rows: 1},
		{Kind: "web_sessions", Rows: 1},
		{Kind: "session_output", Rows: 1}, {Kind: "journal", Rows: 1}, {Kind: "refused_changes", Rows: 0},
		{Kind: "script_runs", Rows: 1}}
	wantEqual(t, must.Get(s.Retention.CountPrunable(ctx, before))(t), want)
	rows := verify(t, s, "").Rows
	wantEqual(t, must.Get(s.Retention.Prune(ctx, before, pruneAttempt))(t), want)

	for id, gone := range map[string]bool{
		"opened": true, "failed": true, "dry": true, "held": false, "reviewed": false, "young": false,
	} {
		p := must.Get(s.History.Proposal(ctx, id))(t)
		if p.PrunedAt.IsZero() == gone || (p.Body == "") != gone || (p.Files[0].Content == "") != gone ||
			p.Files[0].Path != "checks/"+id+".md" || p.Digest != "d-"+id || p.Title == "" {
			t.Errorf("%s: %+v", id, p)
		}
	}
	for id, left := range map[string]int{"ended": 1, "running": 2} {
		wantEqual(t, len(must.Get(s.AgentSessions.SessionEvents(ctx, id, 0))(t)), left)
	}
	noted := must.Get(s.AgentSessions.Journal(ctx, sessions.JournalQuery{}))(t)
	wantEqual(t, []any{len(noted), noted[0].Text}, []any{1, "young"})
	report := verify(t, s, "")
	wantEqual(t, []any{report.OK(), report.Rows}, []any{true, rows + 1}) // nothing went, and the removal is on the record
	wantEqual(t, s.Check(ctx), nil)
}

func TestWhatWasPrunedIsStillRecognised(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), aged(t)
	must.Get(s.Retention.Prune(ctx, noon().AddDate(0, 0, -90), pruneAttempt))(t)
	found := must.Get(s.History.ByDigest(ctx, "d-opened"))(t)
	if len(found) != 1 || found[0].PRNumber != 9 {
		t.Errorf("an identical change is not recognised: %+v", found)
	}
	paths := must.Get(s.History.PathsOf(ctx, "local", "demo", "home-cluster", 9))(t)
	wantEqual(t, paths, []string{"checks/opened.md"})
	wantTaken(t, s, proposal("again", "checks/opened.md"), 0, "opened")
	wantTaken(t, s, proposal("other", "checks/held.md"), 0, "held")
	waiting := must.Get(s.History.WaitingDryRuns(ctx, noon().AddDate(0, 0, -200)))(t)
	if len(waiting) != 1 || waiting[0].ID != "young" {
		t.Errorf("a dry run without contents waits for a person: %+v", waiting)
	}
}

func TestPruningTwiceRemovesNothingMoreAndLeavesNoRow(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), aged(t)
	before := noon().AddDate(0, 0, -90)
	must.Get(s.Retention.Prune(ctx, before, pruneAttempt))(t)
	rows := verify(t, s, "").Rows
	for _, r := range must.Get(s.Retention.Prune(ctx, before, pruneAttempt))(t) {
		wantEqual(t, r.Rows, int64(0))
	}
	wantEqual(t, verify(t, s, "").Rows, rows)
}

func TestManyAreRemovedInSeveralSteps(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	const many = 2*pruneBatch + 1
	for i := range many {
		p := proposal(fmt.Sprintf("p%d", i), "checks/a.md")
		p.CreatedAt = noon().AddDate(0, 0, -100)
		must.Do(t, s.Ledger.Record(ctx, attempt(p.ID), &p))
	}
	removed := must.Get(s.Retention.Prune(ctx, noon().AddDate(0, 0, -90), pruneAttempt))(t)
	wantEqual(t, removed[0].Rows, int64(many))
	wantEqual(t, count(t, s, "SELECT COUNT(*) FROM proposal_files WHERE LENGTH(content) > 0"), 0)
}

// What is removed gives its room back to the disk, and a named kind leaves the others alone.
func TestRemovingWhatSessionsSaidShrinksTheFile(t *testing.T) {
	t.Parallel()
	ctx, s := context.Background(), openNew(t)
	wantEqual(t, s.AgentSessions.BeginSession(ctx, agentSession("long")), nil)
	for seq := 1; seq <= 200; seq++ {
		wantEqual(t, s.AgentSessions.AppendEvents(ctx, "long", []sessions.Event{{Seq: seq, Time: noon().AddDate(0, 0, -40),
			Kind: "text", Text: strings.Repeat("x", 20_000)}}), nil)
	}
	ended := agentSession("long")
	ended.State, ended.Report = sessions.StateSucceeded, "all is well"
	wantEqual(t, s.AgentSessions.SaveSession(ctx, ended), nil)
	wantEqual(t, s.AgentSessions.AppendJournal(ctx, noting("long"), noon().AddDate(0, 0, -40), []string{"a note"}), nil)
	removed := must.Get(s.Retention.Prune(ctx, noon().AddDate(0, 0, -30), pruneAttempt, KindSessionOutput))(t)
	wantEqual(t, removed, []record.Pruned{{Kind: KindSessionOutput, Rows: 200}})
	wantEqual(t, must.Get(s.AgentSessions.Session(ctx, "long"))(t).Report, "all is well")
	wantEqual(t, len(must.Get(s.AgentSessions.Journal(ctx, sessions.JournalQuery{}))(t)), 1)
	if free := freePages(t, s); free != 0 {
		t.Errorf("%d pages of the file are free, and stay in it", free)
	}
	if size, err := s.Size(ctx); err != nil || size == 0 {
		t.Errorf("it takes %d bytes, %v", size, err)
	}
}
