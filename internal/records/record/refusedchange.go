package record

import "github.com/claudeops/claudeops/internal/gitprovider"

// RefusedChange is what an attempt wanted that became no proposal: an aid for people, and no part of the audit. It
// holds only texts in which secrets were looked for and none was found; of the others it says why they are withheld. Of
// a longer text it holds the beginning: what was refused must not fill the records.
type RefusedChange struct {
	ChangeType string        `json:"change_type,omitempty"`
	Body       RefusedText   `json:"body"`
	Files      []RefusedFile `json:"files"`
	// FilesOmitted is how many further files there were.
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
