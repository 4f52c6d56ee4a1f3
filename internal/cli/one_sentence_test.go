package cli_test

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/claudeops/claudeops/internal/records/record"
)

// noticesOfTest receives the notices of a server.
type noticesOfTest struct {
	*httptest.Server
	mu  sync.Mutex
	got map[string]noticeOfTest // by the request id
}

// noticeOfTest has the parts of a notice that tell an act.
type noticeOfTest struct {
	Event      record.Event
	RequestID  string `json:"request_id"`
	Who, Did   string
	Number     int
	Title      string
	Repository string
	Reason     string
}

func newNoticesOfTest(t *testing.T) *noticesOfTest {
	n := &noticesOfTest{got: map[string]noticeOfTest{}}
	n.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var one noticeOfTest
		if err := json.Unmarshal(raw, &one); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.got[one.RequestID] = one
	}))
	t.Cleanup(n.Close)
	return n
}

func (n *noticesOfTest) of(id string) (noticeOfTest, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	one, found := n.got[id]
	return one, found
}

// sentence is the act as a notice tells it.
func (n noticeOfTest) sentence() string {
	if n.Event == record.EventRefused {
		n.Number = 0
	}
	return record.Act{Who: n.Who, Verb: n.Did, Number: n.Number, Title: n.Title, Repository: n.Repository,
		Reason: n.Reason}.Sentence(strings.TrimSpace)
}

// rowOfTest is a row of the audit as REST has it.
type rowOfTest struct {
	Seq       int64
	RequestID string `json:"request_id"`
	Action    string
	Outcome   record.Outcome
	Number    int `json:"pr_number"`
	Act       string
}

// TestAnActIsOneSentenceWhereverItIsTold has people and agents act in many ways, and compares what REST, the terminal,
// the export, the pages, the steps of a change and the notices say of each.
func TestAnActIsOneSentenceWhereverItIsTold(t *testing.T) {
	t.Parallel()
	notices := newNoticesOfTest(t)
	w := newPeopleWorld(t, map[string]string{"CLAUDEOPS_WEBHOOK_URL": notices.URL,
		"CLAUDEOPS_WEBHOOK_SECRET": "a-secret-of-the-notices-of-this-test"})
	agent := w.secretOf("token", "create", "--agent", "--name", "watcher", "--tier", "2")
	w.serving(func(address string) {
		w.actInManyWays(address, agent)
		rows := w.rowsOverREST(address)
		w.compareTerminal(rows)
		w.comparePages(address, rows)
		told := 0
		for _, row := range rows {
			if row.Action != record.ActionReviewMerge && row.Action != "review.close" && row.Outcome != record.OutcomeOpened {
				continue
			}
			if row.Outcome == record.OutcomeRefused || row.Seq <= rowsOfSeed {
				continue
			}
			told++
			w.becomes("notified of "+row.Act, func() bool { _, found := notices.of(row.RequestID); return found })
			if one, _ := notices.of(row.RequestID); one.sentence() != row.Act {
				t.Errorf("REST says %q, the notice %q", row.Act, one.sentence())
			}
		}
		if told < 4 {
			t.Errorf("%d notices were compared", told)
		}
	})
}

// secretOf makes a token as the user of the operating system.
func (w *peopleWorld) secretOf(args ...string) string {
	w.Helper()
	out, errs, code := runCommand(w, lookupIn(w.env), append(args, "--json")...)
	if code != 0 {
		w.Fatalf("%d %s%s", code, out, errs)
	}
	return decode[struct{ Token string }](w, out).Token
}

// actInManyWays leaves rows of every kind: of a user of the operating system, of ann's token and of an agent, that were
// done, refused and tried.
func (w *peopleWorld) actInManyWays(address, agent string) {
	w.Helper()
	w.proposes(address, agent)
	w.proposes(address, "")
	w.calls(address, agent, "create_pr", map[string]any{"repo_owner": "demo", "repo_name": "home", "title": "Refused",
		"body": "Why: x", "files": []map[string]any{{"path": ".github/workflows/x.yml", "action": "create", "content": "x"}}})
	root := lookupIn(w.env)
	for _, args := range [][]string{
		{"review", "comment", "1", "--repo", "demo/home", "--comment", "A word."},
		{"review", "approve", "1", "--repo", "demo/home"}, {"review", "merge", "1", "--repo", "demo/home", "--force"},
		{"review", "approve", "99", "--repo", "demo/home"},
		{"review", "close", "1", "--repo", "demo/other"}, {"review", "lift-cooldown", "1", "--repo", "demo/other"},
		{"pause", "--repo", "demo/other"}, {"resume", "--repo", "demo/other"},
		{"pr", "create", "--repo", "demo/home", "--title", "By root", "--body", "Why: x", "--create",
			"checks/root.md=" + w.dir + "/short.md"},
	} {
		if out, code := w.command(root, args...); code > 1 && args[2] != "99" {
			w.Logf("%v: %d %s", args, code, out)
		}
	}
	for _, args := range [][]string{{"request-changes", "2", "--repo", "demo/home", "--comment", "Say why."},
		{"approve", "3", "--repo", "demo/home"}, {"close", "2", "--repo", "demo/home"}} {
		w.throughCLI(append([]string{"review"}, args...)...)
	}
}

