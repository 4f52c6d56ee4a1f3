package content

import (
	"encoding/json"
	"testing"
)

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
