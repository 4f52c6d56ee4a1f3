package textscan

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
)

// ownForms are the ways to write an own credential that must be found.
func ownForms(token string) map[string]string {
	forms := map[string]string{
		"as it is":                 token,
		"in lower-case hex":        hex.EncodeToString([]byte(token)),
		"in upper-case hex":        strings.ToUpper(hex.EncodeToString([]byte(token))),
		"in hex bytes with colons": strings.Join(chunks(hex.EncodeToString([]byte(token)), 2), ":"),
		"percent-encoded in full":  percentEncoded(token),
		"percent-encoded in part":  token[:3] + percentEncoded(token[3:4]) + token[4:],
		"percent-encoded twice":    strings.ReplaceAll(percentEncoded(token), "%", "%25"),
		"split over lines":         strings.Join(chunks(token, 5), "\n"),
		"split by spaces and tabs": strings.Join(chunks(token, 1), " \t"),
		"base64 split over lines": strings.Join(chunks(base64.StdEncoding.EncodeToString([]byte(token)), 8),
			"\r\n"),
		"percent-encoded base64 with equal": strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(token)), "=", "%3D"),
	}
	for _, prefix := range []string{"", "a", "ab"} {
		for _, suffix := range []string{"", "y", "yz"} {
			plain := []byte(prefix + token + suffix)
			forms["base64 after "+prefix+" before "+suffix] = base64.StdEncoding.EncodeToString(plain)
			forms["URL base64 after "+prefix+" before "+suffix] = base64.RawURLEncoding.EncodeToString(plain)
		}
	}
	return forms
}

func chunks(s string, size int) []string {
	var parts []string
	for len(s) > size {
		parts = append(parts, s[:size])
		s = s[size:]
	}
	return append(parts, s)
}

func TestOwnTokensAreFoundAndRedactedInEveryForm(t *testing.T) {
	t.Parallel()
	tokens := map[string]string{
		"a hexadecimal token":   fakeToken(),
		"a GitHub token":        fakeGitHub(),
		"a token with symbols":  noise(alnum+"+/-_~?", 30, 90),
		"the shortest token":    "s3" + "cr3t!?",
		"a token beyond ASCII":  "pässwörd-" + noise(alnum, 12, 91),
		"a token of all >> ???": "?>?>?>?>?>",
	}
	for kind, token := range tokens {
		s := NewScanner([]string{"  " + token + "\n", "short", ""})
		for form, text := range ownForms(token) {
			t.Run(kind+" "+form, func(t *testing.T) {
				t.Parallel()
				found := secretsOf(t, s, "body", "before "+text+" after")
				if !hasRule(found, OwnTokenRule) {
					t.Errorf("%q is not found", text)
				}
				redacted := s.Redact("before " + text + " after")
				if !strings.HasPrefix(redacted, "before ") || !strings.HasSuffix(redacted, " after") ||
					!strings.Contains(redacted, "[redacted]") {
					t.Errorf("Redact gives %q", redacted)
				}
				// What surrounds the credential inside the same base64 stays, and padding.
				if rest := strings.Replace(redacted, "[redacted]", "", 1); len(rest) > len("before YWJeXo%3D after") {
					t.Errorf("Redact leaves %q", redacted)
				}
			})
		}
	}
}

func TestOwnTokensOfSixteenCharactersAreFoundThroughPunctuation(t *testing.T) {
	t.Parallel()
	s := NewScanner([]string{fakeToken()})
	for _, separator := range []string{`" + "`, "\\\n", "\u200b", "**", "\n> "} {
		if got := s.Redact(strings.Join(chunks(fakeToken(), 10), separator)); got != "[redacted]" {
			t.Errorf("with %q between its parts: %q", separator, got)
		}
	}
}

func TestRedactLeavesOtherTextAlone(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		own  []string
		text string
	}{
		{"no own tokens", nil, "GET /api/v1/repos 404"},
		{"no token in the text", []string{fakeToken()}, "GET /api/v1/repos?limit=50%20 404 \xff"},
		{"short values", []string{"admin", "", "       ", "a          b"}, "admin b ab a"},
		{"less than twenty characters of a token", []string{fakeToken()}, fakeToken()[:19]},
		{"other case of a short token", []string{"S3CR3TPASSPHRASE"}, "s3cr3tpassphrase"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := NewScanner(tt.own).Redact(tt.text); got != tt.text {
				t.Errorf("Redact(%q) = %q", tt.text, got)
			}
		})
	}
}

func TestRedactReplacesEachTokenWhereItStands(t *testing.T) {
	t.Parallel()
	first, second := fakeToken(), fakeGitHub()
	s := NewScanner([]string{first, second, first})
	text := "https://bot:" + first + "@git.example.com/x?t=" + percentEncoded(second) + "&u=" + first + "."
	want := "https://bot:[redacted]@git.example.com/x?t=[redacted]&u=[redacted]."
	if got := s.Redact(text); got != want {
		t.Errorf("Redact gives %q, want %q", got, want)
	}
	basic := "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("bot:"+first))
	if got := s.Redact(basic); strings.Contains(got, base64.StdEncoding.EncodeToString([]byte(first[2:20]))) ||
		!strings.Contains(got, "[redacted]") {
		t.Errorf("Redact gives %q", got)
	}
}

func FuzzRedact(f *testing.F) {
	token := noise(alnum, 20, 100)
	s := NewScanner([]string{token, "0a1b2c3d"})
	f.Add("a" + token + "b")
	f.Add(percentEncoded(token) + "%")
	f.Add("%25" + percentEncoded(token)[1:])
	f.Add("0a1b 2c3d0a1b2c3d")
	f.Add("MGExYjJjM2Q=\xff%zz")
	f.Fuzz(func(t *testing.T, text string) {
		got := s.Redact(text)
		if again := s.Redact(got); again != got {
			t.Errorf("Redact(%q) = %q still holds a token", text, got)
		}
		if strings.Contains(got, token) {
			t.Errorf("Redact(%q) = %q holds the token", text, got)
		}
	})
}

func TestOffsetsOfAFoldedText(t *testing.T) {
	for fold, text := range map[fold]string{spaceless: " a\tb  c\nd", skeleton: "a-B, c\u200bd.", lowerCase: "..A b_C-1"} {
		var want []int
		for i := range len(text) {
			if fold.keeps(text[i]) {
				want = append(want, i)
			}
		}
		offset := fold.offsets(text)
		for _, n := range []int{0, 1, 1, 3, 2, 0, 3, 3, 1} { // in order, again, and back
			if got := offset(n); got != want[n] {
				t.Errorf("byte %d of %q folded is at %d, want %d", n, text, got, want[n])
			}
		}
	}
}
