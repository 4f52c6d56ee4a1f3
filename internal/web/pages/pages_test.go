package pages_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/claudeops/claudeops/internal/base/markdown/markdowntest"
	"github.com/claudeops/claudeops/internal/web/pages"
)

// elements lists the elements of a fragment with the names of their attributes.
func elements(t *testing.T, fragment string) (out []string) {
	t.Helper()
	z := html.NewTokenizer(strings.NewReader(fragment))
	for z.Next() != html.ErrorToken {
		token := z.Token()
		if token.Type != html.StartTagToken && token.Type != html.SelfClosingTagToken {
			continue
		}
		entry := token.Data
		for _, a := range token.Attr {
			entry += " " + a.Key + "=" + a.Val
		}
		out = append(out, entry)
	}
	return out
}

func TestMarkdownOfOthersBringsNoElementThatCanActAndNoAttribute(t *testing.T) {
	allowed := map[string]bool{
		"p": true, "h4": true, "h5": true, "h6": true, "pre": true, "code": true, "ul": true, "ol": true, "li": true,
		"em": true, "strong": true,
		"blockquote": true, "hr": true, "br": true, "span class=target": true, "ol start=7": true,
	}
	for _, text := range []string{
		`<script>alert(1)</script>`, "a <b onclick=x>b</b> <img src=x onerror=y>", "<div>\n<iframe src=x>\n</div>",
		"<!-- c -->", "<!-- c\n\n-->x",
		`[a](javascript:alert(1) "t")`, `![a](https://evil.example/"onload="x)`, "<https://evil.example/\"x>",
		"<a@evil.example>", `[a]: x "y"` + "\n\n[a]",
		"```html\" onclick=x\n<script>\n```", "    <script>", "# h <i>x</i> {#id .class onclick=x}", "7. x\n8. y",
		"> a\n> - b\n>   1. c", "***x***\n\n---\n\n`<b>`",
		"&lt;script&gt; &#x3c;script>", "<?php x ?>", "<![CDATA[ x ]]>", "<style>*{}</style>",
		"</div></main><form action=//evil>", "a\\\nb  \nc",
	} {
		prose := pages.Markdown(text)
		for _, e := range elements(t, string(prose.HTML)) {
			if !allowed[e] {
				t.Errorf("%q brings <%s>: %s", text, e, prose.HTML)
			}
		}
	}
}

