package textscan

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"testing"
)

// each writes every byte of text by the format.
func each(format, text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&b, format, c)
	}
	return b.String()
}

func fullWidth(text string) string {
	return strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f {
			return r + 0xfee0
		}
		return r
	}, text)
}

func inUTF16(text string, big bool) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if big {
			b.Write([]byte{0, c})
		} else {
			b.Write([]byte{c, 0})
		}
	}
	return b.String()
}

func packed(t *testing.T, text string, with func(io.Writer) io.WriteCloser) string {
	t.Helper()
	var b bytes.Buffer
	w := with(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// encodings are ways to write a credential so that it does not stand there as it is.
func encodings(t *testing.T) map[string]func(string) string {
	b64 := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	gzipped := func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
	deflated := func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }
	return map[string]func(string) string{
		`\u escapes`:            func(s string) string { return each(`\u%04x`, s) },
		`\u{} escapes`:          func(s string) string { return each(`\u{%x}`, s) },
		`\U escapes`:            func(s string) string { return each(`\U%08x`, s) },
		`\x escapes`:            func(s string) string { return each(`\x%02x`, s) },
		"octal escapes":         func(s string) string { return each(`\%03o`, s) },
		"decimal entities":      func(s string) string { return each("&#%d;", s) },
		"hexadecimal entities":  func(s string) string { return each("&#x%X;", s) },
		"entities in part":      func(s string) string { return s[:9] + each("&#%d;", s[9:10]) + s[10:] },
		"entities of entities":  func(s string) string { return each("&amp;#%d;", s) },
		"full-width letters":    fullWidth,
		"base64 twice":          func(s string) string { return b64(b64(s)) },
		"base64 four times":     func(s string) string { return b64(b64(b64(b64(s)))) },
		"base64 behind a path":  func(s string) string { return "/etc/secret/" + b64(b64("token "+s)) },
		"base64 with odd bytes": func(s string) string { return b64(b64("\xff\x00" + s)) },
		"base32":                func(s string) string { return base32.StdEncoding.EncodeToString([]byte(s)) },
		"base32 in lower case": func(s string) string {
			return strings.ToLower(
				base32.StdEncoding.EncodeToString([]byte("t=" + s)))
		},
		"base32 of base64":      func(s string) string { return base32.StdEncoding.EncodeToString([]byte(b64(s))) },
		"hex twice":             func(s string) string { return hex.EncodeToString([]byte(hex.EncodeToString([]byte(s)))) },
		"gzip in base64":        func(s string) string { return b64(packed(t, s, gzipped)) },
		"gzip in hex":           func(s string) string { return hex.EncodeToString([]byte(packed(t, s, gzipped))) },
		"zlib in base64":        func(s string) string { return b64(packed(t, s, deflated)) },
		"UTF-16 in base64":      func(s string) string { return b64(inUTF16(s, false)) },
		"UTF-16 in base64, big": func(s string) string { return b64("\xfe\xff" + inUTF16(s, true)) },
		"UTF-16 in hex":         func(s string) string { return hex.EncodeToString([]byte("\xff\xfe" + inUTF16(s, false))) },
		"quoted-printable":      func(s string) string { return each("=%02X", s) },
		"quoted-printable in part": func(s string) string {
			return "token=3D" + s[:6] + each("=%02X", s[6:7]) + s[7:15] + "=\n" + s[15:20] + "= \r\n" + s[20:]
		},
		"base64 of escapes": func(s string) string { return b64(each(`\x%02x`, s)) },
		"base64 of 60 a line": func(s string) string {
			return strings.Join(chunks(b64(b64(strings.Repeat("some more text ", 8)+s)), 60), "\n")
		},
		"base64 in a quotation": func(s string) string {
			return "> " + strings.Join(chunks(b64(b64(strings.Repeat("more text ", 8)+s)), 60), "\n> ")
		},
		"base64 in Python strings": func(s string) string {
			return `"` + strings.Join(chunks(b64(b64(strings.Repeat("more ", 20)+s)), 60), "\"\n    \"") + `"`
		},
	}
}

func TestEncodedCredentialsAreFound(t *testing.T) {
	t.Parallel()
	own, known := noise(alnum, 40, 130), fakeGitHub()
	s := NewScanner([]string{own})
	for name, encode := range encodings(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if found := secretsOf(t, s, "body", "before\n"+encode(own)+"\nafter"); !hasRule(found, OwnTokenRule) {
				t.Errorf("the own credential is not found in %q", encode(own))
			}
			found := secretsOf(t, s, "body", "before\n"+encode(known)+"\nafter")
			if !hasRule(found, "github-pat") {
				t.Errorf("the token of GitHub is not found in %q", encode(known))
			}
			for _, secret := range found {
				if secret.Rule == "github-pat" && secret.Line < 2 {
					t.Errorf("found on line %d", secret.Line)
				}
			}
		})
	}
}

