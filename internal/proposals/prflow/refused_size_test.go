package prflow_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite"
)

// databaseSize returns the size of the tables and indexes of the records, in bytes of used pages.
func (b *bench) databaseSize() (size int) {
	b.Helper()
	db, err := sql.Open("sqlite", filepath.Join(b.dir, "claudeops.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	const query = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count(), pragma_freelist_count(), " +
		"pragma_page_size()"
	if err := db.QueryRowContext(b.Context(), query).Scan(&size); err != nil {
		b.Fatal(err)
	}
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
	const size, calls, most = 200_000, 16, 12 << 10
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
			for i := range 400 {
				many = append(many, file(fmt.Sprintf("prompts/%s-%d.md", textOf(call*1000+i, 240, "p"), i), "create",
					textOf(call, 200, "\n")))
			}
			return files(many...)
		},
		"unknown fields": func(call int) func(map[string]any) {
			return func(r map[string]any) {
				for i := range 2000 {
					r[fmt.Sprintf("x%s", textOf(call*10_000+i, 80, ""))] = i
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			_, _ = b.create(request(change(0)))
			before := b.databaseSize()
			for call := range calls {
				if result, err := b.create(request(change(call + 1))); err == nil {
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
