package prflow

import (
	"fmt"

	"github.com/claudeops/claudeops/internal/content"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/record"
)

// maxKept bounds what is kept of a refused request, in bytes of all its texts together.
const maxKept = 128 << 10

// keptTexts are the texts of a request in which secrets were looked for, and why some of them are withheld all the same.
type keptTexts struct {
	searched map[string]bool   // by their keys
	withheld map[string]string // likewise
}

// keyOf names a text of a request. Files of one path share a key, so that what holds of one holds of both.
func keyOf(t text) string {
	if t.what == "body" || t.what == "title" {
		return t.what
	}
	return "file " + t.label
}

func newKeptTexts(searched []text) keptTexts {
	kept := keptTexts{map[string]bool{}, map[string]string{}}
	for _, t := range searched {
		if !t.isPath {
			kept.searched[keyOf(t)] = true
		}
	}
	return kept
}

// withhold says that a secret was found in a text.
func (k keptTexts) withhold(t text, secret content.Secret) {
	if k.withheld[keyOf(t)] == "" {
		k.withheld[keyOf(t)] = fmt.Sprintf("rule secret:%s, line %d", secret.Rule, secret.Line)
	}
}

// wanted is what was asked for, as far as it may be kept.
func (k keptTexts) wanted(r *request) *record.RefusedChange {
	left := maxKept
	out := &record.RefusedChange{ChangeType: r.asked.ChangeType, Body: k.keep("body", r.asked.Body, &left), Files: []record.RefusedFile{}}
	for _, f := range r.asked.Files {
		one := record.RefusedFile{Path: f.Path, Action: gitprovider.Action(f.Action)}
		switch {
		case f.Content != nil:
			one.RefusedText = k.keep("file "+f.Path, *f.Content, &left)
		case len(f.Edits) > 0:
			one.RefusedText, one.Edits = k.keep("file "+f.Path, newTexts(f.Edits), &left), true
		}
		out.Files = append(out.Files, one)
	}
	return out
}

// keep is a text, or why it is withheld. left are the bytes for which there is room.
func (k keptTexts) keep(key, value string, left *int) record.RefusedText {
	switch {
	case value == "":
		return record.RefusedText{}
	case !k.searched[key]:
		return record.RefusedText{Withheld: "it is too large to be searched for secrets"}
	case k.withheld[key] != "":
		return record.RefusedText{Withheld: k.withheld[key]}
	case len(value) > *left:
		return record.RefusedText{Withheld: fmt.Sprintf("it is too large to be kept: %d bytes", len(value))}
	}
	*left -= len(value)
	return record.RefusedText{Text: value}
}
