package packages

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudeops/claudeops/internal/system/change"
)

func TestHoldingFindsContentsInPackages(t *testing.T) {
	b := newBench(t)
	b.full("one", "1.0.0", "")
	b.same("install", `{"packages":["one"]}`, map[string]any{"failed": []any{}})
	b.full("one", "1.1.0", "")
	b.full("two", "1.1.0", "")
	of := func(version string) string {
		return change.Hash([]byte("---\nname: pdf\ndescription: Reads PDFs\n---\n# PDF " + version + "\n"))
	}
	for hash, want := range map[string][]Holder{
		of("1.0.0"): {{"one", "1.0.0", "dev", true}},
		of("1.1.0"): {{"one", "1.1.0", "dev", false}, {"two", "1.1.0", "dev", false}}, of("3"): nil,
	} {
		got, complete, err := NewBrowser(b.service).Holding(t.Context(), []string{hash, "none"})
		if diff := cmp.Diff(want, got); diff != "" || !complete || err != nil {
			t.Errorf("%t, %v (-want +got):\n%s", complete, err, diff)
		}
	}
}
