package cli

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/agents/credentials"
	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/operation/operationtest"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/records/sessions"
	"github.com/claudeops/claudeops/internal/settings/config"
)

const (
	listedID  = "01M81EQV51VWSKBPTDJXEVK0KR"
	longTitle = "Warn at 80 % of the inodes of /var, since the last three alerts came after the disk was full already"
	cjkTitle  = "磁盘空间检查:在磁盘写满之前发出警告,并说明是哪个分区以及哪个服务写得最多"
	rtlTitle  = "בדיקת מקום בדיסק לפני שהוא מתמלא, עם שם המחיצה 🚀"
)

// TestThePageOfListsAtTheTerminal holds what each list looks like on terminals of 80 and 140 columns, with short, long,
// wide, right-to-left and hostile words.
func TestThePageOfListsAtTheTerminal(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	lists := sampleLists(now)
	for _, width := range []int{80, 140} {
		var page strings.Builder
		for _, list := range lists {
			var text strings.Builder
			list.show(&text)
			laid := surface{width: width, now: now}.lay(harmless(text.String()))
			fmt.Fprintf(&page, "== claudeops %s\n%s\n", list.command, laid)
			for line := range strings.Lines(laid) {
				if n := displayWidth(strings.TrimRight(line, "\n")); n > width {
					t.Errorf("%s: %d columns on a terminal of %d: %q", list.command, n, width, line)
				}
			}
			if strings.Count(text.String(), rowMark+listedID) != strings.Count(laid, "\n"+listedID) ||
				strings.ContainsRune(laid, '\x1b') {
				t.Errorf("%s: an id was cut, or a control character is left, at %d:\n%s", list.command, width, laid)
			}
		}
		operationtest.Golden(t, fmt.Sprintf("testdata/lists-%d.txt", width), []byte(page.String()))
	}
}

type sampleList struct {
	command string
	show    func(w *strings.Builder)
}

func sampleLists(now time.Time) []sampleList {
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	pulls := prflow.ListResult{PRs: []prflow.PRSummary{
		{Number: 7, CreatedAt: operation.TimeCell(ago(3 * time.Hour)), State: "changes_requested", Title: longTitle,
			Files: []string{"checks/inodes.md", "playbooks/full-disk.md"}},
		{Number: 12, CreatedAt: operation.TimeCell(ago(50 * time.Hour)), State: "none", Title: cjkTitle,
			Files: []string{"checks/磁盘.md"}},
		{Number: 104, CreatedAt: operation.TimeCell(ago(time.Minute)), Title: rtlTitle, Files: []string{"checks/disk.md"}},
	}}
	var reviews []reviewEntry
	for _, pr := range pulls.PRs {
		at, _ := time.Parse(time.RFC3339, pr.CreatedAt)
		reviews = append(reviews, reviewEntry{Number: pr.Number, State: "merged", Title: pr.Title, Opened: at,
			Files: pr.Files})
	}
	tags := map[int]string{7: "deletes, runs as root"}
	days := []sessions.UsageGroup{{Day: "2026-11-26", Tier: 2, Sessions: 14, Usage: sessions.Usage{InputTokens: 1_204_512,
		OutputTokens: 90_311, CacheReadTokens: 18_400_000, CacheWriteTokens: 1_100_000, CostUSD: 12.3456,
		CostSource: sessions.CostEstimate}}}
	return []sampleList{
		{"audit list", func(w *strings.Builder) { describeAudit(w, sampleAudit(ago)) }},
		{"session list", func(w *strings.Builder) { sessionRows(w, sampleSessions(ago)) }},
		{"session journal", func(w *strings.Builder) {
			journalRows(w, []sessions.JournalEntry{{Session: listedID, Time: ago(time.Hour), Text: longTitle},
				{Session: listedID, Time: ago(96 * time.Hour), Text: cjkTitle}})
		}},
		{"session usage", func(w *strings.Builder) { usageRows(w, sessions.NewUsageReport(days)) }},
		{"pr list", func(w *strings.Builder) { describeList(w, pulls, tags) }},
		{"pr files", func(w *strings.Builder) {
			fileRows(w, []prflow.ListedFile{{Path: "checks/disk.md", Bytes: 5120, BaseSHA: strings.Repeat("0a", 20)}})
		}},
		{"review list", func(w *strings.Builder) { describeReviewList(w, reviews, tags) }},
		{"config show", func(w *strings.Builder) {
			settingRows(w, []config.Setting{{Name: "CLAUDEOPS_REPOS", Value: strings.Repeat("demo/home-cluster,", 6),
				Source: "the environment file /etc/claudeops/environment"}})
		}},
		{"deploy snapshots", func(w *strings.Builder) {
			snapshotRows(w, [][]string{{"ID", "WHEN", "WHAT", "OF", "TARGETS", "CHANGES", "PROJECT"},
				{"20261126-093000-1a2b", operation.TimeCell(ago(time.Hour)), "apply", "project", "claude cursor codex", "12",
					"/opt/site/a-long-folder/home-cluster"}})
		}},
		{"token list", viewOf(credentials.TokenActs{Now: func() time.Time { return now }}.Operations(),
			sampleTokens(ago))},
		{"login list", viewOf(credentials.LoginActs{}.Operations(), credentials.LoginList{Logins: []credentials.LoginEntry{{
			ID: listedID, Name: "ann with a long name (gitea:ann)", Browser: "Firefox on Linux",
			Since: ago(time.Hour), SeenAt: ago(0)}}})},
		{"connections list", viewOf(credentials.ConnectionActs{}.Operations(), credentials.ConnectionList{
			Connections: []credentials.ConnectionEntry{{ID: listedID, Session: listedID, Tier: 2, DryRun: true, Way: "unix",
				Peer: "pid 4711, uid 1000", Since: ago(5 * time.Minute), Calls: 1}}})},
	}
}

