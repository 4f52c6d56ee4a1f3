package prflow

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claudeops/claudeops/internal/base/content"
	"github.com/claudeops/claudeops/internal/gitprovider"
	"github.com/claudeops/claudeops/internal/records/record"
)

// Bounds of what is kept of a refused request: an agent may be refused again and again.
const (
	maxKept      = 2 << 10 // bytes of all its texts together, as JSON has them
	maxKeptBody  = 1 << 10 // of the body
	maxKeptFiles = 8
	maxKeptPath  = 150 // bytes
)

// keptTexts are the texts of a request in which secrets were looked for, and why some of them are withheld all the
// same.
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

// wanted returns the requested change for the record, cut to what may be kept.
func (k keptTexts) wanted(r *request) *record.RefusedChange {
	left, ofBody := maxKept, maxKeptBody
	out := &record.RefusedChange{ChangeType: beginning(r.asked.ChangeType, maxKeptPath),
		Body: k.keep("body", r.asked.Body, &ofBody), Files: []record.RefusedFile{}}
	left -= maxKeptBody - ofBody
	files := r.asked.Files[:min(len(r.asked.Files), maxKeptFiles)]
	out.FilesOmitted = len(r.asked.Files) - len(files)
	for _, f := range files {
		one := record.RefusedFile{Path: beginning(f.Path, maxKeptPath),
			Action: gitprovider.Action(beginning(f.Action, maxKeptPath))}
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

// keep returns a text or its beginning, or why it is withheld. left are the bytes for which there is room.
func (k keptTexts) keep(key, value string, left *int) record.RefusedText {
	switch {
	case value == "":
		return record.RefusedText{}
	case !k.searched[key]:
		return record.RefusedText{Withheld: "it is too large to be searched for secrets"}
	case k.withheld[key] != "":
		return record.RefusedText{Withheld: k.withheld[key]}
	}
	kept := record.RefusedText{Text: beginning(value, *left)}
	for encodedSize(kept.Text) > *left {
		kept.Text = beginning(kept.Text, len(kept.Text)/2)
	}
	*left -= encodedSize(kept.Text)
	if kept.Text != value {
		kept.Rest = fmt.Sprintf("the first %d of %d bytes; SHA-256 of all: %x", len(kept.Text), len(value),
			sha256.Sum256([]byte(value)))
	}
	return kept
}

// beginning returns at most most bytes of a text, no character cut in two.
func beginning(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:max(most, 0)], "")
}

// encodedSize returns the number of bytes of a text in JSON, without the quotes.
func encodedSize(text string) int {
	encoded, err := json.Marshal(text)
	if err != nil {
		return len(text)
	}
	return len(encoded) - len(`""`)
}
