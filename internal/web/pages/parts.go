package pages

import (
	"bytes"
	"html/template"
	"sync"
	"time"
)

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

// text returns the output of a page's template for a part.
func (p *parts) text(page *template.Template, key partKey, of Part) (template.HTML, error) {
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

func (p *parts) execute(page *template.Template, key partKey, of Part) (template.HTML, error) {
	var b bytes.Buffer
	err := page.ExecuteTemplate(&b, key.template, partView{key.base, of})
	return template.HTML(b.String()), err //nolint:gosec // the template has escaped it
}
