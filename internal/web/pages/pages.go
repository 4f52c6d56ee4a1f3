// Package pages renders pages: their templates, and the text that agents and reviewers wrote made harmless. Whatever a
// template writes is cleaned and redacted (see Shower), so that views can hold records as they are. It knows no HTTP,
// no record and no provider; internal/web/dashboard has the views.
//
// The pages work without JavaScript, refer to nothing outside the server, and have no inline script or style, so that
// the strictest content security policy holds.
package pages

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"reflect"
	"strings"
	"sync"
	"text/template/parse"
	"time"

	"github.com/claudeops/claudeops/internal/records/record"
)

//go:embed templates/*.html
var templates embed.FS

// Set renders pages. It is safe for concurrent use.
type Set struct {
	byName  map[string]func() (*template.Template, error)
	scratch sync.Pool // of *bytes.Buffer
}

// Load returns the pages. Whatever one of their templates writes is made fit to be shown by show, so that no page has
// to think of it. The process's first call parses the templates; an error is a fault in one of them.
func Load(show Shower) (*Set, error) {
	parsed, err := parsedPages()
	if err != nil {
		return nil, err
	}
	drawn, err := icons()
	if err != nil {
		return nil, err
	}
	set := &Set{byName: map[string]func() (*template.Template, error){}}
	kept := &parts{show: show}
	for name, file := range parsed.files {
		set.byName[name] = sync.OnceValues(func() (*template.Template, error) {
			page, err := parsed.parsePage(file)
			if err != nil {
				return nil, err
			}
			return page.Funcs(show.functions()).Funcs(template.FuncMap{"icon": iconOf(drawn),
				"part": func(part, base string, of Part) (template.HTML, error) {
					return kept.renderPart(page, partKey{page: name, template: part, base: base}, of)
				},
				"parts": func(part, base string, list any) (template.HTML, error) {
					return kept.renderParts(page, partKey{page: name, template: part, base: base}, reflect.ValueOf(list))
				}}), nil
		})
	}
	return set, nil
}

//nolint:gochecknoglobals // parsed once: they depend on the program alone
var parsedPages = sync.OnceValues(parsePages)

// sharedTemplates are what all pages use, and the files of the pages.
type sharedTemplates struct {
	every *template.Template // only cloned: a template that was executed cannot be
	files map[string]string  // by the page's name
}

// parsePages parses each page once, so that a fault in one is known at the start. What it keeps is what pages share: a
// server without readers has no memory for pages.
func parsePages() (*sharedTemplates, error) {
	const layout, shared = "templates/layout.html", "templates/parts*.html"
	files, err := fs.Glob(templates, "templates/*.html")
	if err != nil {
		return nil, err
	}
	every := template.New("layout.html").Funcs(Shower{}.functions()).Funcs(template.FuncMap{"icon": iconOf(nil),
		"part":  func(string, string, Part) (template.HTML, error) { return "", nil },
		"parts": func(string, string, any) (template.HTML, error) { return "", nil }})
	if every, err = every.ParseFS(templates, layout, shared); err != nil {
		return nil, err
	}
	showAll(every, map[*parse.Tree]bool{})
	parsed := &sharedTemplates{every: every, files: map[string]string{}}
	for _, file := range files {
		if isShared, err := path.Match(shared, file); file == layout || isShared || err != nil {
			continue
		}
		if _, err := parsed.parsePage(file); err != nil {
			return nil, err
		}
		parsed.files[strings.TrimSuffix(path.Base(file), ".html")] = file
	}
	return parsed, nil
}

// parsePage parses the template of a page, together with those that all pages use.
func (s *sharedTemplates) parsePage(file string) (*template.Template, error) {
	page, err := s.every.Clone()
	if err != nil {
		return nil, err
	}
	shown := map[*parse.Tree]bool{}
	for _, t := range page.Templates() {
		shown[t.Tree] = true
	}
	if page, err = page.ParseFS(templates, file); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	showAll(page, shown)
	return page, nil
}

// showAll ends the pipelines of a template, and of those that belong to it, unless they were shown before.
func showAll(page *template.Template, shown map[*parse.Tree]bool) {
	for _, t := range page.Templates() {
		if t.Tree != nil && !shown[t.Tree] {
			showOutputs(t.Tree.Root)
			shown[t.Tree] = true
		}
	}
}

// showOutputs ends every pipeline that writes something with the function shown.
func showOutputs(list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch n := node.(type) {
		case *parse.ActionNode:
			if len(n.Pipe.Decl) == 0 && !makesHTML(n.Pipe) {
				shown := parse.NewIdentifier("shown").SetPos(n.Pos)
				n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos,
					Args: []parse.Node{shown}})
			}
		case *parse.IfNode:
			showOutputs(n.List)
			showOutputs(n.ElseList)
		case *parse.RangeNode:
			showOutputs(n.List)
			showOutputs(n.ElseList)
		case *parse.WithNode:
			showOutputs(n.List)
			showOutputs(n.ElseList)
		}
	}
}

