package content

import (
	"strings"
	"testing"
	"unicode/utf8"
)

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
