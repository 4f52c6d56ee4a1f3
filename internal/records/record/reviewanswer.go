package record

// ReviewAnswer is a proposal's answer to the review of the pull request that it adds to.
type ReviewAnswer struct {
	Text string `json:"text"` // as it is posted, below its opening
	// Comment is the id of the comment on a line that it answers; "" if it answers the review as a whole. The others say
	// where that comment stands.
	Comment string `json:"comment,omitempty"`
	Thread  string `json:"thread,omitempty"` // see gitprovider.LineComment
	Path    string `json:"path,omitempty"`
	Line    int    `json:"line,omitempty"`
	Before  bool   `json:"before,omitempty"`
	Commit  string `json:"commit,omitempty"`
	Quote   string `json:"quote,omitempty"` // its first words, fit to be posted
}
