package outgoing

import (
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"

	"github.com/claudeops/claudeops/internal/base/markdown"
)

// grammars returns the parsers of the forges' dialects: GitHub's (GitHub Flavored Markdown with footnotes) and Gitea's
// and Forgejo's, which also know lists of definitions and attributes of headings. Where they disagree, a body has to be
// harmless in both.
func grammars() []markdown.Grammar {
	return []markdown.Grammar{
		markdown.New(goldmark.WithExtensions(extension.GFM, extension.Footnote)),
		markdown.New(goldmark.WithExtensions(extension.GFM, extension.Footnote, extension.DefinitionList),
			goldmark.WithParserOptions(parser.WithAttribute(), parser.WithAutoHeadingID())),
	}
}