func TestDisguisedOwnCredentialsAreFound(t *testing.T) {
	t.Parallel()
	token := noise(alnum+"-_", 43, 131)
	s := NewScanner([]string{token, fakePrivateKey()})
	b64 := base64.StdEncoding.EncodeToString
	tests := map[string]string{
		"reversed":                           reversed(token),
		"in upper case":                      strings.ToUpper(token),
		"without its last character":         token[:len(token)-1],
		"without its first character":        token[1:],
		"its first 22 characters":            token[:22], // with separators among them at least 20 letters and digits
		"its middle":                         token[10:34],
		"reversed in base64":                 b64([]byte(reversed(token))),
		"reversed base64":                    reversed(b64([]byte(token))),
		"base64 in upper case":               strings.ToUpper(b64([]byte(token))),
		"base32 after a character":           base32.StdEncoding.EncodeToString([]byte("x" + token)),
		"base64 of a part":                   b64([]byte("x" + token[3:30])),
		"split over lines":                   strings.Join(chunks(token, 4), "\n"),
		"a line of a private key":            strings.Split(fakePrivateKey(), "\n")[2],
		"a private key in JSON":              strings.ReplaceAll(strings.Split(fakePrivateKey(), "-----")[2], "\n", `\n`),
		"divided by escapes of line breaks":  strings.Join(chunks(token, 6), `\n`),
		"divided by entities of line breaks": strings.Join(chunks(token, 6), "&#10;"),
	}
	for name, text := range tests {
		if found := secretsOf(t, s, "body", "before "+text+" after"); !hasRule(found, OwnTokenRule) {
			t.Errorf("%s: %q is not found", name, text)
		}
	}
	if found := secretsOf(t, s, "body", token[:18]+" and the rest"); hasRule(found, OwnTokenRule) {
		t.Error("18 characters count as the credential")
	}
	if found := secretsOf(t, s, "body", "-----BEGIN RSA "+"PRIVATE KEY-----\nMII..."); hasRule(found, OwnTokenRule) {
		t.Error("the header of a key counts as the key")
	}
}

// Each Cyrillic and Greek letter counts as the Latin one that it looks like, as Unicode's list of confusable characters
// has them.
func TestLettersThatLookAlikeCountAsTheSame(t *testing.T) {
	t.Parallel()
	s := NewScanner(nil)
	for latin, alike := range map[string]string{
		"a": "аα", "c": "сϲ", "d": "ԁ", "e": "е", "h": "һ", "i": "іι", "j": "јϳ", "k": "кκ", "l": "ӏ", "o": "оοσ", "p": "рρ",
		"q": "ԛ", "s": "ѕ", "u": "υ", "v": "ѵν", "w": "ԝ", "x": "х", "y": "уүγ", "A": "АΑ", "B": "ВΒ", "C": "СϹ", "E": "ЕΕ",
		"G": "Ԍ", "H": "НΗ", "I": "ІΙӀ", "J": "ЈͿ", "K": "КΚ", "M": "МΜ", "N": "Ν", "O": "ОΟ", "P": "РΡ", "Q": "Ԛ", "S": "Ѕ",
		"T": "ТΤ", "V": "Ѵ", "W": "Ԝ", "X": "ХΧ", "Y": "ҮΥ", "Z": "Ζ",
	} {
		for _, letter := range alike {
			text := "gh" + "p_" + string(letter) + noise(alnum, 35, 3)
			if found := secretsOf(t, s, "checks/a.md", text); !hasRule(found, "github-pat") {
				t.Errorf("%c (%U) does not count as %s: found %v", letter, letter, latin, found)
			}
		}
	}
	for _, text := range []string{"пароль: спросите у дежурного, он хранится в сейфе", "κωδικός: ρωτήστε τον διαχειριστή",
		"token: секретноеслово", "password: συνθηματικο"} {
		if found := secretsOf(t, s, "checks/a.md", text); len(found) != 0 {
			t.Errorf("found %v in %q", found, text)
		}
	}
}

