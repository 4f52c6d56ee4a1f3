package textscan

import (
	"encoding/base64"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// divided are ways to write a credential in parts.
func divided(token string) map[string]string {
	a, b := token[:len(token)/2], token[len(token)/2:]
	c := chunks(token, len(token)/3+1)
	return map[string]string{
		"two lines":                      a + "\n" + b,
		"a line between":                 a + "\n\n" + b,
		"three parts":                    strings.Join(c, "\n"),
		"three paragraphs":               strings.Join(c, "\n\n"),
		"many parts":                     strings.Join(chunks(token, 8), "\n"),
		"behind its first three letters": token[:3] + "\n" + token[3:],
		"before its last three letters":  token[:len(token)-3] + "\n" + token[len(token)-3:],
		"a list":                         "- " + a + "\n- " + b,
		"a list of stars":                "* " + a + "\n* " + b,
		"a numbered list":                "1. " + a + "\n2. " + b,
		"a list of letters":              "a) " + a + "\nb) " + b,
		"a list of tasks":                "- [ ] " + a + "\n- [x] " + b,
		"a quotation":                    "> " + a + "\n> " + b,
		"a quotation in a quotation":     "> > " + a + "\n> > " + b,
		"strings":                        `"` + a + `" +` + "\n" + `  "` + b + `"`,
		"strings in a row":               `"` + a + `" + "` + b + `"`,
		"strings of Python":              `("` + a + `"` + "\n '" + b + "')",
		"strings of PHP":                 "'" + a + "' .\n'" + b + "';",
		"an array":                       "[\"" + a + "\",\n \"" + b + "\"]",
		"cells of a row":                 "| " + a + " | " + b + " |",
		"cells of a column":              "| " + a + " |\n| " + b + " |",
		"cells of the first column":      "| " + a + " | one |\n|---|---|\n| " + b + " | two |",
		"cells of the second column":     "| one | " + a + " | x |\n| two | " + b + " | y |",
		"labels":                         "part one: " + a + "\npart two: " + b,
		"assignments":                    "A=" + a + "\nB=" + b,
		"marks of emphasis":              "**" + a + "**" + b,
		"a code block each":              "```\n" + a + "\n```\n\n```\n" + b + "\n```",
		"a code block of a language":     "```sh\n" + a + "\n```\n```text\n" + b + "\n```",
		"code":                           "`" + a + "`\n`" + b + "`",
		"a rule between":                 a + "\n\n---\n\n" + b,
		"a line of stars between":        a + "\n***\n" + b,
		"a comment of HTML within":       a + "<!-- more -->" + b,
		"a comment of HTML between":      a + "\n<!-- more -->\n" + b,
		"a comment of a shell between":   a + "\n# more\n" + b,
		"comments of a shell":            "# " + a + "\n# " + b,
		"comments of C":                  "// " + a + "\n// " + b,
		"a comment of C between":         a + " /* more */\n" + b,
		"comments behind":                a + " // one\n" + b + " // two",
		"tags":                           "<p>" + a + "</p>\n<p>" + b + "</p>",
		"a tag within":                   a + "<wbr>" + b,
		"a line break of HTML":           a + "<br/>\n" + b,
		"ends of lines of Windows":       a + "\r\n" + b,
		"paragraphs of Windows":          a + "\r\n\r\n" + b,
		"an indented line":               a + "\n        " + b,
		"an indented line with a tab":    a + "\n\t" + b,
		"a backslash":                    a + "\\\n" + b,
		"a backslash and an indent":      "export T=" + a + " \\\n  " + b,
		"a hyphen":                       a + "-\n" + b,
		"an equals sign":                 a + "=\n" + b,
		"a soft hyphen in an entity":     a + "&shy;" + b,
		"a soft hyphen before a break":   a + "&#173;\n" + b,
		"an escaped line break":          a + `\n` + b,
		"line numbers":                   "12 | " + a + "\n13 | " + b,
		"typographic quotes":             "“" + a + "”\n“" + b + "”",
		"brackets":                       "(" + a + ")\n(" + b + ")",
	}
}

// forms are credentials whose rules look for what is before and behind them, and some that do not.
func formed() map[string]string {
	return map[string]string{
		"github-pat": fakeGitHub(), "anthropic-api-key": fakeAnthropic(), "slack-bot-token": fakeSlack(), "jwt": fakeJWT(),
		"aws-access-token": fakeAWSKeyID(), "gitlab-pat": fakeGitLab(),
	}
}

// ordinaryLines are lines that stand in any text.
var ordinaryLines = []string{ //nolint:gochecknoglobals // a table
	"# Check", "Run `df -h /var` on each node", "- item one", "1. first", "> a note", "see playbooks/rotate-token.md",
	"v1.2.3", "node-07",
	"kubernetes-secret-name-01", "claude-ops-gitea-token-for-the-home-cluster",
	"https://example.com/path/to/some/long/page.html",
	"| name | value |", "|---|---|", "| cpu0 | 85 |", "<!-- note -->", "echo done \\", "export A=b", "key: value",
	"the end", "Version 2",
	"usr/share/doc/packages/a/b/c/d/e/f/g/h/i/j/k/l", "", "ends with a full stop.", "x", "* * *", "```sh", "```", "/* 5",
	"2024-10-01",
}

func TestDividedCredentialsAreFound(t *testing.T) {
	t.Parallel()
	s := NewScanner(nil)
	for rule, token := range formed() {
		for name, text := range divided(token) {
			if len(token) < 24 && name == "many parts" {
				continue
			}
			for _, around := range [][2]string{{"", ""}, {"# Check\n\n", "\n\n## Next 1\n"}, {"node-07\n", "\nv1.2.3"}} {
				if found := secretsOf(t, s, "body", around[0]+text+around[1]); !hasRule(found, rule) {
					t.Errorf("%s, %s: found %v in %q", rule, name, found, around[0]+text+around[1])
				}
			}
		}
	}
}

// Ordinary lines before a text, behind it, and between its paragraphs never take a finding away.
func TestOrdinaryLinesHideNothing(t *testing.T) {
	t.Parallel()
	s := NewScanner(nil)
	const rounds = 2
	random := rand.New(rand.NewPCG(25, 4)) //nolint:gosec // the same texts in each run
	some := func() string {
		var lines []string
		for range 1 + random.IntN(4) {
			lines = append(lines, ordinaryLines[random.IntN(len(ordinaryLines))])
		}
		return strings.Join(lines, "\n")
	}
	tokens := formed()
	for _, rule := range slices.Sorted(maps.Keys(tokens)) {
		token := tokens[rule]
		texts := divided(token)
		for name, encode := range encodings(t) {
			texts[name] = encode("x " + token + " y")
		}
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			if len(token) < 24 && name == "many parts" {
				continue
			}
			for range rounds {
				around := some() + "\n" + texts[name] + "\n" + some()
				if random.IntN(2) == 0 {
					around = some() + "\n\n" + texts[name] + "\n\n" + some()
				}
				if found := secretsOf(t, s, "body", around); !hasRule(found, rule) {
					t.Errorf("%s, %s: found %v in %q", rule, name, found, around)
				}
			}
		}
	}
}

