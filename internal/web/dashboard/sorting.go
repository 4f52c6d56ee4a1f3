package dashboard

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
)

// column is a column of a short list.
type column[T any] struct {
	name, class string
	key         string // names the column in the address; "" for one that the list is not sorted by
	compare     func(a, b T) int
	largest     bool // the first click shows the largest value first: of times, the newest
	hidden      bool // the head is there to be read aloud only
}

// columnHead is the head of a column in the form that its template takes.
type columnHead struct {
	Name, Class string
	Hidden      bool
	Sort        string // "ascending" or "descending" if the rows are in the order of this column; "" if they are not
	Turn        string // the query that sorts by the column, or turns its order round; "" for none
	Then        string // what that does, in words
}

// sortable is the head of a short list, and its order.
type sortable struct {
	Heads []columnHead
	Sort  string // as the address names it: the key of a column, after a minus for the largest first; "" for the usual
}

// ordering reads the order that a query asks for. usual is the order without a query. The comparison is nil only if
// there are no columns to sort by; a key that no column has is an invalid_argument.
func ordering[T any](query url.Values, usual string, columns []column[T]) (sortable, func(a, b T) int, error) {
	asked := query.Get("sort")
	in := cmp.Or(asked, usual)
	key, down := strings.CutPrefix(in, "-")
	var compare func(a, b T) int
	var keys []string
	out := sortable{Sort: asked}
	for _, c := range columns {
		head := columnHead{Name: c.name, Class: c.class, Hidden: c.hidden}
		if c.key != "" {
			keys = append(keys, c.key)
			next := turned(c.key, c.largest)
			if c.key == key {
				compare, head.Sort = directed(c.compare, down), sortWord(down)
				next = turned(c.key, !down)
			}
			head.Then = sortWord(strings.HasPrefix(next, "-"))
			if next == usual {
				next = ""
			}
			head.Turn = beside(query, "sort", next, "offset")
		}
		out.Heads = append(out.Heads, head)
	}
	if compare == nil && asked != "" {
		return out, nil, fault.New(fault.InvalidArgument, "sort is none of the columns %s; a minus before one shows its "+
			"largest value first", strings.Join(keys, ", "))
	}
	return out, compare, nil
}

// sortRows sorts the rows of a list that is on one page. Rows that are equal keep their order.
func sortRows[T any](query url.Values, usual string, columns []column[T], rows []T) (sortable, error) {
	out, compare, err := ordering(query, usual, columns)
	if compare != nil {
		slices.SortStableFunc(rows, compare)
	}
	return out, err
}

func turned(key string, down bool) string {
	if down {
		return "-" + key
	}
	return key
}

func directed[T any](compare func(a, b T) int, down bool) func(a, b T) int {
	if down {
		return func(a, b T) int { return compare(b, a) }
	}
	return compare
}

func sortWord(down bool) string {
	if down {
		return "descending"
	}
	return "ascending"
}

// compareNames compares as people sort names, letter case aside.
func compareNames(a, b string) int {
	return cmp.Or(cmp.Compare(strings.ToLower(a), strings.ToLower(b)), cmp.Compare(a, b))
}

// compareTimes compares times that may be absent. None is before each.
func compareTimes(a, b *time.Time) int {
	var at [2]time.Time
	for i, t := range []*time.Time{a, b} {
		if t != nil {
			at[i] = *t
		}
	}
	return at[0].Compare(at[1])
}

// viewColumns are the columns of an operation's list. Each of them can be sorted by: times by time, numbers by value,
// all else by name.
func viewColumns(v operation.View) (out []column[operation.Row]) {
	for i, c := range v.Columns {
		newest := slices.ContainsFunc(v.Rows, func(r operation.Row) bool { return !r.Cells[i].When.IsZero() })
		out = append(out, column[operation.Row]{name: c.Name, class: c.Class(), largest: newest || c.Number,
			key:     strings.ReplaceAll(strings.ToLower(c.Name), " ", "-"),
			compare: func(a, b operation.Row) int { return compareCells(a.Cells[i], b.Cells[i]) }})
	}
	return out
}

func compareCells(a, b operation.Cell) int {
	if at := a.When.Compare(b.When); at != 0 {
		return at
	}
	first, errFirst := strconv.ParseFloat(a.Text, 64)
	second, errSecond := strconv.ParseFloat(b.Text, 64)
	if errFirst == nil && errSecond == nil && a.Name+b.Name == "" {
		return cmp.Compare(first, second)
	}
	return compareNames(a.Text+a.Name, b.Text+b.Name)
}