func TestCredentialsInPartsAreFound(t *testing.T) {
	t.Parallel()
	random, hexadecimal := noise(alnum, 40, 132), fakeToken()
	s := NewScanner([]string{random, hexadecimal, "too-short-for-parts"})
	digests := ""
	for i := range uint32(2000) {
		digests += noise("0123456789abcdef", 64, 300+i) + "  file\n"
	}
	tests := []struct {
		name  string
		texts []string
		want  string // indices
	}{
		{"in one text", []string{"a", "x " + random + " y"}, "[1]"},
		{"over files", []string{"one: " + random[:10], "nothing", "two: " + random[10:20] + ".", "three: " + random[20:]},
			"[0 2 3]"},
		{"over labelled lines", []string{"a=" + random[:10] + "\nb=" + random[10:20] + "\nc=" + random[20:30]}, "[0]"},
		{"in another order", []string{"1 " + random[20:30] + "\n2 " + random[:20]}, "[0]"},
		{"in base64", []string{"a", base64.StdEncoding.EncodeToString([]byte(random[:20])),
			base64.StdEncoding.EncodeToString([]byte(random[20:]))}, "[1 2]"},
		{"reversed", []string{reversed(random)[:16] + " - ", " - " + reversed(random)[16:32]}, "[0 1]"},
		{"over comments", []string{strings.Join(chunks(random, 4), " <!-- no -->")}, "[0]"},
		{"over comments of a shell", []string{strings.Join(chunks(random, 4), " # no\n")}, "[0]"},
		{"a hexadecimal one", []string{"a " + hexadecimal[:14], "b " + hexadecimal[14:28], "c " + hexadecimal[28:]},
			"[0 1 2]"},
		{"at the ends of texts", []string{random[:5], random[5:10], random[10:15], random[15:20], random[20:25],
			random[25:30]}, "[6]"},
		{"less than twenty characters", []string{random[:9], random[20:28]}, "[]"},
		{"nothing", []string{"", "prose about tokens", base64.StdEncoding.EncodeToString([]byte("nothing of ours here"))},
			"[]"},
		{"thousands of digests", []string{digests}, "[]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := fmt.Sprint(s.Spread(tt.texts)); got != tt.want {
				t.Errorf("Spread = %s, want %s", got, tt.want)
			}
		})
	}
}

func TestKnownCredentialsOverLinesAreFound(t *testing.T) {
	t.Parallel()
	token := fakeGitHub()
	s := NewScanner(nil)
	for name, text := range map[string]string{
		"two lines":              token[:20] + "\n" + token[20:],
		"two lines, indented":    "token: " + token[:10] + "\n       " + token[10:],
		"two strings":            `t = "` + token[:20] + `" +` + "\n" + `    "` + token[20:] + `"`,
		"strings of Python":      `("` + token[:20] + `"` + "\n " + `"` + token[20:] + `")`,
		"a line that goes on":    "export T=" + token[:20] + "\\\n" + token[20:],
		"five lines":             strings.Join(chunks(token, 8), "\n"),
		"a quotation":            "> " + token[:20] + "\n> " + token[20:],
		"two lines in entities":  each("&#%d;", token[:20]) + "\n" + each("&#%d;", token[20:]),
		"two lines of fullwidth": fullWidth(token[:20]) + "\n" + fullWidth(token[20:]),
	} {
		found := secretsOf(t, s, "body", "one\n"+text+"\nlast")
		if !hasRule(found, "github-pat") {
			t.Errorf("%s: not found in %q", name, text)
		}
		for _, secret := range found {
			if secret.Line != 2 {
				t.Errorf("%s: found on line %d, want 2", name, secret.Line)
			}
		}
	}
}