// makesHTML reports whether a pipeline is a call of a function that returns HTML, which is fit to be shown already.
func makesHTML(pipe *parse.PipeNode) bool {
	last := pipe.Cmds[len(pipe.Cmds)-1].Args[0].String()
	return last == "part" || last == "parts" || last == "icon"
}

// Render renders the page with a name, which is that of its template, from its view.
func (s *Set) Render(name string, view any) ([]byte, error) {
	load, known := s.byName[name]
	if !known {
		return nil, fmt.Errorf("there is no page %q", name)
	}
	page, err := load()
	if err != nil {
		return nil, fmt.Errorf("page %s: %w", name, err)
	}
	b, isThere := s.scratch.Get().(*bytes.Buffer)
	if !isThere {
		b = &bytes.Buffer{}
	}
	defer s.scratch.Put(b)
	b.Reset()
	if err := page.Execute(b, view); err != nil {
		return nil, fmt.Errorf("page %s: %w", name, err)
	}
	return bytes.Clone(b.Bytes()), nil
}

// Page is the input of the layout around every page. Every view embeds one.
type Page struct {
	Base       string // path below which the server is, "" or "/ops"
	Title      string
	Nav        []NavItem
	Current    string // path of the entry of the navigation that the page belongs to
	Who        string // "" when not signed in
	CanSignOut bool
	CanSignIn  bool // the caller is not known
	MayOperate bool
	MayReview  bool
	Counts     record.FrameCounts // Tabs is nil where they are not known
	Standing   ServerStatus
	Paused     []Pause // what a person has stopped
	Style      string  // names of assets
	Icon       string
	Theme      string // the script that applies the theme which the browser's user chose
	Version    string
	Scripts    [2]string // names of assets, for pages that follow what happens
	Again      string    // address that tries again what a forge did not answer; "" for none
	Position   string    // what the page knows of what has happened; "" for a page that stays as it is
}

// Pause is something that a person has stopped, as every page says it.
type Pause struct {
	What, Repo   string // Repo is "" for everything
	By, Why      string // untrusted
	Since, Until time.Time
}

// ServerStatus describes the state of the server on every page.
type ServerStatus struct {
	Health, Tone string // in words, and the colour of the dot beside them
	Mode         string // what it does with proposals
	Held         bool   // it opens none
	Down         []UnavailableForge
}

// UnavailableForge is a forge that does not serve us.
type UnavailableForge struct {
	Provider   string
	Title, Why string
	Since      time.Time
}

// NavItem is a place of the navigation or, below it, a tab.
type NavItem struct {
	Path, Text, Icon string
	Tabs             []NavItem
	Count            int64  // of what is there, 0 for none that is shown
	Counted          string // what Count counts, as in "3 waiting"
	Operate          bool   // for who may operate alone
}

// OfForge returns the page with the trouble of one forge alone; again is the address, without the base, that asks it
// again.
func (p Page) OfForge(provider, again string) Page {
	var own []UnavailableForge
	for _, f := range p.Standing.Down {
		if f.Provider == provider {
			own = append(own, f)
		}
	}
	p.Standing.Down, p.Again = own, p.Base+again
	return p
}

// WaitsFor names those for whom open changes wait, as the reader is told.
func (p Page) WaitsFor() string {
	if p.MayReview {
		return "you"
	}
	return "reviewers"
}

// Place returns the place of the navigation that the page belongs to; the zero one for a page of none.
func (p Page) Place() NavItem {
	for _, place := range p.Nav {
		for _, tab := range append(place.Tabs[:len(place.Tabs):len(place.Tabs)], place) {
			if tab.Path == p.Current {
				return place
			}
		}
	}
	return NavItem{}
}

// Frame returns what surrounds the content of every page as a part of it.
func (p Page) Frame() Part {
	return frame{
		Who: p.Who, Version: p.Version, Style: p.Style, Icon: p.Icon, Theme: p.Theme, Scripts: p.Scripts,
		CanSignOut: p.CanSignOut, CanSignIn: p.CanSignIn, MayOperate: p.MayOperate, Follows: p.Position != "",
		Health: p.Standing.Health, Tone: p.Standing.Tone, Mode: p.Standing.Mode, Held: p.Standing.Held,
	}
}

// frame is what surrounds the content of every page: most pages of a person have the same.
type frame struct {
	Who, Version, Style, Icon, Theme           string
	Scripts                                    [2]string
	CanSignOut, CanSignIn, MayOperate, Follows bool
	Health, Tone, Mode                         string
	Held                                       bool
}

