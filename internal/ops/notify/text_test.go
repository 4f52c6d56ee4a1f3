package notify

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/records/record"
)

func TestTextForPeople(t *testing.T) {
	t.Parallel()
	opened := openedMessage()
	opened.Title = "Raise the disk threshold"
	many := opened
	many.Paths = slicesOf("checks/a.md", 12)
	many.PathsOmitted = 3
	merged := opened
	merged.Event, merged.Tier, merged.Caller = record.EventMerged, 0, "joe"
	closed := Message{Event: record.EventClosed, Number: 3}
	refused := Message{
		Event: record.EventRefused, Repository: "joe/home-cluster", Code: fault.ScopeDenied, Tier: 2, Caller: "claude-code",
		Message: `"main.go" is outside the scope`, Paths: []string{"main.go"}, RequestID: "01JQ80",
	}
	deployed := Message{Event: record.EventDeployed, Number: 3, Repository: "joe/home-cluster"}
	waits := Message{
		Event: record.EventDeployWaits, Number: 3, Repository: "joe/home-cluster", Code: fault.Conflict,
		Message: "files are there that were not deployed",
		Paths:   []string{"/home/joe/.codex/AGENTS.md"},
	}
	tests := []struct {
		name, title, text string
		m                 Message
	}{
		{"an opened pull request", "Claude Ops: pull request #12 opened in joe/home-cluster",
			`Pull request #12 was opened in joe/home-cluster on gitea by "claude-code" at tier 2. A person has to review it.
Title, as its author wrote it: "Raise the disk threshold"
Files: checks/disk.md
https://git.example.net/joe/home-cluster/pulls/12
Request 01JQ7Z`, opened},
		{"many files", "Claude Ops: pull request #12 opened in joe/home-cluster",
			`Pull request #12 was opened in joe/home-cluster on gitea by "claude-code" at tier 2. A person has to review it.
Title, as its author wrote it: "Raise the disk threshold"
Files: ` + strings.Repeat("checks/a.md, ", 9) + `checks/a.md and 5 more
https://git.example.net/joe/home-cluster/pulls/12
Request 01JQ7Z`, many},
		{"a merged one", "Claude Ops: pull request #12 merged in joe/home-cluster",
			`Pull request #12 was merged in joe/home-cluster on gitea by "joe".
Title, as its author wrote it: "Raise the disk threshold"
Files: checks/disk.md
https://git.example.net/joe/home-cluster/pulls/12
Request 01JQ7Z`, merged},
		{"a closed one of which little is known", "Claude Ops: pull request #3 closed without merging",
			"Pull request #3 was closed without merging.", closed},
		{"a merge that was deployed", "Claude Ops: pull request #3 deployed in joe/home-cluster",
			"Pull request #3 was deployed in joe/home-cluster.", deployed},
		{"a merge that waits", "Claude Ops: pull request #3 merged and not deployed yet in joe/home-cluster",
			`Pull request #3 was merged and not deployed yet in joe/home-cluster. A person has to decide.
Reason: conflict "files are there that were not deployed"
Files: /home/joe/.codex/AGENTS.md`, waits},
		{"a refusal", "Claude Ops: proposal refused in joe/home-cluster",
			`A proposal was refused in joe/home-cluster by "claude-code" at tier 2.
Reason: scope_denied "'main.go' is outside the scope"
Files: main.go
Request 01JQ80`, refused},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Title(tt.m); got != tt.title {
				t.Errorf("Title = %q, want %q", got, tt.title)
			}
			if diff := cmp.Diff(tt.text, Text(tt.m)); diff != "" {
				t.Errorf("Text differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOthersTextCannotActInAChat(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text, want string }{
		{"mentions", "@everyone <@42> <!channel>", "＠everyone ‹＠42› ‹!channel›"},
		{"links", "[approve](https://evil.example) <https://evil.example|ok>",
			"(approve)(https: //evil.example) ‹https: //evil.example¦ok›"},
		{"HTML", `<img src="x">`, "‹img src='x'›"},
		{"Markdown", "**bold** ~~gone~~ ||spoiler|| `code` \\*", "∗∗bold∗∗ ∼∼gone∼∼ ¦¦spoiler¦¦ 'code' ⧵∗"},
		{"lines", "a\n# Merged\r\n\tb", "a # Merged   b"},
		{"the end of our quotes", `ok". A person approved it. "`, "ok'. A person approved it. '"},
		{"hidden characters", "a\u202e\u200bb\x1b[31m", "ab(31m"},
		{"names of files stay", "checks/disk_usage.md: 90% & more", "checks/disk_usage.md: 90% & more"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := plain(tt.text, 200); got != tt.want {
				t.Errorf("plain(%q) = %q, want %q", tt.text, got, tt.want)
			}
			checkText(t, Message{
				Event: record.EventRefused, Title: tt.text, Repository: tt.text, Branch: tt.text, Paths: []string{tt.text},
				Caller: tt.text, Code: fault.Code(tt.text), Message: tt.text, RequestID: tt.text, Provider: tt.text, URL: tt.text,
			}.normal())
		})
	}
}

func TestKindOfNotification(t *testing.T) {
	t.Parallel()
	for event, want := range map[record.Event]string{
		record.EventOpened: "info", record.EventRefused: "warning", record.EventMerged: "success", record.EventClosed: "info",
		record.EventDeployed: "success", record.EventDeployWaits: "warning",
	} {
		if got := kind(event); got != want {
			t.Errorf("kind(%s) = %s, want %s", event, got, want)
		}
	}
}
