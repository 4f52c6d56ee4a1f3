package textscan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestHiddenReportsWhatCannotBeSeen(t *testing.T) {
	t.Parallel()
	ranges := []struct {
		name        string
		first, last rune
	}{
		{"bidi embeddings and overrides", 0x202a, 0x202e},
		{"bidi isolates", 0x2066, 0x2069},
		{"directional marks", 0x200e, 0x200f},
		{"Arabic letter mark", 0x61c, 0x61c},
		{"zero-width characters", 0x200b, 0x200d},
		{"invisible operators", 0x2060, 0x2064},
		{"byte order mark", 0xfeff, 0xfeff},
		{"soft hyphen", 0xad, 0xad},
		{"grapheme joiner", 0x34f, 0x34f},
		{"Hangul fillers", 0x115f, 0x1160},
		{"Khmer inherent vowels", 0x17b4, 0x17b5},
		{"Mongolian selectors", 0x180b, 0x180f},
		{"Hangul filler", 0x3164, 0x3164},
		{"half-width Hangul filler", 0xffa0, 0xffa0},
		{"annotation characters", 0xfff9, 0xfffb},
		{"variation selectors", 0xfe00, 0xfe0f},
		{"variation selectors supplement", 0xe0100, 0xe01ef},
		{"tag characters", 0xe0000, 0xe007f},
		{"deprecated format characters", 0x206a, 0x206f},
		{"C0 controls before tab", 0x00, 0x08},
		{"C0 controls after newline", 0x0b, 0x1f},
		{"delete and C1 controls", 0x7f, 0x9f},
		{"line and paragraph separators", 0x2028, 0x2029},
		{"blank braille", 0x2800, 0x2800},
		{"musical format characters", 0x1d173, 0x1d17a},
		{"private use", 0xe000, 0xe010},
		{"private use plane", 0x10fff0, 0x10fffd},
		{"noncharacters", 0xfdd0, 0xfdef},
		{"last noncharacters of a plane", 0xfffe, 0xffff},
		{"last noncharacters of the last plane", 0x10fffe, 0x10ffff},
		{"unassigned", 0x378, 0x379},
	}
	for _, tt := range ranges {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for r := tt.first; r <= tt.last; r++ {
				got := Hidden("ab\nc" + string(r) + "d")
				if len(got) != 1 || got[0].Line != 2 || got[0].Column != 2 || got[0].Rune != r {
					t.Errorf("Hidden with U+%04X = %v, want one finding at 2:2", r, got)
				}
				if len(got) == 1 && !strings.HasSuffix(got[0].Name, fmt.Sprintf(" (U+%04X)", r)) {
					t.Errorf("the name %q does not end with the code point U+%04X", got[0].Name, r)
				}
			}
		})
	}
}

func TestHiddenPassesWhatCanBeSeen(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, text string }{
		{"nothing", ""},
		{"ASCII with tabs and newlines", "# Check\n\n\tkubectl get pods\n"},
		{"Windows line ends", "one\r\ntwo\r\n"},
		{"accents, composed and decomposed", "café cafe\u0301 Zürich"},
		{"other scripts", "日本語 русский ελληνικά עברית العربية हिन्दी ไทย 한국어"},
		{"Arabic number sign and Syriac abbreviation mark", "\u0600 \u070f"},
		{"spaces of other widths", "a\u00a0b\u2009c\u3000d"},
		{"the replacement character", "\ufffd"},
		{"box drawing and arrows", "├── a → b ✓ ✗"},
		{"plain emoji", "🚀 🙂 ✅"},
		{"emoji with selector", "⚠️ ❤️ ☁️ ©️ ▶️"},
		{"keycaps", "1️⃣ #️⃣ *️⃣"},
		{"skin tone", "👍🏽 🧑🏽‍🚀"},
		{"family", "👨‍👩‍👧‍👦"},
		{"rainbow flag and pirate flag", "🏳️‍🌈 🏴‍☠️"},
		{"heart on fire", "❤️‍🔥"},
		{"eye in speech bubble", "👁️‍🗨️"},
		{"national flags", "🇨🇭🇩🇪"},
		{"England, Scotland and Wales", "🏴󠁧󠁢󠁥󠁮󠁧󠁿🏴󠁧󠁢󠁳󠁣󠁴󠁿🏴󠁧󠁢󠁷󠁬󠁳󠁿"},
		{"an emoji of a coming Unicode version", "\U0001fadd \U0001fae0"},
		{"invalid UTF-8 is not hidden", "a\xffb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Hidden(tt.text); got != nil {
				t.Errorf("Hidden(%q) = %v, want nothing", tt.text, got)
			}
		})
	}
}