// Some ordinary lines look like encoded text. They hide none of it, whichever length it has, and so its last line.
func TestLinesThatLookEncodedHideNothing(t *testing.T) {
	t.Parallel()
	s := NewScanner(nil)
	const before = "usr/share/doc/packages/a/b/c/d/e/f/g/h/i/j/k/l\nkubernetes-secret-name-01\n"
	for rule, token := range formed() {
		for name, encode := range encodings(t) {
			for more := range 12 {
				text := encode("x " + token + strings.Repeat(" y", more))
				if !strings.Contains(text, "\n") {
					break // of one line
				}
				if found := secretsOf(t, s, "body", before+text+"\nthe end"); !hasRule(found, rule) {
					t.Errorf("%s, %s: found %v behind %q in %q", rule, name, found, before, text)
				}
			}
		}
	}
}

// FuzzOrdinaryLines adds ordinary lines to two credentials, one of them divided.
func FuzzOrdinaryLines(f *testing.F) {
	s := NewScanner(nil)
	token, encoded := fakeAnthropic(), base64.StdEncoding.EncodeToString([]byte("key "+fakeGitHub()+" end"))
	f.Add([]byte{0}, []byte{0, 1}, []byte{2}, uint8(20))
	f.Add([]byte{8, 9}, []byte{8, 22}, []byte{9, 8}, uint8(4))
	f.Add([]byte{20, 23}, []byte{26}, []byte{24, 25}, uint8(90))
	f.Fuzz(func(t *testing.T, before, between, behind []byte, at uint8) {
		lines := func(choices []byte) string {
			var b strings.Builder
			for _, c := range choices[:min(len(choices), 12)] {
				b.WriteString(ordinaryLines[int(c)%len(ordinaryLines)] + "\n")
			}
			return b.String()
		}
		cut := 1 + int(at)%(len(token)-1)
		text := lines(before) + token[:cut] + "\n" + token[cut:] + "\n" + lines(between) + encoded + "\n" + lines(behind)
		found := secretsOf(t, s, "fuzz", text)
		if !hasRule(found, "anthropic-api-key") || !hasRule(found, "github-pat") {
			t.Errorf("found %v in %q", found, text)
		}
	})
}

func TestSecretsTellWhereTheyEnd(t *testing.T) {
	t.Parallel()
	s := NewScanner([]string{fakeToken()})
	token := fakeGitHub()
	wrapped := strings.Join(chunks(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("text ", 12)+token)), 40), "\n")
	for _, tt := range []struct {
		name, text string
		last       int
	}{
		{"in one line", "one\n" + token + "\nlast", 2},
		{"over three lines", "one\n" + strings.Join(chunks(token, 15), "\n") + "\nlast", 4},
		{"a key", "one\n" + fakePrivateKey() + "last", 11},
		{"encoded in lines", "one\n" + wrapped + "\nlast", 2 + strings.Count(wrapped, "\n")},
		{"of this server", "one\n" + fakeToken()[:20] + "\n" + fakeToken()[20:] + "\nlast", 3},
	} {
		found := secretsOf(t, s, "body", tt.text)
		if len(found) == 0 || found[0].Line != 2 || found[0].LastLine != tt.last {
			t.Errorf("%s: found %+v, want lines 2 to %d", tt.name, found, tt.last)
		}
	}
}

func TestMoreWordsThanCanBePutTogetherAreRefused(t *testing.T) {
	t.Parallel()
	row := "s." + "aa11aa11aa11\naa11aa11aa11\n" // the form of a token of Vault, but not random enough to be one
	found := secretsOf(t, NewScanner(nil), "body", "one:\n"+strings.Repeat(row, 300)+strings.Repeat("More text.\n", 6000))
	if len(found) != 1 || found[0].Rule != DividedRule || found[0].Line < 2 || found[0].LastLine != 6602 {
		t.Errorf("found %v", found)
	}
}
