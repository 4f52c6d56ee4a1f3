package forge

import (
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"

	"github.com/claudeops/claudeops/internal/base/markdown"
	"github.com/claudeops/claudeops/internal/gitprovider"
)

// maxStartWords bounds the words behind the command, in bytes; more are cut off.
const maxStartWords = 1000

// StartWords returns what stands behind gitprovider.StartCommand in a comment, on the first line that begins with it.
// asked is false unless a paragraph of its own has such a line: quotes, lists, tables, code and HTML do not count.
func StartWords(comment string) (words string, asked bool) {
	if !strings.Contains(comment, gitprovider.StartCommand) {
		return "", false
	}
	source := []byte(strings.ReplaceAll(comment, "\r\n", "\n"))
	document, tooMuch := markdown.New(goldmark.WithExtensions(extension.Table)).Parse(source)
	if tooMuch != "" {
		return "", false
	}
	for block := document.FirstChild(); block != nil; block = block.NextSibling() {
		if block.Kind() != ast.KindParagraph {
			continue
		}
		for inline := block.FirstChild(); inline != nil; inline = inline.NextSibling() {
			if text, isText := inline.(*ast.Text); isText {
				if words, asked := startWordsAt(source, text.Segment.Start); asked {
					return words, true
				}
			}
		}
	}
	return "", false
}

// startWordsAt reads the command at a place in a comment.
func startWordsAt(source []byte, at int) (words string, asked bool) {
	if at > 0 && source[at-1] != '\n' {
		return "", false
	}
	line, _, _ := strings.Cut(string(source[at:]), "\n")
	words, found := strings.CutPrefix(line, gitprovider.StartCommand)
	if !found || words != "" && words[0] != ' ' && words[0] != '\t' {
		return "", false
	}
	words = strings.TrimSpace(words)
	return strings.ToValidUTF8(words[:min(len(words), maxStartWords)], ""), true
}

// asked fills in what may start a session. Who acted is found out by asking.
func (d *Delivery) asked(p payload) error {
	if p.Issue == nil {
		return malformed("it names no issue")
	}
	start := &StartRequest{Number: int(p.Issue.Number)}
	if d.Event == "issue_comment" {
		if p.Comment == nil {
			return malformed("it has no comment")
		}
		if _, asked := StartWords(p.Comment.Body); !asked {
			return nil
		}
		if start.Comment = p.Comment.ID; start.Comment < 1 {
			return malformed("its comment has no number")
		}
	} else if !p.labelled() {
		return nil
	}
	if p.Issue.Number < 1 || p.Issue.Number > maxNumber {
		return malformed("it names no issue")
	}
	if err := d.setRepository(p); err != nil {
		return err
	}
	start.Owner, start.Repo = d.Owner, d.Repo
	d.Start = start
	return nil
}

// labelled reports whether the issue may just have got our label.
func (p payload) labelled() bool {
	if p.Label != nil {
		return strings.EqualFold(p.Label.Name, gitprovider.LabelOurs)
	}
	for _, label := range p.Issue.Labels {
		if strings.EqualFold(label.Name, gitprovider.LabelOurs) {
			return true
		}
	}
	return false
}
