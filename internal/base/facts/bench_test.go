package facts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudeops/claudeops/internal/base/facts"
)

// BenchmarkRead reads texts of 64 KiB as new files: the bound is 5 ms.
func BenchmarkRead(b *testing.B) {
	const size = 64 << 10
	docs, err := filepath.Glob("../../../docs/guides/*.md")
	if err != nil || len(docs) == 0 {
		b.Fatal("no texts", err)
	}
	var prose strings.Builder
	for prose.Len() < size {
		for _, name := range docs {
			text, err := os.ReadFile(name)
			if err != nil {
				b.Fatal(err)
			}
			prose.Write(text)
		}
	}
	for name, file := range map[string]facts.File{
		"prose": {Path: "a.md", New: prose.String()[:size]},
		"commands": {Path: "a.sh",
			New: strings.Repeat("kubectl get pods -n \"$NS\" | grep -v Running && curl -s https://a.example.org/x -o /tmp/x\n",
				size/88)},
		"program": {Path: "a.py",
			New: strings.Repeat("    result = client.post(url, data={\"a\": values[key]}, timeout=5)\n", size/67)},
		"fields": {Path: "a.yaml",
			New: strings.Repeat("- name: send the report to the team\n  command: make report FORMAT=pdf\n", size/72)},
		"edit": {Path: "a.md", Old: prose.String()[:size], New: strings.ReplaceAll(prose.String()[:size], "\n\n",
			"\n\nA line more.\n\n")},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(file.New)))
			before := processorTime()
			for b.Loop() {
				facts.Read([]facts.File{file}, nil)
			}
			b.ReportMetric(float64(processorTime()-before)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
}
