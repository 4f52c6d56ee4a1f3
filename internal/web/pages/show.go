package pages

import (
	"fmt"
	"html/template"
	"net/url"
	"reflect"
	"strings"
	"time"
	"unicode"

	"github.com/claudeops/claudeops/internal/base/textscan"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/views"
)

// Bounds of what a page shows, in runes.
const (
	maxLine  = 300
	maxText  = 5000
	maxWhole = 64 << 10 // what is recorded of an agent's text is shorter
)

// MaxItems limits the entries of a list that a page shows.
const MaxItems = 20

// Shower prepares texts of others for display: without our tokens and invisible characters, and bounded.
type Shower struct {
	Redact func(text string) string // keeps the values of our own tokens out
	Now    func() time.Time
	// Redaction returns a number that changes whenever Redact begins to remove something else; nil where it is not known:
	// then no part of a page is cached.
	Redaction func() int64
}

// Text is text that is fit to be shown already.
type Text string

// Bounded returns at most runes runes of a text.
func (s Shower) Bounded(text string, runes int) Text {
	return Text(textscan.Clean(s.Redact(text), runes))
}

// functions returns the functions for templates beside those of the library.
func (s Shower) functions() template.FuncMap {
	return template.FuncMap{
		"shown":    s.displayValue,
		"line":     func(v any) Text { return s.Bounded(fmt.Sprint(v), maxLine) },
		"whole":    func(text string) Text { return s.Bounded(text, maxWhole) },
		"bounded":  s.Bounded,
		"revealed": func(text string) Text { return Text(text) }, // by Reveal
		"when":     func(t time.Time) When { return whenOf(t, s.Now()) },
		"markdown": func(text string) Prose { return Markdown(s.Redact(text)) },
		"first":    First,
		"based":    func(base string, of any) partView { return partView{base, of} },
		"bars":     func(base string, of any) bars { return bars{base, of} },
		"way":      func(base string, steps any) way { return way{base, steps} },
		"sheet":    func(page, act any) sheet { return sheet{page, act} },
		"find":     func(name, value, label string) findField { return findField{name, value, label} },
		"shorter":  shorterPath,
		"lowered":  views.Lowered,
		"last":     func(items any) int { return reflect.ValueOf(items).Len() - 1 },
		"beyond": func(l List) int { // entries after the first two
			return max(0, reflect.ValueOf(l.Items).Len()-2) + l.More
		},
		"gap":     func(d *Diff, g *Gap) gapView { return gapView{d, g} },
		"short":   Short,
		"field":   func(id, problem string) formField { return formField{id, problem} },
		"lineno":  linkLine,
		"fileno":  func(index int) int { return index + 1 },
		"rich":    Rich,
		"cell":    func(base string, c operation.Cell) cell { return cell{c, base} },
		"weblink": func(address string) Text { return Text(WebAddress(address)) },
		// Words of people; see the package words.
		"word":     views.WordOf,
		"code":     record.CodeText,
		"gate":     views.Gate,
		"caller":   record.ReadableCaller,
		"door":     func(d any) string { return views.Door(record.Door(fmt.Sprint(d))) },
		"cost":     views.Cost,
		"tokens":   views.Tokens,
		"took":     views.Length,
		"sentence": views.Sentence,
		"plain":    func(text string) string { return views.Plain(s.Redact(text)) },
		"face":     views.Face,
		"count":    func(n any) Text { return Text(views.Count(reflect.ValueOf(n).Int())) },
		"many":     func(n any, one, more string) Text { return Text(views.Many(reflect.ValueOf(n).Int(), one, more)) },
	}
}

// displayValue makes fit what a template writes, unless it is already.
func (s Shower) displayValue(v any) any {
	switch v := v.(type) {
	case Text:
		return string(v)
	case template.HTML:
		return v
	case fmt.Stringer:
		return string(s.Bounded(v.String(), maxText))
	}
	if value := reflect.ValueOf(v); value.Kind() == reflect.String {
		return string(s.Bounded(value.String(), maxText))
	}
	return v
}

// findField is the field of a list in which people search.
type findField struct{ Name, Value, Label string }

// maxShownPath bounds a path in a row of a list, in runes.
const maxShownPath = 44

