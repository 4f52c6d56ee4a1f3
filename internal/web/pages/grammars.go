package pages

import "github.com/alecthomas/chroma/v2"

// The grammars are of single lines, and small on purpose. Their input is untrusted, so each pattern matches in time
// linear in what it consumes: a form that may stay open, such as a quotation, also matches up to the end of the line,
// and the rule for other text consumes whole words. Chroma's own grammars give no such guarantee, and its package of
// them reads hundreds at each start of the program.

const quoted = `"(?:\\.|[^"\\])*"?|'[^']*'?`

func markdownRules() chroma.Rules {
	return chroma.Rules{
		"root": {
			{Pattern: ` {0,3}#{1,6}(?:\s.*)?$`, Type: chroma.GenericHeading},
			{Pattern: `\s*(?:` + "```" + `|~~~).*`, Type: chroma.Comment},
			{Pattern: `\s*(?:[-*+>]|\d{1,9}[.)])(?=\s|$)`, Type: chroma.Keyword, Mutator: chroma.Push("text")},
			chroma.Default(chroma.Push("text")),
		},
		"text": {
			{Pattern: "`[^`]+`", Type: chroma.LiteralString},
			{Pattern: `\*\*[^*]+\*\*`, Type: chroma.GenericStrong},
			{Pattern: `\[[^\[\]]*\]\([^()\s]*\)`, Type: chroma.NameTag},
			{Pattern: `[^` + "`" + `*\[]+|.`, Type: chroma.Text},
		},
	}
}

func yamlRules() chroma.Rules {
	return chroma.Rules{
		"root": {
			{Pattern: `\s*#.*`, Type: chroma.Comment},
			{Pattern: `\s*---\s*$`, Type: chroma.Keyword},
			{
				Pattern: `(\s*)((?:-\s+)*)([^\s#'"&*!|>{}\[\],:-][^:#]*)(:)(?=\s|$)`, Mutator: chroma.Push("value"),
				Type: chroma.ByGroups(chroma.Text, chroma.Keyword, chroma.NameTag, chroma.Text),
			},
			{Pattern: `\s*-(?=\s)`, Type: chroma.Keyword, Mutator: chroma.Push("value")},
			chroma.Default(chroma.Push("value")),
		},
		"value": {
			{Pattern: `\s+#.*`, Type: chroma.Comment},
			{Pattern: `\s+`, Type: chroma.Text},
			{Pattern: quoted, Type: chroma.LiteralString},
			{Pattern: `(?:true|false|null|~)(?=[\s,\]}]|$)`, Type: chroma.Keyword},
			{Pattern: `-?\d+(?:\.\d+)?(?=[\s,\]}]|$)`, Type: chroma.LiteralNumber},
			{Pattern: `[^\s"',\[\]{}]+|[,\[\]{}]+|.`, Type: chroma.Text},
		},
	}
}

func jsonRules() chroma.Rules {
	return chroma.Rules{
		"root": {
			{Pattern: `"(?:\\.|[^"\\])*"(?=\s*:)`, Type: chroma.NameTag},
			{Pattern: `"(?:\\.|[^"\\])*"?`, Type: chroma.LiteralString},
			{Pattern: `(?:true|false|null)(?!\w)`, Type: chroma.Keyword},
			{Pattern: `-?\d[\d.eE+-]*`, Type: chroma.LiteralNumber},
			{Pattern: `\w+|[^\w"-]+|.`, Type: chroma.Text},
		},
	}
}

func shellRules() chroma.Rules {
	const words = `if|then|elif|else|fi|for|while|until|do|done|case|esac|in|function|return|exit|local|export|set`
	return chroma.Rules{
		"root": {
			{Pattern: `\s*#.*`, Type: chroma.Comment},
			chroma.Default(chroma.Push("words")),
		},
		"words": {
			{Pattern: `\s+#.*`, Type: chroma.Comment},
			{Pattern: `\s+`, Type: chroma.Text},
			{Pattern: quoted, Type: chroma.LiteralString},
			{Pattern: `\$(?:\w+|\{[^}]*\}?|.)`, Type: chroma.NameTag},
			{Pattern: `(?:` + words + `)(?![\w./=-])`, Type: chroma.Keyword},
			{Pattern: `[\w./=-]+|[^\w\s"'$#./=-]+|.`, Type: chroma.Text},
		},
	}
}
