package pages

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"path"
	"strings"
)

//go:embed static/app.css static/tabler.css static/icons.txt static/icon.svg
//go:embed static/htmx.min.js static/idiomorph.min.js static/live.js static/once.js static/own.js
var static embed.FS

// Asset is a file that pages refer to. Its name holds the hash of its content, so that it never changes.
type Asset struct {
	Name        string // "app.0123456789ab.css"
	ContentType string
	Content     []byte
}

// Assets are the files that pages refer to.
type Assets struct{ Style, Icon, Htmx, Live, Once, Own Asset }

// LoadAssets reads the embedded files.
func LoadAssets() (a Assets, err error) {
	if a.Style, err = asset("app.css", "text/css; charset=utf-8", "tabler.css"); err != nil {
		return a, err
	}
	a.Style.Content = tight(a.Style.Content)
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
	sum := sha256.Sum256(content)
	ext := path.Ext(name)
	return Asset{
		Name:        strings.TrimSuffix(name, ext) + "." + hex.EncodeToString(sum[:6]) + ext,
		ContentType: contentType, Content: content,
	}, nil
}

// tight returns a style sheet without the spaces that only people need.
func tight(css []byte) []byte {
	return []byte(strings.NewReplacer("\n  ", "", "\n", "", " { ", "{", "; }", "}", " }", "}", ": ", ":", "; ", ";", ", ",
		",").Replace(string(css)))
}

// Find returns the asset with exactly this name.
func (a Assets) Find(name string) (Asset, bool) {
	for _, one := range []Asset{a.Style, a.Icon, a.Htmx, a.Live, a.Once, a.Own} {
		if one.Name == name {
			return one, true
		}
	}
	return Asset{}, false
}
