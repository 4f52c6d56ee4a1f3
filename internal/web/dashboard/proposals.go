package dashboard

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/operation"
	"github.com/claudeops/claudeops/internal/records/record"
	"github.com/claudeops/claudeops/internal/web/handler"
	"github.com/claudeops/claudeops/internal/web/records"
)

// pageSize is the number of rows of a listing.
const pageSize = 50

// proposalPages show attempts at proposals, and let people open what a dry run has shown.
type proposalPages struct {
	*renderer
	settings handler.Settings
	promotes operation.Operation
	attempts records.Attempts
	summary  records.Summary
	pulls    records.Pulls
	reader   Reader
}

// dayOf reads a day, 00:00 UTC; the zero time for "".
func dayOf(name, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return t, handler.Invalid([]fault.Violation{handler.BadParameter(name, "is no day as in 2006-01-02")})
	}
	return t, nil
}

// options returns the values of a filter, and "any" before them.
func options[T ~string](chosen string, values []T) []option {
	out := []option{{Text: "any"}}
	for _, v := range values {
		out = append(out, option{string(v), strings.ReplaceAll(string(v), "_", " "), string(v) == chosen})
	}
	return out
}

// pager has the queries of the pages beside one of a listing; "" for none.
type pager struct {
	Newer, Older, First string
	Plain               bool // the list is not by time
}

// beside returns a query with one parameter set, or without it for "". Parameters that are empty or to be dropped go.
func beside(query url.Values, name, value string, drop ...string) string {
	q := url.Values{}
	for k, v := range query {
		if v[0] != "" && k != name && !slices.Contains(drop, k) {
			q[k] = v
		}
	}
	if value != "" {
		q.Set(name, value)
	}
	return "?" + q.Encode()
}

// neighbours cuts off the row beyond the page, newest first, and returns links to newer and older rows. after and
// before are the page's parameters, 0 if absent.
func neighbours(query url.Values, before, after int, rows []record.RecordedAttempt) (kept []record.RecordedAttempt,
	p pager) {
	more := len(rows) > pageSize
	kept = rows
	if more && after != 0 { // read upwards: the one too many is the newest
		kept = rows[len(rows)-pageSize:]
	} else if more {
		kept = rows[:pageSize]
	}
	at := func(name string, row int64) string {
		return beside(query, name, strconv.FormatInt(row, 10), "before", "after")
	}
	if before != 0 || after != 0 {
		p.First = beside(query, "before", "", "after")
	}
	if len(kept) == 0 {
		return kept, p
	}
	if before != 0 || after != 0 && more {
		p.Newer = at("after", kept[0].Seq)
	}
	if after != 0 || more {
		p.Older = at("before", kept[len(kept)-1].Seq)
	}
	return kept, p
}

// stretch is the part of a longer list that a page shows.
type stretch struct {
	From, To int
	pager
}

// stretchOf returns the part of a list from offset on. size is the number of entries of a page.
func stretchOf(query url.Values, offset, size, shown, total int) stretch {
	out := stretch{offset + 1, offset + shown, pager{Plain: true}}
	if offset > 0 {
		before := ""
		if offset > size {
			before = strconv.Itoa(offset - size)
		}
		out.Newer = beside(query, "offset", before)
	}
	if out.To < total {
		out.Older = beside(query, "offset", strconv.Itoa(offset+size))
	}
	return out
}