func TestHiddenHoldsTheExceptionsTight(t *testing.T) {
	t.Parallel()
	const england = "\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067"
	tests := []struct {
		name, text string
		columns    []int
	}{
		{"a selector after a letter", "a\ufe0f", []int{2}},
		{"a selector at the start", "\ufe0f", []int{1}},
		{"a second selector", "❤\ufe0f\ufe0f", []int{3}},
		{"the text selector", "❤\ufe0e", []int{2}},
		{"a selector after a digit that makes no keycap", "1\ufe0f2", []int{2}},
		{"a selector after a keycap", "1\ufe0f\u20e3\ufe0f", []int{4}},
		{"a joiner between letters", "a\u200db", []int{2}},
		{"a joiner after an emoji only", "🙂\u200db", []int{2}},
		{"a joiner before an emoji only", "a\u200d🙂", []int{2}},
		{"a joiner at the end", "🙂\u200d", []int{2}},
		{"two joiners", "🙂\u200d\u200d🙂", []int{2, 3}},
		{"a joiner between keycap keys", "1\u200d2", []int{2}},
		{"a joiner that Persian spells with", "می\u200cخواهم", []int{3}},
		{"a hidden character between emoji and selector", "❤\u200b\ufe0f", []int{2, 3}},
		{"tags without a flag", england + "\U000e007f", []int{1, 2, 3, 4, 5, 6}},
		{"tags after another emoji", "🙂" + england + "\U000e007f", []int{2, 3, 4, 5, 6, 7}},
		{"a flag that is not ended", "🏴" + england, []int{2, 3, 4, 5, 6}},
		{"a flag with more tags", "🏴" + england + "\U000e007f\U000e0061", []int{8}},
		{"a flag of Texas", "🏴\U000e0075\U000e0073\U000e0074\U000e0078\U000e007f", []int{2, 3, 4, 5, 6}},
		{"a carriage return on its own", "safe\rrm", []int{5}},
		{"a carriage return too many", "a\r\r\n", []int{2}},
		{"an escape sequence", "\x1b[2K", []int{1}},
		{"overrides as in Trojan Source", "if a\u202e\u2066// check\u2069", []int{5, 6, 15}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var columns []int
			for _, h := range Hidden(tt.text) {
				columns = append(columns, h.Column)
			}
			if diff := cmp.Diff(tt.columns, columns); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
		})
	}
}