func (w *peopleWorld) rowsOverREST(address string) (out []rowOfTest) {
	w.Helper()
	_, text := w.get(address+"/api/v1/audit?limit=100", w.bearer(""))
	rows := decode[struct{ Entries []rowOfTest }](w, text).Entries
	if len(rows) < 15 {
		w.Fatalf("%d rows: %s", len(rows), text)
	}
	return rows
}

// compareTerminal asks audit list, as JSON and as text, and audit show.
func (w *peopleWorld) compareTerminal(rows []rowOfTest) {
	w.Helper()
	var list struct{ Items []rowOfTest }
	w.read(&list, "audit", "list", "--limit", "100")
	said := map[int64]string{}
	for _, item := range list.Items {
		said[item.Seq] = item.Act
	}
	text, _ := w.command(w.plain(), "audit", "list", "--limit", "100", "--long")
	for _, row := range rows {
		if said[row.Seq] != row.Act {
			w.Errorf("REST says %q, audit list as JSON %q", row.Act, said[row.Seq])
		}
		if !strings.Contains(oneLine(text), oneLine(row.Act)) {
			w.Errorf("REST says %q, and audit list does not", row.Act)
		}
		if shown, _ := w.command(w.plain(), "audit", "show", fmt.Sprint(row.Seq)); !strings.HasPrefix(shown, row.Act+"\n") {
			w.Errorf("REST says %q, audit show %q", row.Act, shown[:min(len(shown), 200)])
		}
	}
}

// comparePages asks the export, the activity, the page of each row and the steps of each change.
func (w *peopleWorld) comparePages(address string, rows []rowOfTest) {
	w.Helper()
	page := func(path string) string {
		_, text := w.get(address+path, w.bearer(""))
		return text
	}
	exported := map[int64]string{}
	for line := range strings.Lines(page("/audit.jsonl")) {
		row := decode[rowOfTest](w, line)
		exported[row.Seq] = row.Act
	}
	activity, steps := regexp.MustCompile(`(?s)<li[^>]* id="did-(\d+)".*?</li>`), 0
	shown := map[string]string{}
	for _, li := range activity.FindAllStringSubmatch(page("/"), -1) {
		shown[li[1]] = wordsOfPage(li[0])
	}
	for _, row := range rows {
		if exported[row.Seq] != row.Act {
			w.Errorf("REST says %q, the export %q", row.Act, exported[row.Seq])
		}
		want := strings.ReplaceAll(row.Act, `"`, "")
		if got := shown[fmt.Sprint(row.Seq)]; got != "" && !strings.Contains(got, want) {
			w.Errorf("REST says %q, the activity %q", row.Act, got)
		}
		if got := wordsOfPage(page(fmt.Sprint("/audit/", row.Seq))); !strings.Contains(got, want) {
			w.Errorf("REST says %q, the page of the row does not", row.Act)
		}
		step, is := stepOfTest(row)
		if !is {
			continue
		}
		repo := row.Act[strings.LastIndex(row.Act, " in ")+len(" in "):]
		steps++
		if got := wordsOfPage(page(fmt.Sprintf("/pulls/local/%s/%d", repo, row.Number))); !strings.Contains(got, step) {
			w.Errorf("REST says %q, and the change has no step %q: %s", row.Act, step, got)
		}
	}
	if len(shown) == 0 || steps < 8 {
		w.Errorf("%d acts are shown, and %d steps", len(shown), steps)
	}
}

// stepOfTest is the act without the change: who did what.
func stepOfTest(row rowOfTest) (step string, is bool) {
	what := strings.HasPrefix(row.Action, "review.") && row.Outcome == record.OutcomeDone ||
		row.Outcome == record.OutcomeOpened
	step, _, found := strings.Cut(row.Act, " #")
	for _, preposition := range []string{" to", " on", " of"} {
		step = strings.TrimSuffix(step, preposition)
	}
	return step, what && found
}

// wordsOfPage is the text of a part of a page.
func wordsOfPage(text string) string {
	bare := regexp.MustCompile(`(?s)<(script|style)[^>]*>.*?</(script|style)>|<[^>]*>`).ReplaceAllString(text, "")
	return strings.ReplaceAll(oneLine(html.UnescapeString(bare)), `"`, "")
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
