package operation

import (
	"context"
	"strings"
	"time"
)

// Shown describes an act to people: its command, and its page if it has one. Texts of pages are our own words, in which
// [words](/path) is a link to another page and `words` is code.
type Shown struct {
	Short string // in place of the summary, for the command
	Help  string // of the command, after that
	// Example is of the command, as cobra has it; "" for none.
	Example string
	Fresh   bool               // the command makes the records where there are none, rather than refuse
	View    func(out any) View // of a list, or the table of what an act did; nil for none
	JSON    func(out any) any  // a list's answer at the terminal; nil: as REST has it
	// Over reports whether what an act has begun is over. The command waits for that; nil: nothing is waited for.
	Over   func(ctx context.Context, out any) (bool, error)
	Said   func(out any, over bool) string // what the terminal says after an act; "" for nothing
	Failed func(out any) bool              // whether the command ends with the exit code of a provider; nil: never
	Page   Page
}

// Page is a list, or an act on one of its rows that a page of its own asks about first.
type Page struct {
	// Path is the list's; "" for no page. An act's is that of its form: the list's with the id of the row and a word, such
	// as /connections/{id}/cut.
	Path  string
	Title string
	Topic string // that a list follows; see live.Topic
	Link  string // of a list: in the navigation; of an act: in each row that it can be done to
	// Intro stands before a list, Empty in place of an empty one, and Needs where the visitor may not do what the rows are
	// for.
	Intro, Caption, Empty, Needs string
	Button                       string // does an act
}

// View is a list as it is shown.
type View struct {
	Empty   string     // the terminal's text for an empty list
	Table   [][]string // at the terminal: a head of capital letters, and a line for each row
	Columns []Column   // of the page
	Rows    []Row
}

// Column is the head of one.
type Column struct {
	Name         string
	Wide, Number bool
}

// Row is one thing of a list. Its cells are in the order of the columns; the first one names it.
type Row struct {
	ID    string
	Name  string // in words, for who hears its link read
	Cells []Cell
	Tags  []Tag
	Note  []Cell // after the first cell
	Ask   string // what the page of its act says before the button
	Over  []Cell // says on that page that the act was done, in place of the button; nil if it was not
}

// Cell is a part of a row. Name is a word of somebody else, and is set apart from the texts around it.
type Cell struct {
	Text, Name, Link, Sub string
	When                  time.Time
}

// Class returns the class of the cells of a column in the page's style.
func (c Column) Class() string {
	switch {
	case c.Wide:
		return "wide"
	case c.Number:
		return "number"
	}
	return ""
}

// Tag is a short mark. Class is that of its style.
type Tag struct{ Text, Class string }

// WithExamples gives operations the examples of their commands, which examples has by command: one call a line.
func WithExamples(all []Operation, examples map[string]string) []Operation {
	for i, o := range all {
		if lines := examples[o.Command]; lines != "" {
			all[i].Shown.Example = "  " + strings.ReplaceAll(lines, "\n", "\n  ")
		}
	}
	return all
}
