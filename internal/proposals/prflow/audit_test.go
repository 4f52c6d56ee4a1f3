package prflow_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/proposals/prflow"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/settings/policy"
)

func requireSink(t *testing.T) policy.Policy {
	t.Helper()
	return mustPolicy(t, "audit: {require_sink: true}")
}

func TestNothingIsProposedWhileARequiredSinkFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		exported func(context.Context) error
		code     fault.Code
		says     string
	}{
		"there is none": {nil, fault.Misconfigured, "there is none"},
		"it fails": {func(context.Context) error {
			return fault.New(fault.UpstreamError, "the audit could not be exported to the sink x: it answered 500")
		}, fault.UpstreamError, "it answered 500"},
		"it does not hold what it has taken": {func(context.Context) error {
			return fault.New(fault.Misconfigured, "it was shortened")
		}, fault.Misconfigured, "it was shortened"},
	} {
		for _, dryRun := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dry run %t", name, dryRun), func(t *testing.T) {
				b := newBench(t)
				b.options.Authority.Policy, b.options.Authority.DryRun, b.options.Proof.Exported = requireSink(
					t), dryRun, test.exported
				e, row := b.mustRefuse(createRequest(nil), test.code)
				if !strings.Contains(e.Message, test.says) || !strings.Contains(e.Message, "audit.require_sink") {
					t.Errorf("the message is %q", e.Message)
				}
				at := slices.IndexFunc(row.Verdicts, func(v record.Verdict) bool { return v.Gate == record.GateAudit })
				if at < 0 || row.Verdicts[at].Ruling != record.Deny {
					t.Errorf("verdicts %+v", row.Verdicts)
				}
			})
		}
	}
}

func TestASinkThatIsNotRequiredOrWorksStopsNoProposal(t *testing.T) {
	t.Parallel()
	asked := 0
	works := func(context.Context) error { asked++; return nil }
	b := newBench(t)
	b.options.Authority.Policy, b.options.Proof.Exported = requireSink(t), works
	b.mustOpen(createRequest(nil))
	if asked == 0 {
		t.Error("the sink was not asked")
	}
	b = newBench(t)
	b.options.Proof.Exported = func(context.Context) error {
		t.Error("asked")
		return fault.New(fault.UpstreamError,
			"no")
	}
	b.mustOpen(createRequest(nil))
}