// viewOf shows an answer as the command of the act that lists does, the first one with a view.
func viewOf(acts []operation.Operation, out any) func(w *strings.Builder) {
	at := slices.IndexFunc(acts, func(o operation.Operation) bool { return o.Shown.View != nil })
	return func(w *strings.Builder) { viewRows(w, acts[at].Shown.View(out)) }
}

func sampleAudit(ago func(time.Duration) time.Time) []record.AuditEntry {
	return []record.AuditEntry{
		{Seq: 1204, Time: ago(3 * time.Hour), Caller: "laptop", Door: "mcp", Tier: 2, Outcome: "refused",
			Code: fault.ScopeDenied, Act: "laptop could not propose \"" + longTitle + "\": File is protected"},
		{Seq: 1203, Time: ago(30 * time.Hour), Caller: "session " + listedID, Door: "mcp", Tier: 3, Outcome: "opened",
			PullState: "merged", Act: "session " + listedID + " proposed #12 in demo/home-cluster: " + cjkTitle},
		{Seq: 1202, Time: ago(72 * time.Hour), Caller: "ann\x1b[31m", Door: "web", Tier: 3, Outcome: "failed",
			Code: fault.UpstreamError, Act: "ann could not merge #7: " + rtlTitle},
	}
}

func sampleSessions(ago func(time.Duration) time.Time) []sessions.Record {
	var records []sessions.Record
	for i, state := range sessions.States() {
		r := sessions.Record{ID: listedID, StartedAt: ago(time.Duration(i) * 7 * time.Hour)}
		r.Tier, r.Trigger, r.State, r.Turns = 2, sessions.TriggerSchedule, state, 12
		r.CostUSD, r.CostSource = 0.4321, sessions.CostEstimate
		if r.Counts.Opened = i; state == sessions.StateLimit {
			r.Reason = "it spent $2.01 of its $2.00, most of it on reading the logs of the last night again and again"
		}
		records = append(records, r)
	}
	return records
}

func sampleTokens(ago func(time.Duration) time.Time) credentials.TokenList {
	ended, ends := ago(time.Hour), ago(-90*24*time.Hour)
	return credentials.TokenList{Tokens: []credentials.TokenEntry{
		{ID: listedID, Name: "laptop", MaxTier: 2, CreatedAt: ago(48 * time.Hour), Agent: true, ExpiresAt: &ends,
			Repos: []string{"demo/home-cluster", "demo/infra"}, ReadOnly: true},
		{ID: listedID, Name: "operator", MaxTier: 3, CreatedAt: ago(720 * time.Hour), RevokedAt: &ended},
	}}
}