// shorterPath returns a path by its beginning and its name, where it is long.
func shorterPath(path string) string {
	runes := []rune(path)
	if len(runes) <= maxShownPath {
		return path
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	if end := []rune(name); len(end) > maxShownPath/2 {
		name = string(end[len(end)-maxShownPath/2:])
	}
	return string(runes[:maxShownPath-len([]rune(name))-1]) + "…" + name
}

// gapView is a gap as its template takes it.
type gapView struct {
	Diff *Diff
	Gap  *Gap
}

// bars is a chart of bars as its template takes it.
type bars struct {
	Base string
	Bars any
}

// way is the history of a change, in the form that its template takes.
type way struct {
	Base  string
	Steps any
}

// sheet is the form of an act on a page as its template takes it.
type sheet struct{ Page, Act any }

// formField is a field of a form, and what is wrong with it as it was sent; "" for nothing.
type formField struct{ ID, Problem string }

// Short returns the beginning of an object id.
func Short(id string) string { return id[:min(len(id), 12)] }

// List is a list that is shown in part.
type List struct {
	Items any
	More  int // how many are left out
}

// First returns the first entries of a slice.
func First(items any) List {
	all := reflect.ValueOf(items)
	if all.Len() <= MaxItems {
		return List{Items: items}
	}
	return List{all.Slice(0, MaxItems).Interface(), all.Len() - MaxItems}
}

// When is a moment as a page shows it.
type When struct {
	ISO, Text string
	Ago       string // "4 min"
	Clock     string // "08:02", in UTC
	Since     string // the same in a sentence: "4 min ago"
}

// whenOf returns t seen from now; the zero When for the zero time.
func whenOf(t, now time.Time) When {
	if t.IsZero() {
		return When{}
	}
	t = t.UTC()
	age := views.Age(now.Sub(t))
	since := age
	if now.Sub(t) >= time.Minute {
		since += " ago"
	}
	return When{ISO: t.Format(time.RFC3339), Text: t.Format("2006-01-02 15:04:05") + " UTC", Ago: age, Since: since,
		Clock: t.Format("15:04")}
}

// cell is a cell as a template shows it.
type cell struct {
	operation.Cell
	Base string
}

// Span is a part of one of our own texts.
type Span struct {
	Text string
	Link string // where it leads, with the base; "" for nowhere
	Code bool
}

// Rich reads one of our own texts, in which [words](/path) is a link and `words` is code; see operation.Shown. Other
// text stays unchanged.
func Rich(base, text string) (spans []Span) {
	for text != "" {
		at := strings.IndexAny(text, "[`")
		if at < 0 {
			return append(spans, Span{Text: text})
		}
		if at > 0 {
			spans = append(spans, Span{Text: text[:at]})
		}
		var span Span
		var rest string
		ok := false
		if text[at] == '`' {
			span.Text, rest, ok = strings.Cut(text[at+1:], "`")
			span.Code = true
		} else if words, after, found := strings.Cut(text[at+1:], "](/"); found {
			span.Text, span.Link = words, base+"/"
			path := ""
			path, rest, ok = strings.Cut(after, ")")
			span.Link += strings.TrimLeft(path, `/\`) // with two, and without a base, it would lead to another host
		}
		if !ok {
			return append(spans, Span{Text: text[at:]})
		}
		spans, text = append(spans, span), rest
	}
	return spans
}

// Reveal shows what others would hide: each hidden character is written as its code point, and what is beyond maxRunes
// is counted instead of shown. It is for texts that a person has to judge, such as the lines of a diff.
func Reveal(line string, maxRunes int) string {
	runes := 0
	for at := range line {
		if runes == maxRunes {
			rest := strings.ToValidUTF8(line[at:], "\uFFFD")
			return Reveal(line[:at], maxRunes) + fmt.Sprintf(" … %d more characters", len([]rune(rest)))
		}
		runes++
	}
	if textscan.Clean(line, len(line)+1) == line {
		return line
	}
	var b strings.Builder
	for _, r := range line {
		hidden := textscan.Clean(string(r), 2) != string(r)
		if r != '\t' && (hidden || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// WebAddress returns an absolute http or https address without user information as it may be linked to, or "".
func WebAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Opaque != "" {
		return ""
	}
	if text := u.String(); textscan.Clean(text, 2000) == text {
		return text
	}
	return ""
}
