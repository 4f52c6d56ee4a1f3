package gql

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// MaxPage limits the records of one page of a connection.
const MaxPage = 100

// Items are the records of a connection, in order. Key tells one record from another: cursors name it, so that a page
// follows another one even when records in between have gone.
type Items struct {
	Len  int
	Key  func(i int) string
	Node func(i int) *Object
}

// Connection gives one page of records: an object of the type typ+"Connection". field is the name of the connection,
// for errors.
func Connection(typ, field string, items Items, args Args) (*Object, error) {
	from, to, err := page(field, items, args)
	if err != nil {
		return nil, err
	}
	var end any
	if from < to {
		end = cursor(items, to-1)
	}
	return &Object{typ + "Connection", map[string]any{
		"totalCount": items.Len,
		"pageInfo":   &Object{"PageInfo", map[string]any{"hasNextPage": to < items.Len, "endCursor": end}},
		"nodes": Func(func(Args) (any, error) {
			out := []any{}
			for i := from; i < to; i++ {
				out = append(out, items.Node(i))
			}
			return out, nil
		}),
	}}, nil
}

// page finds the records from (included) to (excluded) that the arguments ask for.
func page(field string, items Items, args Args) (from, to int, err error) {
	from, to = 0, items.Len
	if !args.Has("first") && !args.Has("last") {
		return 0, 0, &Error{Type: "MISSING_PAGINATION_BOUNDARIES", Message: fmt.Sprintf(
			"You must provide a `first` or `last` value to properly paginate the `%s` connection.", field)}
	}
	for _, name := range []string{"first", "last"} {
		switch n := args.Int(name); {
		case n > MaxPage:
			return 0, 0, &Error{Type: "EXCESSIVE_PAGINATION", Message: fmt.Sprintf(
				"Requesting %d records on the `%s` connection exceeds the `%s` limit of %d records.", n, field, name, MaxPage)}
		case n < 0:
			return 0, 0, &Error{Type: "INVALID_PAGINATION_BOUNDARIES", Message: fmt.Sprintf(
				"`%s` on the `%s` connection cannot be less than zero.", name, field)}
		}
	}
	if args.Has("after") {
		at, there, err := locate(items, args.String("after"))
		if err != nil {
			return 0, 0, err
		}
		if there {
			at++
		}
		from = min(at, items.Len)
	}
	if args.Has("before") {
		at, _, err := locate(items, args.String("before"))
		if err != nil {
			return 0, 0, err
		}
		to = max(from, min(at, items.Len))
	}
	if args.Has("first") {
		to = min(to, from+args.Int("first"))
	}
	if args.Has("last") {
		from = max(from, to-args.Int("last"))
	}
	return from, to, nil
}

func cursor(items Items, i int) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "cursor:v2:%d:%s", i, items.Key(i)))
}

// locate finds the record of a cursor, or, if it has gone, the place where it was.
func locate(items Items, cursor string) (at int, there bool, err error) {
	invalid := &Error{Type: "INVALID_CURSOR_ARGUMENTS",
		Message: fmt.Sprintf("`%s` does not appear to be a valid cursor.", cursor)}
	raw, decodeErr := base64.StdEncoding.DecodeString(cursor)
	rest, marked := strings.CutPrefix(string(raw), "cursor:v2:")
	index, key, split := strings.Cut(rest, ":")
	at, numberErr := strconv.Atoi(index)
	if decodeErr != nil || numberErr != nil || !marked || !split {
		return 0, false, invalid
	}
	for i := range items.Len {
		if items.Key(i) == key {
			return i, true, nil
		}
	}
	return at, false, nil
}
