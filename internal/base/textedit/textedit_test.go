package textedit

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const text = "# Disk\n\nLook at df -h.\n  If it is over 80 %, say so.\nLook at df -h.\n"

func TestApply(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		edits []Edit
		want  string
	}{
		"one": {text, []Edit{{"80 %", "90 %"}}, strings.Replace(text, "80", "90", 1)},
		"one after the other": {text, []Edit{{"# Disk", "# Disks"}, {"Disks\n\nLook", "Disks\nSee"}},
			strings.Replace(text, "# Disk\n\nLook", "# Disks\nSee", 1)},
		"of several lines": {text, []Edit{{"say so.\nLook at df -h.\n", "say so.\n"}},
			"# Disk\n\nLook at df -h.\n  If it is over 80 %, say so.\n"},
		"to nothing": {"a\n", []Edit{{"a\n", ""}}, ""},
		"none":       {text, nil, text},
	} {
		got, err := Apply(c.text, c.edits, nil)
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestApplySaysWhatDoesNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		edits []Edit
		want  Mismatch
	}{
		"twice": {text, []Edit{{"Disk", "Disks"}, {"Look at", "See"}},
			Mismatch{Index: 1, Lines: []int{3, 5},
				Why: "`old` is there 2 times, in lines 3, 5; give more of the text around it, so that it is there once"}},
		"overlap": {"aaa", []Edit{{"aa", "b"}},
			Mismatch{Lines: []int{1, 1},
				Why: "`old` is there 2 times, in lines 1, 1; give more of the text around it, so that it is there once"}},
		"empty": {text, []Edit{{"", "x"}}, Mismatch{Why: "`old` is empty; give the text that is to be replaced"}},
		"spaces": {text, []Edit{{"If it is over 80 %,  say so.\nLook at df -h.", "x"}},
			Mismatch{Lines: []int{4}, Why: "`old` is in line 4 but for tabs and the number of spaces (the file has none, " +
				"`old` none)"}},
		"half of the lines": {text, []Edit{{"Look at df -h.\n  If it is over 70 %, say so.\n", "x"}},
			Mismatch{Lines: []int{3, 5}, Why: "`old` is not there; something like it begins in lines 3, 5"}},
		"most of the words": {text, []Edit{{"If it is over 70 %, say so.", "x"}},
			Mismatch{Lines: []int{4}, Why: "`old` is not there; something like it begins in line 4"}},
		"nothing like it": {text, []Edit{{"quite another thing", "x"}}, Mismatch{Why: "`old` is not there"}},
		"ends of lines": {"a\r\nb\r\n", []Edit{{"a\nb", "x"}},
			Mismatch{Lines: []int{1}, Why: "`old` is in line 1 but for the ends of lines: the file has \\r\\n"}},
	} {
		got, err := Apply(c.text, c.edits, nil)
		var m *Mismatch
		if !errors.As(err, &m) || got != "" {
			t.Errorf("%s: %q, %v", name, got, err)
			continue
		}
		if diff := cmp.Diff(c.want, *m); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestAMismatchNamesTheCharactersThatDiffer(t *testing.T) {
	for name, c := range map[string]struct{ text, old, want string }{
		"a no-break space": {"# Disk\n\nLook at df\u00a0-h.\n", "Look at df -h.",
			"in line 3 but for the kind of space (the file has U+0020 U+00A0, `old` U+0020)"},
		"accents": {"Pru\u0308fe die Platte.\n", "Pr\u00fcfe die Platte.",
			"in line 1 but for the way in which accents are written (NFC or NFD) (the file has U+0308, `old` none)"},
		"a dash": {"over 80 \u2013 90 %\n", "over 80 - 90 %",
			"in line 1 but for the kind of dash (the file has U+2013, `old` U+002D)"},
		"curly quotes": {"say \u201cfull\u201d\n", "say \"full\"",
			"in line 1 but for the kind of quotation mark (the file has U+201C U+201D, `old` U+0022)"},
		"an apostrophe":  {"it\u2019s full\n", "it's full", "in line 1 but for the kind of apostrophe (the file has U+2019, `old` U+0027)"},
		"a tab":          {"a\n\tb\n", "a\n    b", "in line 1 but for tabs and the number of spaces (the file has U+0009, `old` none)"},
		"trailing space": {"one  \ntwo\n", "one\ntwo", "in line 1 but for spaces at the ends of lines"},
		"two kinds": {"it\u2019s 80 \u2013 90\n", "it's 80 - 90",
			"in line 1 but for the kind of dash (the file has U+2013, `old` U+002D), and the kind of apostrophe (the file has " +
				"U+2019, `old` U+0027)"},
		"another word as well": {"say \u201cfull\u201d\n", "tell \"full\" disks", "not there"},
	} {
		_, err := Apply(c.text, []Edit{{c.old, "x"}}, nil)
		var m *Mismatch
		if !errors.As(err, &m) || !strings.Contains(m.Why, c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestWhatIsPutIntoATextGetsItsEnds(t *testing.T) {
	for name, c := range map[string]struct{ text, new, want string }{
		"a text with CRLF":         {"a\r\nb\r\n", "b\nc", "a\r\nb\r\nc\r\n"},
		"new text that has CRLF":   {"a\r\nb\r\n", "b\r\nc", "a\r\nb\r\nc\r\n"},
		"a text with both":         {"a\r\nb\n", "b\nc", "a\r\nb\nc\n"},
		"a text with LF":           {"a\nb\n", "b\nc", "a\nb\nc\n"},
		"a text without any lines": {"b", "b\nc", "b\nc"},
	} {
		if got, err := Apply(c.text, []Edit{{"b", c.new}}, nil); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// A caller who was shown a text without its invisible characters need not know about them.
func TestAPartOfWhatWasShownFits(t *testing.T) {
	show := func(text string) string { return strings.NewReplacer("\u200c", "", "\ufeff", "").Replace(text) }
	for name, c := range map[string]struct{ text, old, new, want string }{
		"within the part":   {"x mi\u200craved y\n", "miraved", "amad", "x amad y\n"},
		"before the part":   {"\ufeff# Disk\n", "# Disk", "# Disks", "\ufeff# Disks\n"},
		"beside the part":   {"a\u200cb c\n", "c", "d", "a\u200cb d\n"},
		"at both its ends":  {"a\u200cb\u200cc", "b", "B", "a\u200cB\u200cc"},
		"over several":      {"a\u200cb\u200cc", "abc", "x", "x"},
		"two edits, of one": {"a\u200cb c\u200cd\n", "ab cd", "ab", "ab\n"},
	} {
		if got, err := Apply(c.text, []Edit{{c.old, c.new}}, show); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for name, old := range map[string]string{"not there": "q", "twice": "ab"} {
		if got, err := Apply("a\u200cb a\u200cb", []Edit{{old, "x"}}, show); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestCompare(t *testing.T) {
	for name, c := range map[string]struct {
		before, after string
		want          Counts
	}{
		"nothing": {text, text, Counts{}}, "a new file": {"", "a\nb\n", Counts{2, 0}},
		"a file that goes": {"a\nb", "", Counts{0, 2}}, "one line": {"a\nb\nc\n", "a\nB\nc\n", Counts{1, 1}},
		"the last line's end": {"a", "a\n", Counts{1, 1}},
	} {
		if got := Compare(c.before, c.after); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// A difference by characters, or one that stops looking, counts all lines between the first change and the last one.
func TestOfATextWithChangesFromItsBeginningToItsEndTheChangedLinesAreCounted(t *testing.T) {
	for _, c := range []struct{ lines, every int }{{200, 17}, {755, 11}, {2000, 3}} {
		before, after, want := make([]string, c.lines), make([]string, c.lines), Counts{}
		for i := range before {
			before[i] = fmt.Sprintf("%d. Look at the dashboard of service %d, then wait for it.", i, i*i)
			after[i] = before[i]
			switch i % 6 {
			case 0, 3:
				before[i], after[i] = "", ""
			case 1:
				before[i], after[i] = "Then look again.", "Then look again."
			}
			if i%c.every == 0 {
				after[i] = fmt.Sprintf("Restart part %d first.", i)
				want.Added, want.Removed = want.Added+1, want.Removed+1
			}
		}
		old, now := strings.Join(before, "\n"), strings.Join(after, "\n")
		if got := Compare(old, now); got != want {
			t.Errorf("%d lines: %+v, want %+v", c.lines, got, want)
		}
		if got := strings.Count(Unified("a", "b", old, now), "\n+"); got != want.Added+1 { // and that of the file's name
			t.Errorf("%d lines: %d lines are added in the difference", c.lines, got)
		}
	}
}

func FuzzApply(f *testing.F) {
	f.Add(text, "Look", "See")
	f.Fuzz(func(t *testing.T, text, before, after string) {
		got, err := Apply(text, []Edit{{before, after}}, nil)
		if err == nil && (strings.Count(text, before) != 1 || len(got) != len(text)-len(before)+len(after)) {
			t.Errorf("%q -> %q in %q gives %q", before, after, text, got)
		}
	})
}

func TestMade(t *testing.T) {
	const text = "# Disk\n\nLook at df -h.\nReport what is over 90 %.\n"
	for name, c := range map[string]struct {
		edits []Edit
		want  bool
	}{
		"replaced": {[]Edit{{"Report what is over 80 %.", "Report what is over 90 %."}}, true},
		"added":    {[]Edit{{"Look at df -h.\n", "Look at df -h.\nReport what is over 90 %.\n"}}, true},
		"replaced and taken out": {[]Edit{{"Report what is over 80 %.", "Report what is over 90 %."}, {"Then wait.", ""}},
			true},
		"in part": {[]Edit{{"Report what is over 80 %.", "Report what is over 90 %."},
			{"Look at df", "See df"}}, false},
		"not yet":         {[]Edit{{"Look at df -h.", "Look at df -h, and at lsblk."}}, false},
		"a shorter part":  {[]Edit{{"Report what is over 90 %.", "what is over 90 %"}}, false},
		"by chance":       {[]Edit{{"something gone", "90 %"}}, false},
		"taken out alone": {[]Edit{{"something gone", ""}}, false},
		"none":            {nil, false},
	} {
		if got := Made(text, c.edits); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestAMismatchNamesTheLineThatIsMostAlike(t *testing.T) {
	var b strings.Builder
	for i := range 900 {
		fmt.Fprintf(&b, "- The check number %d looks at the disk of the host and reports what it has found there.\n", i)
	}
	for old, want := range map[string]int{
		"- The check number 651 looks at the disk of the host and reports what it has seen there.": 652,
		"- The check number 651 looks at the disks of the host and reports what it has found.":     652,
	} {
		_, err := Apply(b.String(), []Edit{{old, "x"}}, nil)
		var m *Mismatch
		if !errors.As(err, &m) || !slices.Equal(m.Lines, []int{want}) {
			t.Errorf("%q: %v", old, err)
		}
	}
}

func TestTwoChangesOfATextAreMerged(t *testing.T) {
	const base = "one\ntwo\nthree\nfour\nfive\n"
	for name, c := range map[string]struct {
		ours, theirs, want string
		ok                 bool
	}{
		"other lines": {"ONE\ntwo\nthree\nfour\nfive\n", "one\ntwo\nthree\nfour\nFIVE\n",
			"ONE\ntwo\nthree\nfour\nFIVE\n", true},
		"the same change": {"one\nTWO\nthree\nfour\nfive\n", "one\nTWO\nthree\nfour\nfive\n",
			"one\nTWO\nthree\nfour\nfive\n", true},
		"one side alone":        {base, "one\nthree\nfour\nfive\n", "one\nthree\nfour\nfive\n", true},
		"added and taken out":   {"zero\n" + base, "one\ntwo\nthree\nfour\n", "zero\none\ntwo\nthree\nfour\n", true},
		"the same line":         {"one\nTWO\nthree\nfour\nfive\n", "one\n2\nthree\nfour\nfive\n", "", false},
		"lines that touch":      {"one\nTWO\nthree\nfour\nfive\n", "one\ntwo\n3\nfour\nfive\n", "", false},
		"added at one place":    {base + "six\n", base + "seven\n", "", false},
		"changed and taken out": {"one\nTWO\nthree\nfour\nfive\n", "", "", false},
	} {
		if got, ok := Merge(base, c.ours, c.theirs); got != c.want || ok != c.ok {
			t.Errorf("%s: %q, %t", name, got, ok)
		}
	}
}