// Key implements Part: it is the whole.
func (f frame) Key() any { return f }

// Moment returns no time.
func (frame) Moment() time.Time { return time.Time{} }

// Places returns the places of the navigation as parts of the page: of those, few change with a record.
func (p Page) Places() (out []place) {
	now := p.Place().Text
	for _, n := range p.Nav {
		out = append(out, place{n.Path, n.Text, n.Icon, n.Counted, n.Count, n.Text == now})
	}
	return out
}

// place is a place of the navigation; see NavItem.
type place struct {
	Path, Text, Icon, Counted string
	Count                     int64
	Now                       bool // the page belongs to it
}

// Key implements Part: it is the whole.
func (p place) Key() any { return p }

// Moment returns no time.
func (place) Moment() time.Time { return time.Time{} }

// Navigation returns the six top-level entries; acts are the lists of agents and of browsers that are signed in.
// Without a toolset that has pages there is no entry for procedures.
func Navigation(acts, toolsets []NavItem) []NavItem {
	var agents []NavItem
	settings := []NavItem{{Path: "/policy", Text: "Policy"}, {Path: "/doctor", Text: "Health"}}
	for _, act := range acts {
		if act.Path == "/logins" {
			settings = append(settings, act)
			continue
		}
		agents = append(agents, act)
	}
	settings = append(settings, NavItem{Path: "/tokens/people", Text: "Tokens", Operate: true},
		NavItem{Path: "/docs", Text: "API"})
	agents = append([]NavItem{{Path: "/sessions", Text: "Sessions"}, {Path: "/sessions/schedule", Text: "Schedule"}},
		agents...)
	agents = append(agents, NavItem{Path: "/tokens", Text: "Agent tokens", Operate: true})
	places := []NavItem{
		{Path: "/", Text: "Overview", Icon: "layout-dashboard"},
		{Path: "/changes", Text: "Changes", Icon: "git-pull-request"},
		{Path: "/sessions", Text: "Agents", Icon: "robot", Tabs: agents},
	}
	if len(toolsets) > 0 {
		places = append(places, NavItem{Path: toolsets[0].Path, Text: "Procedures", Icon: "book-2", Tabs: toolsets})
	}
	return append(places,
		NavItem{Path: "/audit", Text: "Records", Icon: "history",
			Tabs: []NavItem{{Path: "/audit", Text: "What happened"}, {Path: "/outcomes", Text: "Outcomes"}}},
		NavItem{Path: "/policy", Text: "Settings", Icon: "settings", Tabs: settings},
	)
}

// Part is something that a page shows by a template of its own, such as a row of a table. What was made of it is kept,
// and shown again.
type Part interface {
	// Key is all that the part shows, the time aside: two parts of the same template with equal keys look the same. It
	// must be comparable; nil for a part that is made anew each time.
	Key() any
	// Moment is the time that the part shows seen from now; the zero time for none.
	Moment() time.Time
}

// Bounds of the parts that are kept, in parts and in bytes. Beyond them, all are given up.
const (
	maxParts     = 4000
	maxPartBytes = 8 << 20
)

// partKey is all that the text of a part depends on.
type partKey struct {
	page, template, base string
	of                   any
	ago                  string // the part's moment, in words
	redaction            int64  // what Redact keeps out
}

// parts keeps the text of parts. It is safe for concurrent use.
type parts struct {
	show Shower

	mu    sync.Mutex
	made  map[partKey]template.HTML
	bytes int
}

// partView is the input of a part's template.
type partView struct {
	Base string
	Of   any
}

// renderPart returns the output of a page's template for a part.
func (p *parts) renderPart(page *template.Template, key partKey, of Part) (template.HTML, error) {
	if key.of = of.Key(); key.of == nil || p.show.Redaction == nil {
		return p.execute(page, key, of)
	}
	// Before the text is made, so that a token that is learned meanwhile makes it old.
	key.redaction = p.show.Redaction()
	if at := of.Moment(); !at.IsZero() {
		key.ago = whenOf(at, p.show.Now()).Ago
	}
	p.mu.Lock()
	text, found := p.made[key]
	p.mu.Unlock()
	if found {
		return text, nil
	}
	text, err := p.execute(page, key, of)
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made == nil || len(p.made) >= maxParts || p.bytes+len(text) > maxPartBytes {
		p.made, p.bytes = map[partKey]template.HTML{}, 0
	}
	if _, has := p.made[key]; !has {
		p.made[key], p.bytes = text, p.bytes+len(text)
	}
	return text, nil
}

