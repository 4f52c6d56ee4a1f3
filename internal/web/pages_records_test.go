package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/testkit/must"
	"github.com/claudeops/claudeops/internal/web/views"
)

// rows are the numbers of the rows of the audit that a page shows.
func (d document) rows() (out []string) {
	for _, tr := range d.find("tr") {
		if id, found := strings.CutPrefix(attr(tr, "id"), "row-"); found {
			out = append(out, id)
		}
	}
	return out
}

func TestRecordsAreFoundByWhatPeopleLookFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	add := func(a record.Attempt) {
		t.Helper()
		a.Time, a.RequestID = w.Now(), "r-"+a.Action+a.Caller
		w.record(a)
	}
	add(record.Attempt{Action: record.ActionCreate, Caller: "watcher (claude-code 2.1)", Door: record.DoorMCP,
		Owner: "joe", Repo: "infra", Title: "Warn about inodes",
		Paths: []string{"checks/inodes.md"}, Outcome: record.OutcomeRefused, Code: fault.DuplicatePR,
		Message: "#9 is open on the same file"})
	w.advance(10 * 24 * time.Hour)
	add(record.Attempt{Action: record.ActionCreate, Caller: "patcher 3", Door: record.DoorMCP, Owner: "joe", Repo: "infra",
		Title: "Look at timers", Outcome: record.OutcomeDryRun})
	add(record.Attempt{Action: "review.approve", Caller: "ben", Door: record.DoorWeb, Owner: "joe", Repo: "infra",
		PRNumber: 41, Title: "Drop the proxy", Outcome: record.OutcomeDone})
	add(record.Attempt{Action: "token.create", Caller: "anna", Door: record.DoorCLI, Outcome: record.OutcomeDone,
		Message: "token ci"})
	for query, want := range map[string]string{
		"": "4 3 2 1", "q=inodes": "1", "q=checks/inodes": "1", "q=%2341": "3", "q=4": "4", "q=nothing+like+it": "",
		"who=ben": "3", "what=tokens": "4",
		"what=proposals": "2 1", "what=reviews": "3", "result=refused": "1", "result=done": "4 3", "how=web": "3",
		"days=7": "4 3 2", "days=30": "4 3 2 1",
		"result=refused&days=7": "", "q=timers&how=mcp": "2", "q=timers&what=tokens": "",
	} {
		d := w.page("/audit?"+query, 200)
		if got := strings.Join(d.rows(), " "); got != want {
			t.Errorf("%s: rows %s, want %s", query, got, want)
		}
		if want == "" {
			d.has("Nothing fits")
		}
	}
	d := w.page("/audit", 200)
	d.has("was refused Warn about inodes joe/infra · #9 is open on the same file W watcher Refused agent, over MCP",
		"patcher Dry run", "approved #41 Drop the proxy joe/infra", "made a token token ci")
	d.lacks("create_pr", "duplicate_pr", "dry_run", "mcp ")
	if !slices.Contains(d.links(), "/audit/1") {
		t.Errorf("no row leads to its page: %v", d.links())
	}
	for _, query := range []string{"what=odd", "days=0", "days=x", "how=door", "zz=1"} {
		w.page("/audit?"+query, 400)
	}
}

// Activity, the page of a row, REST and the export say one sentence of each act, whatever it is and however it ended.
func TestAllReadersSayTheSameOfAnAct(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	r, n := rand.New(rand.NewPCG(39, 9)), 0
	some := func(of ...string) string { return of[r.IntN(len(of))] }
	sentences := map[int64]string{}
	for range 6 { // as many rows as the overview shows
		for range 8 {
			n++
			a := record.Attempt{Time: w.Now(), RequestID: fmt.Sprint("act-", n),
				Door:   record.Door(some("mcp", "web", "rest", "cli")),
				Caller: some("company:ann", "uid 0 (root)", "watcher (claude-code 2.1)", "", `odd "name" <b>`),
				Action: some(record.ActionCreate, record.ActionPromote, record.ActionReviewMerge, "review.approve", "session.start",
					"token.create", "pause", "deploy_apply", "deploy.rollback", record.ActionPullGone),
				Outcome: record.Outcome(some("done", "refused", "failed", "dry_run")), Title: some("", "", "Check <i>inodes</i>")}
			if r.IntN(2) == 0 {
				a.Owner, a.Repo, a.Provider = "joe", "infra", "fake"
			}
			if a.Outcome == record.OutcomeRefused || a.Outcome == record.OutcomeFailed {
				a.Code = fault.TierDenied
			}
			w.record(a)
		}
		for _, entry := range w.get("/api/v1/audit?limit=8").json["entries"].([]any) {
			e := entry.(map[string]any)
			sentences[int64(e["seq"].(float64))] = e["act"].(string)
		}
		shown := 0
		for _, li := range w.page("/", 200).find("li") {
			if id, is := strings.CutPrefix(attr(li, "id"), "did-"); is {
				seq, _ := strconv.ParseInt(id, 10, 64)
				shown++
				if got := wordsOf(li); sentences[seq] == "" || !strings.Contains(got, unquoted(sentences[seq])) {
					t.Errorf("REST says %q, the overview %q", sentences[seq], got)
				}
			}
		}
		if shown == 0 {
			t.Error("the overview shows nothing")
		}
	}
	for seq, sentence := range sentences {
		if got := wordsOf(w.page(fmt.Sprint("/audit/", seq), 200).find("h1")[0]); got != unquoted(sentence) {
			t.Errorf("REST says %q, the page of the row %q", sentence, got)
		}
	}
	exported := w.exported()
	for _, e := range exported {
		if e.Act != sentences[e.Seq] {
			t.Errorf("REST says %q, the export %q", sentences[e.Seq], e.Act)
		}
	}
	if len(exported) != n {
		t.Errorf("%d of %d rows are exported", len(exported), n)
	}
}

