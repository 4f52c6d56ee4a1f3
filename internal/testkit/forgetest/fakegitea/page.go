package fakegitea

import (
	"math"
	"net/url"
	"strconv"
	"strings"
)

// The server's page sizes. A larger limit is silently reduced.
const (
	defaultLimit   = 30
	maxLimit       = 50
	maxTreeEntries = 1000
)

// page is the part of a list that was asked for.
type page struct{ number, limit int }

func number(query url.Values, name string) int {
	n, err := strconv.Atoi(query.Get(name))
	if err != nil {
		return 0
	}
	return n
}

func pageOf(query url.Values) page {
	p := page{number: max(number(query, "page"), 1), limit: number(query, "limit")}
	if p.limit <= 0 {
		p.limit = defaultLimit
	}
	p.limit = min(p.limit, maxLimit)
	return p
}

// lazyPageOf is pageOf for lists that are not paged at all unless a page is requested, whatever the limit.
func lazyPageOf(query url.Values) page {
	if number(query, "page") <= 0 {
		return page{number: 1, limit: math.MaxInt32}
	}
	return pageOf(query)
}

// cut gives one page of a list, empty past its end.
func cut[T any](list []T, p page) []T {
	from := min((p.number-1)*p.limit, len(list))
	to := min(from+p.limit, len(list))
	out := make([]T, 0, to-from)
	return append(out, list[from:to]...)
}

// link returns the Link header of a page, "" when one page holds everything. Past the end it reads as on the last page.
func (c *call) link(p page, total int) string {
	last := (total + p.limit - 1) / p.limit
	if last <= 1 {
		return ""
	}
	current := min(p.number, last)
	var parts []string
	add := func(to int, rel string) {
		query := url.Values{}
		for name, values := range c.query {
			query[name] = values
		}
		query.Set("page", strconv.Itoa(to))
		parts = append(parts, "<"+c.s.origin+c.escapedPath+"?"+query.Encode()+`>; rel="`+rel+`"`)
	}
	if current < last {
		add(current+1, "next")
		add(last, "last")
	}
	if current > 1 {
		add(1, "first")
		add(current-1, "prev")
	}
	return strings.Join(parts, ",")
}