// markOf returns the content of a body's mark, unverified.
func markOf(t *testing.T, body string) map[string]any {
	t.Helper()
	found := regexp.MustCompile(`<!-- claude-ops:v1 ([\w-]+) [\w-]{43} -->\n$`).FindStringSubmatch(body)
	if found == nil {
		t.Fatalf("no mark in %s", body)
	}
	payload, err := base64.RawURLEncoding.DecodeString(found[1])
	var m map[string]any
	if err == nil {
		err = json.Unmarshal(payload, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAMarkHasTheHeadBeforeTheProposal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.mustOpen(nth("a"))
	if head := markOf(t, b.body(first.Number))["audit"]; head != nil {
		t.Errorf("the audit was empty, and the mark has the head %v", head)
	}
	seq, hash, err := b.store.Audit.Head(t.Context())
	b.must(err)
	second := b.mustOpen(nth("b"))
	got, err := prflow.New(b.options).Reader().HeadsAt(t.Context(), "fake", "joe", "infra", time.Time{})
	if err != nil || got.Marks != 2 || len(got.Heads) != 1 || got.Heads[0].Seq != seq || got.Heads[0].Hash != hash {
		t.Errorf("got %+v, %v; want row %d, %s", got, err, seq, hash)
	}
	head, ok, err := prflow.New(b.options).Reader().HeadOf(t.Context(), "fake", "joe", "infra", second.Number)
	if err != nil || !ok || head.Seq != seq || head.Hash != hash {
		t.Errorf("of the one: %+v, %t, %v", head, ok, err)
	}
	if _, ok, err := prflow.New(b.options).Reader().HeadOf(t.Context(), "fake", "joe", "infra", first.Number); ok ||
		err != nil {
		t.Errorf("of one without a head: %t, %v", ok, err)
	}
}

func TestHeadsInMarksOfAnotherKeyDoNotCount(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustOpen(nth("a"))
	b.mustOpen(nth("b"))
	b.options.Proof.Key = func() ([]byte, error) { return []byte("another key, of 32 bytes--------"), nil }
	got, err := prflow.New(b.options).Reader().HeadsAt(t.Context(), "fake", "joe", "infra", time.Time{})
	if err != nil || got.Marks != 0 || len(got.Heads) != 0 || got.Others != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// kept returns the recorded part of the change that a refused attempt asked for.
func (b *bench) kept(row record.Attempt) *record.RefusedChange {
	b.Helper()
	kept, err := b.store.History.Wanted(b.Context(), row.RequestID)
	b.must(err)
	return kept
}

func TestWhatARefusedAttemptWantedIsKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	edit := file("checks/disk.md", "update")
	delete(edit, "content")
	edit["edits"] = []any{map[string]any{"old": "nowhere", "new": "Look twice."}}
	_, row := b.mustRefuse(createRequest(files(file("prompts/x.md", "create", "# X\n"), file("checks/old.md", "delete"),
		edit)),
		fault.ScopeDenied)
	got := b.kept(row)
	if got == nil || got.Body.Text == "" || len(got.Files) != 3 {
		t.Fatalf("%+v", got)
	}
	want := record.RefusedFile{Path: "prompts/x.md", Action: gitprovider.ActionCreate,
		RefusedText: record.RefusedText{Text: "# X\n"}}
	if got.Files[0] != want || got.Files[1].Action != gitprovider.ActionDelete || got.Files[1].Text != "" ||
		got.Files[2].Text != "Look twice." || !got.Files[2].Edits {
		t.Errorf("%+v", got.Files)
	}
}

func TestATextWithASecretIsNotKeptAndTheOthersAre(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	token := "ghp_" + strings.Join([]string{"z9Kq2LmX", "7vTbR4Wn", "8cYd1FgH", "5jPs3AuE", "6oZi"}, "")
	_, row := b.mustRefuse(createRequest(files(file("checks/a.md", "create", "x\n"+token+"\n"),
		file("checks/b.md", "create", "# B\n"))), fault.ContentDenied)
	got := b.kept(row)
	if got == nil || got.Files[0].Text != "" || got.Files[0].Withheld != "rule secret:github-pat, line 2" ||
		got.Files[1].Text != "# B\n" {
		t.Errorf("%+v", got)
	}
	_, row = b.mustRefuse(createRequest(with("title", token)), fault.ContentDenied)
	if got := b.kept(row); got != nil {
		t.Errorf("with a secret in the title: %+v", got)
	}
	large := strings.Repeat("x\n", 150<<10)
	_, row = b.mustRefuse(createRequest(files(file("checks/a.md", "create", large), file("checks/b.md", "create",
		"# B\n"))),
		fault.ContentDenied)
	if got := b.kept(row); got == nil || got.Files[0].Text != "" || got.Files[0].Withheld == "" ||
		got.Files[1].Text != "# B\n" {
		t.Errorf("with a file that is not searched: %+v", got)
	}
}

func TestWhatBecameAProposalIsNotKeptTwice(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.mustOpen(createRequest(nil))
	if got := b.kept(b.attempts()[0]); got != nil {
		t.Errorf("%+v", got)
	}
}

func TestOfALongTextTheBeginningIsKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	long := strings.Repeat("a line ü\n", 5000)
	_, row := b.mustRefuse(createRequest(func(r map[string]any) {
		r["body"] = "## Why\n\n" + strings.Repeat("Because. ", 500)
		r["files"] = []any{file("prompts/x.md", "create", long), file("prompts/y.md", "create", "# Y\n")}
	}), fault.ScopeDenied)
	got := b.kept(row)
	if got == nil || len(got.Files) != 2 {
		t.Fatalf("%+v", got)
	}
	first := got.Files[0]
	sum := sha256.Sum256([]byte(long))
	if len(first.Text) < 500 || !strings.HasPrefix(long, first.Text) ||
		!strings.Contains(first.Rest, fmt.Sprintf("of %d bytes", len(long))) ||
		!strings.Contains(first.Rest, hex.EncodeToString(sum[:])) {
		t.Errorf("%+v", first)
	}
	if !strings.HasPrefix(got.Body.Text, "## Why") || got.Body.Rest == "" {
		t.Errorf("%+v", got.Body)
	}
}

// databaseSize returns the size of the tables and indexes of the records, in bytes of used pages.
func (b *bench) databaseSize() (size int) {
	b.Helper()
	db, err := sql.Open("sqlite", b.store.Path())
	b.must(err)
	defer func() { _ = db.Close() }()
	const query = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count(), pragma_freelist_count(), " +
		"pragma_page_size()"
	b.must(db.QueryRowContext(b.Context(), query).Scan(&size))
	return size
}

// noise is text of a size of which no part comes twice, so that every index of its parts grows; call makes it another
// one each time.
func textOf(call, size int, unit string) string {
	var text strings.Builder
	state := uint32(call*7919 + 1)
	for text.Len() < size {
		state = state*1664525 + 1013904223
		fmt.Fprintf(&text, "%s%07x", unit, state>>4)
	}
	return text.String()[:size]
}

func TestRefusedCallsDoNotFillTheRecords(t *testing.T) {
	t.Parallel()
	const size, calls, most = 70_000, 8, 12 << 10 // a body has at most 64 KiB
	for name, change := range map[string]func(call int) func(map[string]any){
		"a content outside the scope": func(call int) func(map[string]any) {
			return files(file("prompts/x.md", "create", textOf(call, 60_000, "word ")))
		},
		"a large content": func(call int) func(map[string]any) {
			return files(file("checks/x.md", "create", textOf(call, size, "\n")))
		},
		"a large body": func(call int) func(map[string]any) { return with("body", textOf(call, size, "\n")) },
		"a long title": func(call int) func(map[string]any) { return with("title", textOf(call, size, " ")) },
		"an unreadable title": func(call int) func(map[string]any) {
			return with("title", strings.Repeat("\x01\\\"\u202e", size/6)+fmt.Sprint(call))
		},
		"names": func(call int) func(map[string]any) {
			return func(r map[string]any) {
				r["repo_owner"], r["repo_name"], r["base_branch"] = textOf(call, size/3, "o"), textOf(call, size/3,
					"n"), textOf(call, size/3, "b")
			}
		},
		"many files": func(call int) func(map[string]any) {
			var many []any
			for i := range 120 {
				many = append(many, file(fmt.Sprintf("prompts/%s-%d.md", textOf(call*1000+i, 240, "p"), i), "create",
					textOf(call, 200, "\n")))
			}
			return files(many...)
		},
		"unknown fields": func(call int) func(map[string]any) {
			return func(r map[string]any) {
				for i := range 600 {
					r[fmt.Sprintf("x%s", textOf(call*10_000+i, 80, ""))] = i
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			_, _ = b.create(createRequest(change(0)))
			before := b.databaseSize()
			for call := range calls {
				if result, err := b.create(createRequest(change(call + 1))); err == nil {
					t.Fatalf("not refused: %+v", result)
				}
			}
			each := (b.databaseSize() - before) / calls
			t.Logf("%d bytes each", each)
			if each > most {
				t.Errorf("each refused call adds %d bytes, at most %d", each, most)
			}
			if rows := b.attempts(); len(rows) != calls+1 {
				t.Errorf("%d rows", len(rows))
			}
			b.mustVerify()
		})
	}
}