// exported are the rows of the audit that can be downloaded.
func (w *world) exported() (rows []record.AuditEntry) {
	w.Helper()
	a := w.get("/audit.jsonl")
	if kind := a.Header.Get("Content-Type"); kind != "application/jsonl; charset=utf-8" {
		w.Errorf("the content type is %s", kind)
	}
	for line := range bytes.Lines(a.body) {
		var e record.AuditEntry
		must.Do(w, json.Unmarshal(line, &e))
		rows = append(rows, e)
	}
	return rows
}

// unquoted returns a sentence as pages show it, which put no title into quotes.
func unquoted(sentence string) string {
	return strings.ReplaceAll(sentence, `"Check <i>inodes</i>"`, "Check <i>inodes</i>")
}

// wordsOf returns the text of an element.
func wordsOf(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func TestARowOfTheRecordsHasAPageWithItsPlaceInTheChain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.refuse(3)
	rows := w.attempts()
	d := w.page("/audit/2", 200)
	d.has("Records Row 2", "File is protected.", "Code scope_denied", rows[1].Hash, rows[1].PrevHash, "somebody, API",
		"Files Dockerfile")
	links := d.links()
	if !slices.Contains(links, "/audit/1") || !slices.Contains(links, "/audit/3") {
		t.Errorf("links %v", links)
	}
	if slices.Contains(w.page("/audit/3", 200).links(), "/audit/4") ||
		slices.Contains(w.page("/audit/1", 200).links(), "/audit/0") {
		t.Error("it leads to rows that are not there")
	}
	for _, row := range []string{"4", "-1", "x"} {
		w.page("/audit/"+row, 404)
	}
}

func TestAnAddressThatLeadsNowhereKeepsTheNavigationAndOffersASearch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.refuse(1)
	d := w.page("/pulls/fake/joe/410", 404)
	d.has("This page does not exist", "There is nothing at /pulls/fake/joe/410.",
		"Overview Changes Agents Records Settings", "You are somebody")
	if !slices.Contains(d.fields()["q"], "410") {
		t.Error("nothing can be searched for")
	}
	w.page("/sessions/none", 404).has("There is nothing at /sessions/none. There is no session \"none\".")
	w.says(w.status(w.get("/nowhere", bearer("cops_no"), browser), 404), `!aria-label="Main"`)
}

func TestWithoutAConfigurationThePageOfDeploymentsSaysHowToBegin(t *testing.T) {
	t.Parallel()
	w, dir, _ := deployedWorld(t)
	must.Do(t, os.Remove(filepath.Join(dir, "../../../agentpack/repo/agentpack.yaml")))
	d := w.page("/deployments", 200)
	d.has("Nothing is set up to be deployed yet", "claudeops deploy init", "claudeops deploy plan",
		"claudeops deploy apply --yes")
	d.lacks("not_found", "Does not exist")
}

func TestASessionIsOfferedOnlyWhereItCanStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.signedIn()
	w.page("/sessions", 200).has("Start a session")
	w.agents.plan.Missing = "there is no claude to run"
	d := w.page("/sessions", 200)
	d.has("No session can start here: there is no claude to run.")
	d.lacks("Start a session")
	w.page("/sessions/schedule", 200).has("Nothing is scheduled", "CLAUDEOPS_INTERVAL=1h")
	id := w.begun(sessions.Record{ID: "run-1", EndedAt: w.Now(), Task: sessions.Task{Note: "look at dns"},
		Ending: sessions.Ending{State: sessions.StateLimit}})
	w.page("/sessions/"+id, 200).lacks("Run it again")
	w.agents.plan.Missing = ""
	w.page("/sessions/"+id, 200).has("Run it again", "Hit its limit.", "CLAUDEOPS_MAX_TURNS")
}

func TestTheTimelineOfASessionIsNarrowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	id := w.begun(sessions.Record{ID: "run-1"})
	w.said(id, 1, sessions.Event{Kind: "text", Text: "I look."},
		sessions.Event{Kind: "tool_use", Tool: "Bash", Text: `{"command":"df -h"}`},
		sessions.Event{Kind: "tool_result", Text: "93 %"}, sessions.Event{Kind: "denied", Tool: "WebFetch"})
	w.record(record.Attempt{
		Time: w.Now(), RequestID: "r", Action: record.ActionCreate, Door: record.DoorMCP, Owner: "joe", Repo: "infra",
		Title:   "Warn about inodes",
		Outcome: record.OutcomeRefused, Code: fault.DuplicatePR, Message: "#9 is open", Session: id,
	})
	const said, called, got, denied, refused = "I look.", "Ran df -h , 0 ms 93 %", "All 4", "Was refused the tool WebFetch", "Proposal refused: Warn about inodes joe/infra · #9 is open"
	all := []string{said, called, got, denied, refused}
	for show, want := range map[string][]string{"": all, "tools": {called, got}, "proposals": {got, refused},
		"errors": {got, denied, refused}} {
		d := w.page("/sessions/"+id+"?"+url.Values{"show": {show}}.Encode(), 200)
		for _, text := range all {
			if slices.Contains(want, text) {
				d.has(text)
			} else {
				d.lacks(text)
			}
		}
	}
	w.page("/sessions/"+id+"?show=odd", 400)
}

func TestTheAuditIsShownVerifiedAndGivenOutWhole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.page("/audit", 200).has("Nothing is recorded yet", "The record is being verified")
	w.verify()
	w.page("/audit", 200).has("The record is whole: it has no row yet")
	const most = 70 // three pages
	w.refuse(most)
	w.page("/audit?before=4", 200).has("Newer")
	w.page("/audit?after=67", 200).has("Older")
	for _, list := range []string{"/audit", "/changes"} {
		var rows [2][]string
		for i, sort := range []string{"", "?sort=oldest"} {
			on, last := w.pagesThrough(list+sort, "next")
			back, _ := w.pagesThrough(last, "prev")
			slices.Reverse(back)
			if rows[i] = slices.Concat(on...); !slices.Equal(rows[i], slices.Concat(back...)) || len(rows[i]) != most {
				t.Errorf("%s%s: %d rows, %d pages back", list, sort, len(rows[i]), len(back))
			}
		}
		if slices.Reverse(rows[1]); !slices.Equal(rows[0], rows[1]) {
			t.Errorf("%s: %d rows, %d the oldest first", list, len(rows[0]), len(rows[1]))
		}
	}
	w.refuse(603 - most) // more than are exported at a time
	w.verify()
	w.page("/audit", 200).has("The record is whole up to row 603, verified", "Refused", "was refused Check inodes, too")
	exported, prev := w.exported(), ""
	for i, row := range exported {
		if row.Seq != int64(i+1) || i > 0 && row.PrevHash != prev {
			t.Fatalf("line %d: %+v", i, row)
		}
		prev = row.Hash
	}
	if len(exported) != 603 {
		t.Errorf("%d rows are exported", len(exported))
	}
}

// pagesThrough returns the ids of the rows of each page from one on, as the links with a relation lead, and the last
// page's address.
func (w *world) pagesThrough(at, rel string) (pages [][]string, last string) {
	w.Helper()
	path := at[:strings.IndexAny(at+"?", "?")]
	for at != "" {
		d := w.page(at, 200)
		var ids []string
		for _, tr := range d.within(d.find("tbody")[0]).find("tr") {
			ids = append(ids, attr(tr, "id"))
		}
		pages, last, at = append(pages, ids), at, ""
		for _, a := range d.find("a") {
			if attr(a, "rel") == rel {
				at = path + attr(a, "href")
			}
		}
	}
	return pages, last
}

// failing gives out one page and then fails.
type failing struct{ views.Audit }

func (f failing) Page(ctx context.Context, q record.AuditQuery) ([]record.RecordedAttempt, error) {
	if q.After > 0 {
		return nil, fault.New(fault.Internal, "the disk is gone")
	}
	q.Limit = 2
	return f.Audit.Page(ctx, q)
}

func TestADownloadThatFailsIsCutOffAndNotEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.refuse(5)
	w.web.Records.Audit = failing{w.web.Records.Audit}
	w.build()
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
			t.Errorf("the handler ended with %v", err)
		}
	}()
	w.get("/audit.jsonl")
	t.Error("the handler returned as if the body were whole")
}