func TestMarkdownShowsWhereALinkLeads(t *testing.T) {
	got := string(pages.Markdown(
		"see [our wiki](https://evil.example/?a=1&b) and ![a cat](https://evil.example/cat)").HTML)
	for _, want := range []string{"our wiki", "(link to https://evil.example/?a=1&amp;b)",
		"(image: a cat at https://evil.example/cat)"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}

func TestMarkdownCleans(t *testing.T) {
	if got := pages.Markdown("a\u202eb\u200bc"); strings.ContainsAny(string(got.HTML), "\u202e\u200b") ||
		!strings.Contains(string(got.HTML), "abc") {
		t.Errorf("%q", got.HTML)
	}
}

// What grows with the square of a size takes hundreds of megabytes.
func TestMarkdownCostsLittleWhateverItIsGiven(t *testing.T) {
	const most = 50 << 20
	texts := markdowntest.Hostile()
	for _, unit := range []string{"[", "![", "*a **b ", "> ", "- ", "`", "<a ", "](", "_a", "&", "|", "\n> ", "\n- a\n ",
		"a*", "[a](", "[]: ", "\n[a]: b", "\n`", "\n\n# ", "<!--", "\t"} {
		var b strings.Builder
		for text := strings.Repeat(unit, markdowntest.Size/len(unit)); text != ""; {
			cut := min(len(text), 900)
			b.WriteString(text[:cut] + "\n")
			text = text[cut:]
		}
		texts["lines of "+unit] = b.String()
	}
	for name, text := range texts {
		var prose pages.Prose
		if n := markdowntest.Allocated(func() { prose = pages.MarkdownFile(text) }); n > most {
			t.Errorf("%s: %d MB are allocated", name, n>>20)
		}
		if len(prose.HTML) > 20*markdowntest.Size {
			t.Errorf("%s: the page has %d bytes", name, len(prose.HTML))
		}
		if prose.HTML == "" && prose.Plain == "" && strings.TrimSpace(text) != "" && !strings.Contains(text, "]: ") {
			t.Errorf("nothing is left of %s", name)
		}
	}
}

func TestRevealWritesOutWhatWouldHide(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "a\tb": "a\tb", "a\u202eb": "a⟨U+202E⟩b", "a\u200bb": "a⟨U+200B⟩b", "a\x1b[2J": "a⟨U+001B⟩[2J",
		"é": "é", "שלום": "שלום",
		strings.Repeat("x", 12): "xxxxxxxxxx … 2 more characters", "a\x00": "a⟨U+0000⟩",
	} {
		if got := pages.Reveal(text, 10); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestOnlyPlainWebAddressesAreLinked(t *testing.T) {
	for address, want := range map[string]bool{
		"https://git.example.org/a/b/pulls/1?x=y#z": true, "http://127.0.0.1:3000/x": true,
		"javascript:alert(1)": false, "JavaScript:alert(1)": false, "data:text/html,x": false, "file:///x#pr-1": false,
		"//evil.example": false, "": false,
		"https:evil": false, "https://user:pass@evil.example/": false, "https://": false, "ht\ntp://x": false,
		" https://x": false, "vbscript:x": false,
	} {
		if got := pages.WebAddress(address); (got != "") != want {
			t.Errorf("%q: %q", address, got)
		}
	}
}

func TestADiffIsReadByTheNumbersOfItsHunks(t *testing.T) {
	d := pages.ParseDiff(
		"diff --git a/checks/x.md b/checks/x.md\nindex 1..2 100644\n--- a/checks/x.md\n+++ b/checks/x.md\n@@ -1,3 +1,3 @@ # X\n"+
			" same\n--- old\n+++ new\n+@@ -1 +1 @@\n-diff --git\n\\ No newline at end of file\n--- /dev/null\n+++ "+
			"b/checks/y.md\n@@ -0,0 +1 @@\n+y\u202e\n"+
			"diff --git a/z b/z\nnew file mode 100644\nBinary files /dev/null and b/z differ\n", true, 1)
	var got []string
	for _, f := range d.Files {
		got = append(got, fmt.Sprint(f.Path, " ", f.Kind, " +", f.Added, " -", f.Removed, " ", f.Notes))
		for _, h := range f.Hunks {
			for _, l := range h.Lines {
				got = append(got, l.Kind+" "+l.Text)
			}
		}
	}
	want := []string{"checks/x.md changed +2 -2 []", "same same", "del -- old", "add ++ new", "add @@ -1 +1 @@",
		"del diff --git", "note no line break at the end",
		"checks/y.md created +1 -0 []", "add y⟨U+202E⟩", "z  +0 -0 [Binary files /dev/null and b/z differ]"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if p := d.Files[0].Hunks[0].Pairs; len(p) != 5 || p[1].Left.Text != "-- old" || p[1].Right.Text != "++ new" ||
		p[2].Left != nil {
		t.Errorf("pairs %+v", p)
	}
}

// Every file and every line of a difference is in one of its parts, once and in order.
func TestALargeDiffIsShownInPartsThatLeaveNothingOut(t *testing.T) {
	var b strings.Builder
	for i := range 120 {
		fmt.Fprintf(&b, "diff --git a/f%d b/f%d\n--- /dev/null\n+++ b/f%d\n@@ -0,0 +1,30 @@\n", i, i, i)
		for line := range 30 {
			fmt.Fprintf(&b, "+%d.%d\n", i, line+1)
		}
	}
	b.WriteString("--- a/long\n+++ b/long\n@@ -1 +1,9000 @@\n-old\n")
	for line := range 9000 {
		fmt.Fprintf(&b, "+120.%d\n", line+1)
	}
	first := pages.ParseDiff(b.String(), false, 1)
	if len(first.Index) != 121 || first.Index[120].Added != 9000 || first.Index[120].Removed != 1 ||
		first.Index[120].Kind != "changed" || first.Index[0].Kind != "created" {
		t.Fatalf("index of %d, %+v", len(first.Index), first.Index[len(first.Index)-1])
	}
	if first.Added() != 120*30+9000 || first.Removed() != 1 || first.Before() != 0 || first.After() != 2 || first.All() {
		t.Errorf("+%d -%d, before %d, after %d", first.Added(), first.Removed(), first.Before(), first.After())
	}
	var next [121]int
	lines := 0
	for part := 1; part <= first.Parts; part++ {
		d := pages.ParseDiff(b.String(), false, part)
		if d.Part != part || d.Parts != first.Parts || len(d.Files) > 51 {
			t.Fatalf("part %d of %d: %d of %d, %d files", part, first.Parts, d.Part, d.Parts, len(d.Files))
		}
		here := 0
		for _, f := range d.Files {
			if begins := first.Index[f.Number-1].Part; (begins == part) == f.Continued ||
				f.Path != first.Index[f.Number-1].Path {
				t.Errorf("part %d: %s begins in %d, continued %t", part, f.Path, begins, f.Continued)
			}
			for _, h := range f.Hunks {
				for _, l := range h.Lines {
					here++
					if l.Kind == "del" {
						continue
					}
					next[f.Number-1]++
					want := fmt.Sprintf("%d.%d", f.Number-1, next[f.Number-1])
					if l.Text != want || l.New != next[f.Number-1] || l.Mark != fmt.Sprintf("f%dn%d", f.Number, l.New) {
						t.Fatalf("part %d: %+v, want %s", part, l, want)
					}
				}
			}
		}
		if lines += here; here > 3000 || here+d.MoreLines != 120*30+9001 {
			t.Errorf("part %d: %d lines, %d more", part, here, d.MoreLines)
		}
	}
	if lines != 120*30+9001 {
		t.Errorf("%d lines in all parts", lines)
	}
	if d := pages.ParseDiff(b.String(), false, 99); d.Part != first.Parts {
		t.Errorf("after the last part comes %d", d.Part)
	}
}

func TestOddDiffsAreRead(t *testing.T) {
	d := pages.ParseDiff("+++ b/x\n@@ -0,0 +1,2 @@\n"+strings.Repeat("+"+strings.Repeat("z", 10_000)+"\n", 2), false, 1)
	if f := d.Files[0]; len(f.Hunks[0].Lines[0].Text) > 2100 {
		t.Errorf("a line of %d bytes", len(f.Hunks[0].Lines[0].Text))
	}
	for _, odd := range []string{"", "@@ -1 +1 @@\n+x", "+x\n-y\n", "--- ", "+++ /dev/null\n--- /dev/null\n",
		"@@ -9999999999 +1 @@", "\\\n\\", "diff --git \n@@ -1,0 +1,0 @@\n+"} {
		for _, part := range []int{-1, 0, 1, 2} {
			pages.ParseDiff(odd, true, part)
		}
	}
}

func TestNotesStandBesideTheirLines(t *testing.T) {
	d := pages.ParseDiff("--- a/x.md\n+++ b/x.md\n@@ -4,3 +4,3 @@\n same\n-gone\n+new\n last\n", false, 1)
	notes := map[pages.LineKey][]pages.LineNote{
		{Path: "x.md", Line: 5}:               {{Body: "about new"}},
		{Path: "x.md", Line: 5, Before: true}: {{Body: "about gone"}},
		{Path: "x.md", Line: 4, Before: true}: {{Body: "about same, before"}},
		{Path: "x.md", Line: 4}:               {{Body: "about same"}},
		{Path: "y.md", Line: 4}:               {{Body: "elsewhere"}},
	}
	var asked []pages.LineKey
	d.Annotate(notes, "f1o5", func(k pages.LineKey) *pages.LineForm { asked = append(asked, k); return &pages.LineForm{} })
	var got []string
	for _, l := range d.Files[0].Hunks[0].Lines {
		for _, n := range l.Notes {
			got = append(got, l.Text+": "+n.Body)
		}
	}
	if want := "same: about same|same: about same, before|gone: about gone|new: about new"; strings.Join(got,
		"|") != want {
		t.Errorf("got %s", strings.Join(got, "|"))
	}
	if len(asked) != 1 || asked[0] != (pages.LineKey{Path: "x.md", Line: 5, Before: true}) ||
		d.Files[0].Hunks[0].Lines[1].Form == nil {
		t.Errorf("forms for %+v", asked)
	}
}

func TestMarkdownHasTablesAndListsAndNothingThatActs(t *testing.T) {
	got := string(pages.Markdown("| a | b |\n|:--|--:|\n| <b>x</b> | [y](javascript:z) |\n\n- one\n- two\n").HTML)
	for _, want := range []string{"<table>", "<th scope=\"col\" align=\"left\">a</th>", "<td align=\"right\">y ",
		"&lt;b&gt;x&lt;/b&gt;", "<li>one</li>"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	for _, bad := range []string{"<b>", "href", "style="} {
		if strings.Contains(got, bad) {
			t.Errorf("%q is in %s", bad, got)
		}
	}
	file := string(pages.MarkdownFile("---\nname: <x>\n---\n# Title\n").HTML)
	if !strings.HasPrefix(file, "<pre><code>name: &lt;x&gt;</code></pre>") || !strings.Contains(file, "<h4>Title</h4>") {
		t.Errorf("a file with a head: %s", file)
	}
}

func TestListsAreCapped(t *testing.T) {
	l := pages.First(make([]string, 1000))
	if len(l.Items.([]string)) != pages.MaxItems || l.More != 1000-pages.MaxItems {
		t.Errorf("%d shown, %d more", len(l.Items.([]string)), l.More)
	}
}

func TestKeptFilesAreThoseThatTheirSumsName(t *testing.T) {
	sums, err := os.ReadFile("static/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	const htmx = "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717  htmx.min.js"       // of htmx.org 2.0.11
	const morph = "4cbd535caf7663a51eda9bce6595371c384fc430d54b8d414e29a61167f19f96  idiomorph.min.js" // of idiomorph 0.8.0
	if lines := strings.Count(string(sums), "\n"); lines != 5 || !strings.Contains(string(sums), htmx) ||
		!strings.Contains(string(sums), morph) {
		t.Errorf("%s", sums)
	}
	for line := range strings.Lines(string(sums)) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		content, err := os.ReadFile("static/" + name)
		if got := fmt.Sprintf("%x", sha256.Sum256(content)); err != nil || got != want {
			t.Errorf("%s is %s: %v", name, got, err)
		}
	}
}

func TestTheStyleIsSmallAndTakesNothingFromElsewhere(t *testing.T) {
	kept, err := os.ReadFile("static/tabler.css")
	if err != nil {
		t.Fatal(err)
	}
	assets, err := pages.LoadAssets()
	if err != nil {
		t.Fatal(err)
	}
	if own := len(assets.Style.Content) - len(kept); own > 30<<10 {
		t.Errorf("our style sheet has %d bytes", own)
	}
	style := strings.Replace(string(assets.Style.Content), "url("+assets.Font.Name+")", "", 1)
	for _, unwanted := range []string{"url(", "@import", "data:"} {
		if strings.Contains(style, unwanted) {
			t.Errorf("the style sheet has %s", unwanted)
		}
	}
	sent := len(assets.Icon.Content) + len(assets.Font.Content)
	for _, a := range []pages.Asset{assets.Style, assets.Htmx, assets.Live} {
		sent += len(a.Packed()["br"])
	}
	const page = 20 << 10 // compressed, and the heads of the answers
	if sent > 90<<10-page {
		t.Errorf("%d bytes come with a first page", sent)
	}
}

func TestEveryTemplateIsOne(t *testing.T) {
	if _, err := pages.Load(pages.Shower{}); err != nil {
		t.Error(err)
	}
}
