package operation

import "context"

// Resources provides the resources that MCP clients read by address.
type Resources struct {
	Templates []Resource // URI is a template of RFC 6570
	// List names some of what may be read. It asks no provider, and is bounded; nil: nothing is named.
	List func(ctx context.Context) []Resource
	// Read reads one. call.Arguments is nothing. An error is a *fault.Error, perhaps with a request id.
	Read func(ctx context.Context, call Call, uri string) (Content, error)
}

// Resource is something that can be read.
type Resource struct {
	URI         string
	Name        string // unique
	Description string
	Type        string // MIME type
}

// Content is the content of a resource.
type Content struct {
	Text string
	Type string
	// About holds facts that a reader needs to know about the text. Clients may show a model nothing but texts, so Note
	// repeats them.
	About map[string]any
	Note  string
}
