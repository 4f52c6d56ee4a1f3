package webhook

// Source is a kind of forge that sends webhooks.
type Source struct {
	Name, Title string      // of its provider, and for people
	Signatures  []Signature // every one that is there has to be right
	Headers     []string    // what the names of its other headers begin with: X-GitHub- for X-GitHub-Event; the first that is there counts
	Events      []string    // after which the records may have to change
}

// Signature is a header that holds the HMAC-SHA256 of a body, as the prefix and lower-case hex.
type Signature struct{ Header, Prefix string }
