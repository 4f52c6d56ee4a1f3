package content

import (
	"strings"
	"testing"
)

// prose is n bytes of the kind of text that the product handles.
func prose(n int) string {
	const page = "# Disk space\n\nRun `df -h /var` on each node and warn when usage is above 85%.\n\n```sh\n" +
		"kubectl -n kube-system get pods -l app.kubernetes.io/name=traefik -o wide\n" +
		"curl -fsS -H \"Authorization: Bearer $TOKEN\" https://api.example.com/health\n```\n\n" +
		"If the token has expired, see playbooks/rotate-token.md. Größe prüfen ✅.\n\n"
	return strings.Repeat(page, n/len(page)+1)[:n]
}

func BenchmarkSecrets(b *testing.B) {
	s := NewScanner([]string{fakeToken(), fakeGitHub(), noise(alnum, 32, 110)})
	tests := []struct {
		name  string
		texts []string
	}{
		{"two files of 4 KB", []string{prose(4096), prose(4000)}},
		{"prose of 1 MiB", []string{prose(1 << 20)}},
		{"credentials of 256 KiB", []string{strings.Repeat("password: "+noise(alnum, 24, 111)+"\n", 1<<18/35)}},
		{"base64 of 256 KiB", []string{strings.Repeat(noise(alnum, 64, 112)+"\n", 1<<18/65)}},
	}
	if _, err := s.Secrets(b.Context(), "warm-up", ""); err != nil {
		b.Fatal(err)
	}
	for _, tt := range tests {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				for _, text := range tt.texts {
					if _, err := s.Secrets(b.Context(), "checks/a.md", text); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkLoadRules(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := loadRules(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRedact(b *testing.B) {
	s := NewScanner([]string{fakeToken(), fakeGitHub()})
	line := "GET https://git.example.com/api/v1/repos/joe/home-cluster/pulls?state=open&limit=50%20 failed: 502"
	b.ReportAllocs()
	for b.Loop() {
		s.Redact(line)
	}
}

func BenchmarkHidden(b *testing.B) {
	for _, size := range []int{4096, 1 << 20} {
		text := prose(size)
		b.Run(map[int]string{4096: "4 KB", 1 << 20: "1 MiB"}[size], func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				Hidden(text)
			}
		})
	}
}