func TestTextThatCannotBeLookedIntoIsRefused(t *testing.T) {
	t.Parallel()
	s := NewScanner(nil)
	b64 := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	bomb := b64(packed(t, strings.Repeat("a", 4<<20), func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }))
	often := "text that nobody needs to encode"
	for range 7 {
		often = b64(often)
	}
	for name, text := range map[string]string{
		"encoded seven times":    "one\n" + often,
		"unpacks to a lot":       "one\n" + strings.Repeat(bomb+"\n\n", 4),
		"before what is encoded": "one\n" + strings.Repeat(bomb+" ", 4) + b64(b64(fakeGitHub())),
	} {
		found := secretsOf(t, s, "body", text)
		if !hasRule(found, EncodedRule) && !hasRule(found, CostlyRule) {
			t.Errorf("%s: %v", name, found)
		}
	}
	for name, text := range map[string]string{
		"many backslashes": strings.Repeat(`\\`, 300) + "u0041",
		"many ampersands":  "&" + strings.Repeat("amp;", 300),
		"one that unpacks to little": b64(packed(t, strings.Repeat("some words, ", 4000),
			func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })),
	} {
		if found := secretsOf(t, s, "body", text); len(found) != 0 {
			t.Errorf("%s: %v", name, found)
		}
	}
}

func FuzzLayers(f *testing.F) {
	f.Add(`\x41&#65;%41\u0041` + fullWidth("A") + "QUFBQUFBQUFBQUFBQUFBQUFBQUE=")
	f.Add("&amp;#38;#65;\xff%zz\\u{110000}\\")
	f.Add(base64.StdEncoding.EncodeToString(
		[]byte(base64.StdEncoding.EncodeToString([]byte("plain text, and more of it")))))
	f.Fuzz(func(t *testing.T, text string) {
		layers, beyond := layersOf(unbounded(), text)
		if beyond > len(text) {
			t.Fatalf("%d of %q", beyond, text)
		}
		for depth, l := range layers {
			if depth == 0 {
				continue
			}
			if len(l.origins) != len(l.text)+1 || len(l.text) > 3*len(text)+2*maxInflated {
				t.Fatalf("layer %d of %q: %d bytes, %d origins", depth, text, len(l.text), len(l.origins))
			}
			for i, origin := range l.origins {
				if origin < 0 || origin > len(text) || i > 0 && origin < l.origins[i-1] {
					t.Fatalf("layer %d of %q: origin %d at %d", depth, text, origin, i)
				}
			}
			part := l.aroundChanges(2)
			if len(part.origins) != len(part.text)+1 || len(part.text) > len(l.text) {
				t.Fatalf("the changes of layer %d of %q: %d bytes of %d", depth, text, len(part.text), len(l.text))
			}
		}
	})
}

func TestALineIsUndisguisedAndStaysOne(t *testing.T) {
	for line, want := range map[string]string{
		`\x72\x6d -rf /a`:        "rm -rf /a",
		"&#114;m &amp; ls":       "rm & ls",
		"%72m%20x":               "rm x",
		"r\u043em, \uff52\uff4d": "rom, rm",
		`a\nb\tc "\rm"`:          `a\nb\tc "\rm"`,
		"plain":                  "plain",
		`cut at the end \`:       `cut at the end \`,
		"so\u00adft":             "soft",
		"%0a\\u000a&#10; one":    "%0a\\u000a&#10; one",
	} {
		if got := Undisguise(line); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}
