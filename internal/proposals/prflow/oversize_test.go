package prflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/base/fault"
)

// counting counts the bytes that are searched for secrets.
type counting struct {
	behind *content.Scanner
	bytes  int
}

func (c *counting) Secrets(ctx context.Context, name, text string) ([]content.Secret, error) {
	c.bytes += len(text)
	return c.behind.Secrets(ctx, name, text)
}

func (c *counting) Hide(text string) string { return c.behind.Hide(text) }

func (c *counting) Redact(text string) string { return c.behind.Redact(text) }

func (c *counting) Spread(texts []string) []int {
	for _, text := range texts {
		c.bytes += len(text)
	}
	return c.behind.Spread(texts)
}

// Searching a mebibyte for secrets takes half a second and more, so what is refused for its size is not searched.
func TestWhatIsTooLongIsRefusedWithoutASearch(t *testing.T) {
	t.Parallel()
	const size = 3 << 20
	long := strings.Repeat("a", size)
	many := make([]any, 2000)
	for i := range many {
		many[i] = file(fmt.Sprintf("checks/%s-%d.md", strings.Repeat("a", 200), i), "create", "# A\n")
	}
	tests := map[string]struct {
		change func(map[string]any)
		code   fault.Code
		bytes  int // that may be searched
	}{
		"a title":      {with("title", long), fault.InvalidArgument, 1000},
		"a body":       {with("body", long), fault.InvalidArgument, 1000},
		"a path":       {files(file("checks/"+long+".md", "create", "# A\n")), fault.ScopeDenied, 1000},
		"a content":    {files(file("checks/a.md", "create", long)), fault.ContentDenied, 1000},
		"many files":   {files(many...), fault.InvalidArgument, 100 * 600},
		"unknown keys": {func(r map[string]any) { addUnknown(r, 100_000) }, fault.InvalidArgument, 20_000},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			searched := &counting{behind: scanner}
			b.options.Secrets = searched
			_, row := b.mustRefuse(request(tt.change), tt.code)
			if searched.bytes > tt.bytes {
				t.Errorf("%d bytes were searched", searched.bytes)
			}
			recorded, err := json.Marshal(row)
			if err != nil || len(recorded) > 128<<10 {
				t.Errorf("%d bytes are recorded, %v", len(recorded), err)
			}
		})
	}
}

func addUnknown(r map[string]any, n int) {
	for i := range n {
		r[fmt.Sprintf("unknown%06d", i)] = i
	}
}
