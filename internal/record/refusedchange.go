package record

import "github.com/claudeops/claudeops/internal/gitprovider"

// RefusedChange is what an attempt wanted that became no proposal: an aid for people, and no part of the audit. It holds only texts in which
// secrets were looked for and none was found; of the others it says why they are withheld.
type RefusedChange struct {
	ChangeType string        `json:"change_type,omitempty"`
	Body       RefusedText   `json:"body"`
	Files      []RefusedFile `json:"files"`
}

// RefusedText is a text, or why it is withheld.
type RefusedText struct {
	Text     string `json:"text,omitempty"`
	Withheld string `json:"withheld,omitempty" doc:"Why the text is not kept, with rule and line"`
}

// RefusedFile is one file of a change.
type RefusedFile struct {
	Path   string             `json:"path"`
	Action gitprovider.Action `json:"action"`
	RefusedText
	Edits bool `json:"edits,omitempty" doc:"The text is what edits would have put in, and not the whole file"`
}
