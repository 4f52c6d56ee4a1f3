package record

import "github.com/claudeops/claudeops/internal/gitprovider"

// RefusedChange is the change of an attempt that did not become a proposal: an aid for people, and not part of the
// audit. It holds only texts that were searched for secrets without a finding; of the others it says why they are
// withheld. Of a longer text it holds the beginning: refused changes must not fill the records.
type RefusedChange struct {
	ChangeType string        `json:"change_type,omitempty"`
	Body       RefusedText   `json:"body"`
	Files      []RefusedFile `json:"files"`
	// FilesOmitted counts the further files that are not listed.
	FilesOmitted int `json:"files_omitted,omitempty" doc:"How many further files there were"`
}

// RefusedText is a text, or its beginning, or why it is withheld.
type RefusedText struct {
	Text     string `json:"text,omitempty"`
	Rest     string `json:"rest,omitempty" doc:"Of a text that is not kept whole: its size, and the SHA-256 of the whole"`
	Withheld string `json:"withheld,omitempty" doc:"Why the text is not kept, with rule and line"`
}

// RefusedFile is one file of a change.
type RefusedFile struct {
	Path   string             `json:"path"`
	Action gitprovider.Action `json:"action"`
	RefusedText
	Edits bool `json:"edits,omitempty" doc:"The text is what edits would have put in, and not the whole file"`
}