// renderParts returns the output of a page's template for each part of a slice.
func (p *parts) renderParts(page *template.Template, key partKey, list reflect.Value) (template.HTML, error) {
	texts := make([]string, list.Len())
	for i := range texts {
		of, isPart := list.Index(i).Interface().(Part)
		if !isPart {
			return "", fmt.Errorf("%s is made of no parts", list.Type())
		}
		text, err := p.renderPart(page, key, of)
		if err != nil {
			return "", err
		}
		texts[i] = string(text)
	}
	return template.HTML(strings.Join(texts, "")), nil //nolint:gosec // each has been escaped
}

func (p *parts) execute(page *template.Template, key partKey, of Part) (template.HTML, error) {
	var b bytes.Buffer
	err := page.ExecuteTemplate(&b, key.template, partView{key.base, of})
	return template.HTML(b.String()), err //nolint:gosec // the template has escaped it
}

//go:embed static/app.css static/tabler.css static/icons.txt static/icon.svg
//go:embed static/htmx.min.js static/idiomorph.min.js static/live.js static/once.js static/own.js static/theme.js
//go:embed static/inter.woff2
var static embed.FS

// Asset is a file that pages refer to. Its name holds the hash of its content, so that it never changes.
type Asset struct {
	Name        string // "app.0123456789ab.css"
	ContentType string
	Content     []byte
}

// fontType is the content type of the font, which is compressed already.
const fontType = "font/woff2"

// Assets are the files that pages refer to.
type Assets struct{ Style, Font, Icon, Theme, Htmx, Live, Once, Own Asset }

// LoadAssets reads the embedded files.
func LoadAssets() (a Assets, err error) {
	if a.Font, err = asset("inter.woff2", fontType); err != nil {
		return a, err
	}
	if a.Style, err = asset("app.css", "text/css; charset=utf-8", "tabler.css"); err != nil {
		return a, err
	}
	// What is drawn before the font has come is drawn in that of the system.
	a.Style.Content = append(tight(a.Style.Content), `@font-face{font-family:Inter;font-weight:400 700;font-display:swap;`+
		`src:url(`+a.Font.Name+`) format("woff2")}`...)
	a.Style = named(a.Style, "app.css")
	if a.Theme, err = asset("theme.js", "text/javascript; charset=utf-8"); err != nil {
		return a, err
	}
	if a.Htmx, err = asset("htmx.min.js", "text/javascript; charset=utf-8"); err != nil {
		return a, err
	}
	if a.Live, err = asset("live.js", "text/javascript; charset=utf-8", "idiomorph.min.js"); err != nil {
		return a, err
	}
	if a.Once, err = asset("once.js", "text/javascript; charset=utf-8"); err != nil {
		return a, err
	}
	if a.Own, err = asset("own.js", "text/javascript; charset=utf-8"); err != nil {
		return a, err
	}
	a.Icon, err = asset("icon.svg", "image/svg+xml")
	return a, err
}

// asset returns a file, with what others hold before it.
func asset(name, contentType string, before ...string) (Asset, error) {
	var content []byte
	for _, part := range append(before, name) {
		text, err := static.ReadFile("static/" + part)
		if err != nil {
			return Asset{}, err
		}
		content = append(content, text...)
	}
	return named(Asset{ContentType: contentType, Content: content}, name), nil
}

// named gives an asset the name that belongs to its content.
func named(a Asset, name string) Asset {
	sum := sha256.Sum256(a.Content)
	ext := path.Ext(name)
	a.Name = strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext
	return a
}

// All returns them in the order in which a page asks for them.
func (a Assets) All() []Asset {
	return []Asset{a.Style, a.Font, a.Icon, a.Theme, a.Htmx, a.Live, a.Once, a.Own}
}

// tight returns a style sheet without the spaces that only people need.
func tight(css []byte) []byte {
	return []byte(strings.NewReplacer("\n  ", "", "\n", "", " { ", "{", "; }", "}", " }", "}", ": ", ":", "; ", ";", ", ",
		",").Replace(string(css)))
}

// Find returns the asset with exactly this name.
func (a Assets) Find(name string) (Asset, bool) {
	for _, one := range a.All() {
		if one.Name == name {
			return one, true
		}
	}
	return Asset{}, false
}

// icons returns the drawings of the kept icons, by name.
func icons() (map[string]template.HTML, error) {
	kept, err := static.ReadFile("static/icons.txt")
	all := map[string]template.HTML{}
	for line := range strings.Lines(string(kept)) {
		name, drawing, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		all[name] = template.HTML(`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">` + drawing + `</svg>`) //nolint:gosec // a file of ours
	}
	return all, err
}

// iconOf finds an icon for a template; one that is not kept is a fault of the template.
func iconOf(kept map[string]template.HTML) func(name string) (template.HTML, error) {
	return func(name string) (template.HTML, error) {
		drawing, known := kept[name]
		if !known {
			return "", fmt.Errorf("the icon %q is not kept: name it in tools/styles/icons", name)
		}
		return drawing, nil
	}
}