func TestHiddenNamesCharacters(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want HiddenChar
	}{
		{"a\n\u65e5\u672c\u202e", HiddenChar{2, 3, 0x202e, "RIGHT-TO-LEFT OVERRIDE (U+202E)"}},
		{"\ufeff# title", HiddenChar{1, 1, 0xfeff, "BYTE ORDER MARK (U+FEFF)"}},
		{"\x00", HiddenChar{1, 1, 0, "NUL (U+0000)"}},
		{"\x02", HiddenChar{1, 1, 2, "CONTROL CHARACTER (U+0002)"}},
		{"a\ufe0f", HiddenChar{1, 2, 0xfe0f, "VARIATION SELECTOR (U+FE0F)"}},
		{"\U000e0041", HiddenChar{1, 1, 0xe0041, "TAG CHARACTER (U+E0041)"}},
		{"\ue0a0", HiddenChar{1, 1, 0xe0a0, "PRIVATE USE CHARACTER (U+E0A0)"}},
		{"\ufffe", HiddenChar{1, 1, 0xfffe, "NONCHARACTER (U+FFFE)"}},
		{"\u0378", HiddenChar{1, 1, 0x378, "UNASSIGNED CODE POINT (U+0378)"}},
		{"\u206a", HiddenChar{1, 1, 0x206a, "INVISIBLE CHARACTER (U+206A)"}},
	}
	for _, tt := range tests {
		t.Run(tt.want.Name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff([]HiddenChar{tt.want}, Hidden(tt.text)); diff != "" {
				t.Errorf("Hidden(%q) (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

func TestHiddenStopsAfterTheFirstTwenty(t *testing.T) {
	t.Parallel()
	got := Hidden(strings.Repeat("a\u200b", 100))
	if len(got) != maxHidden || got[maxHidden-1].Column != 2*maxHidden {
		t.Errorf("%d findings, last %v; want %d", len(got), got[len(got)-1], maxHidden)
	}
}

func TestEmojiAreAssignedSymbolsOrNew(t *testing.T) {
	t.Parallel()
	count := 0
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !isEmoji(r) {
			continue
		}
		count++
		if !unicode.In(r, unicode.S, unicode.P, unicode.Cn) && r != 0x2139 { // the letter ℹ is the exception
			t.Errorf("U+%04X is neither a symbol nor punctuation, so it cannot be an emoji", r)
		}
	}
	// emoji-data.txt 16.0 counts 1431: less 12 keycap keys and 26 regional indicators.
	if count != 1393 {
		t.Errorf("%d emoji, want 1393", count)
	}
}

func TestCleanRemovesAndCuts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		max        int
		want       string
		changed    bool
	}{
		{"clean text stays", "Fix the disk check\n🏳️‍🌈 1️⃣", 100, "Fix the disk check\n🏳️‍🌈 1️⃣", false},
		{"empty text stays", "", 10, "", false},
		{"overrides and zero-width characters go", "a\u202eb\u200bc", 100, "abc", true},
		{"escape sequences lose their escape", "\x1b[31mred", 100, "[31mred", true},
		{"a lone carriage return goes", "a\rb\r\n", 100, "ab\r\n", true},
		{"invalid bytes become replacement characters", "a\xff\xfeb", 100, "a\ufffd\ufffdb", true},
		{"a replacement character stays", "a\ufffdb", 100, "a\ufffdb", false},
		{"text of the exact length stays", "abcde", 5, "abcde", false},
		{"longer text is cut", "abcdef", 5, "abcd…", true},
		{"length counts what is left", "\u200b\u200babcde", 5, "abcde", true},
		{"a cut leaves no joiner behind", "👨‍👩‍👧", 3, "👨…", true},
		{"a cut leaves no selector of a keycap behind", "a1\ufe0f\u20e3", 3 + 0, "a1…", true},
		{"a cut leaves no tags behind", "🏴󠁧󠁢󠁥󠁮󠁧󠁿 to the end", 5, "🏴…", true},
		{"a cut leaves no carriage return behind", "ab\r\nc", 4, "ab…", true},
		{"room for the mark only", "abc", 1, "…", true},
		{"no room at all", "abc", 0, "", true},
		{"a negative length", "abc", -1, "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := Clean(tt.text, tt.max)
			changed := got != tt.text
			if got != tt.want || changed != tt.changed {
				t.Errorf("Clean(%q, %d) = %q, %t; want %q, %t", tt.text, tt.max, got, changed, tt.want, tt.changed)
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{
		"", "plain", "a\u202eb", "👨‍👩‍👧‍👦", "1\ufe0f\u20e3", "🏴\U000e0067\U000e0062", "a\r\r\n", "\xff\xfe\x00",
		"❤\ufe0f\u200d🔥",
	} {
		f.Add(seed, 7)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		got := Clean(text, limit)
		if found := Hidden(got); found != nil {
			t.Errorf("Clean(%q) = %q still hides %v", text, got, found)
		}
		if !utf8.ValidString(got) {
			t.Errorf("Clean(%q) = %q is not valid UTF-8", text, got)
		}
		if n := utf8.RuneCountInString(got); n > max(limit, 0) {
			t.Errorf("Clean(%q, %d) has %d runes", text, limit, n)
		}
		if again := Clean(got, limit); again != got {
			t.Errorf("cleaning twice gives %q, then %q", got, again)
		}
		if Hidden(text) == nil && utf8.ValidString(text) && utf8.RuneCountInString(text) <= limit && got != text {
			t.Errorf("Clean changed %q, which hides nothing", text)
		}
	})
}

func FuzzHidden(f *testing.F) {
	for _, seed := range []string{"a\nb\u200bc", "\u200b\n\u200b", "é\u202e", "🏴\U000e007f", "\r\n\r", "\xff\u200d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		lines := strings.Split(text, "\n")
		for _, h := range Hidden(text) {
			if h.Line > len(lines) {
				t.Fatalf("line %d of %d in %q", h.Line, len(lines), text)
			}
			runes := []rune(lines[h.Line-1])
			if h.Column > len(runes) || runes[h.Column-1] != h.Rune {
				t.Errorf("%v is not at its place in %q", h, text)
			}
			if invisible(h.Rune) || h.Rune == '\r' {
				continue
			}
			t.Errorf("%v is visible by itself and in no sequence", h)
		}
	})
}

func TestWhatHidesIsEscapedInJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"plain", "ümlaut and 😀", "a\u202egnp.exe", "a\u200bb\ufeff", "\U000e0041\U000e0042 tags", "\x7f\u0085\u009b31m",
		"\u2028\u2029", "\u3164", "❤️", "\U000f0000",
		"\x1b[2J\r", "a\u034fb",
	} {
		raw, err := json.Marshal(map[string]string{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		got := EscapeJSON(raw)
		var back map[string]string
		if err := json.Unmarshal(got, &back); err != nil || back["text"] != text {
			t.Errorf("%q became %s: %q, %v", text, got, back, err)
		}
		if found := Hidden(string(got)); len(found) > 0 {
			t.Errorf("%s still hides %v", got, found)
		}
	}
	if got := string(EscapeJSON([]byte("{\n\t\"a\": \"\u202e\"\n}\n"))); got != "{\n\t\"a\": \"\\u202e\"\n}\n" {
		t.Errorf("%q", got)
	}
}
