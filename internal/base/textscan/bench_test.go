package textscan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/claudeops/claudeops/internal/base/textscan/secretrules"
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

// hostileTexts are texts of a size that cost much.
func hostileTexts(size int) map[string]string {
	full := func(piece string) string { return strings.Repeat(piece, size/len(piece)+1)[:size] }
	out := map[string]string{}
	for _, piece := range []string{
		"\n",
		" ",
		" \n",
		"\\",
		"%41",
		"\\u0041",
		"&amp;",
		"= ",
		"=\n",
		"<!--",
		"<",
		"# a\n",
		"a",
		"a1\n",
		"AAAA",
		"eyJ",
		"eyJa.eyJ.",
		"ghp_a1\n",
		"-----BEGIN PRIVATE KEY-----\n",
		"password=",
		"key: ",
		"://a:bcd@",
		"a:5432:b:c:",
		"$2a$",
		"twit" + "ter",
		"curl ",
		"KEY=abcdef0123456789\n",
		"\"key\": \"abcdef0123456789\",\n",
		"\u017f",
		"\uff41",
		"|a|b|c|d|e|f|g\n",
		"YWFhYWFhYWFhYWFhYWFhYWFh\n",
		"YWFhYWFhYWFhYWFhYWFhYWFh\n\n\n\n",
		"H4sI",
		"0123456789abcdef\n",
		"s.aa11aa11aa11\naa11aa11aa11\n",
		"curl -u a:b" + "!1Ac ",
		"curl \\\n",
		" -u a:1Ab" + "!cde",
		"-pass a1B" + "!c2d ",
		"-password\n",
		"password: |\n",
		"secret: a" + "!1Bcdef ",
		"password a" + "!1Bcdef ",
		"name: a_secret\nvalue: aB" + "1!cdefg\n",
	} {
		out[fmt.Sprintf("%q and the like", piece)] = full(piece)
	}
	many := func(before, behind string, length int) string {
		var b strings.Builder
		for i := uint32(0); b.Len() < size; i++ {
			b.WriteString(before + noise(alnum, length, i) + behind)
		}
		return b.String()[:size]
	}
	out["credentials in lines"], out["credentials in a line"] = many("password: ", "\n", 24), many("password: ", ", ", 24)
	out["tokens in lines"], out["tokens in a line"] = many("ghp_", "\n", 36), many("ghp_", " ", 36)
	out["words"], out["short words"] = many("", "\n", 20), many("", " ", 8)
	return out
}

// No text takes much more than a second a MiB.
func BenchmarkHostileTexts(b *testing.B) {
	s := NewScanner([]string{fakeToken(), fakeGitHub(), noise(alnum, 32, 110)})
	for name, text := range hostileTexts(1 << 20) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := s.Secrets(b.Context(), "a.md", text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// countedContext ends when it is asked for the nth time.
type countedContext struct {
	context.Context
	left int
}

func (c *countedContext) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// The search looks at its context every few milliseconds, in each layer and rule, and ends with it. The work that it
// may do is bounded, so this holds the time as well.
func TestTheSearchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	const size, most = 16 << 10, 120 // looks: one each 2^20 units of the work that is done for 64 KiB
	s := NewScanner([]string{fakeToken()})
	for name, text := range hostileTexts(size) {
		ctx := &countedContext{Context: t.Context(), left: 1 << 30}
		if _, err := s.Secrets(ctx, "a.md", text); err != nil {
			t.Fatal(err)
		}
		looks := 1<<30 - ctx.left
		if looks > most {
			t.Errorf("%s: the context was looked at %d times, so more work was done than is meant", name, looks)
		}
		for _, at := range []int{0, looks / 2, looks - 1} {
			ctx := &countedContext{Context: t.Context(), left: at}
			_, err := s.Secrets(ctx, "a.md", text)
			if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "a.md") || ctx.left < -2 {
				t.Errorf("%s: ended at look %d of %d: %v, and looked %d times more", name, at, looks, err, -ctx.left-1)
			}
		}
	}
}

// White space is looked at once. Looking ahead over it does not count as work, so this takes so much that it shows.
// It is half a second where each byte is looked at a few times, and minutes where the rest is looked at for each byte.
func TestWhiteSpaceIsLookedAtOnce(t *testing.T) {
	t.Parallel()
	const size = 512 << 10
	s := NewScanner([]string{fakeToken()})
	for _, piece := range []string{"\n", " ", "\t", " \n", "\r\n", "a\n", "a ",
		"0123456789abcdef" + strings.Repeat(" \n", 50)} {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		_, err := s.Secrets(ctx, "a.md", strings.Repeat(piece, size/len(piece)))
		cancel()
		if err != nil {
			t.Fatalf("%q: %v", piece, err)
		}
	}
}

// What people write leaves room: a letter that only a change of case turns into ASCII, and what manifests are made of,
// do not make each rule read the whole text.
func TestWhatPeopleWriteTakesLittleOfItsBudget(t *testing.T) {
	t.Parallel()
	rules, err := embeddedRules()
	if err != nil {
		t.Fatal(err)
	}
	for name, before := range map[string]string{"as it is": "", "a sign of Kelvin": "0 \u212a\n",
		"a manifest": "kind: ConfigMap\ndata:\n  a: b\n---\nSee the secret.\n"} {
		text := before + prose(leastSearched-len(before))
		w := secretrules.NewWork(t.Context(), costOfByte*leastSearched*3/10)
		layers, _ := layersOf(w, text)
		if found := knownSecrets(w, rules, layers); len(found) > 0 || w.Spent() {
			t.Errorf("%s: %v, or too much work", name, found)
		}
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
