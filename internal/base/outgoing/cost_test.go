package outgoing_test

import (
	"testing"

	"github.com/claudeops/claudeops/internal/base/markdown/markdowntest"
	"github.com/claudeops/claudeops/internal/base/outgoing"
)

// TestHostileBodiesCostLittle holds what a body or a reply may allocate: about 1,300 bytes for each of its own, in all
// rounds and grammars together. What grows with the square of a size takes hundreds of megabytes.
func TestHostileBodiesCostLittle(t *testing.T) {
	const most = 80 << 20
	for name, body := range markdowntest.Hostile() {
		var rewritten string
		if n := markdowntest.Allocated(func() { rewritten, _ = outgoing.Rules{}.Body(body) }); n > most {
			t.Errorf("%s: %d MB are allocated", name, n>>20)
		}
		if again, _ := (outgoing.Rules{}).Body(rewritten); again != rewritten && len(rewritten) <= 2*markdowntest.Size {
			t.Errorf("%s changed when they were rewritten again", name)
		}
	}
}

func BenchmarkHostileBodies(b *testing.B) {
	for name, body := range markdowntest.Hostile() {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				outgoing.Rules{}.Body(body)
			}
		})
	}
}
