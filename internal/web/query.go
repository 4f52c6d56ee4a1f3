package web

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
)

// decodeQuery reads the query of a request into dst, a pointer to a struct whose fields of kind string, int and time.Time
// carry a tag `query:"name"`, and `enum:"a,b"` where only those are known. It refuses unknown, repeated and malformed
// parameters, all at once. Empty values count as absent.
func decodeQuery(c *call, dst any) error {
	query, err := url.ParseQuery(c.URL.RawQuery)
	if err != nil {
		return fault.Wrap(err, fault.InvalidArgument, "the query is malformed")
	}
	target := reflect.ValueOf(dst).Elem()
	var violations []fault.Violation
	known := map[string]bool{}
	for i := range target.NumField() {
		field := target.Type().Field(i)
		name := field.Tag.Get("query")
		known[name] = true
		switch values := query[name]; {
		case len(values) > 1:
			violations = append(violations, badParameter(name, "is given %d times", len(values)))
		case len(values) == 1 && values[0] != "":
			if problem := setParameter(target.Field(i), values[0], field.Tag.Get("enum")); problem != "" {
				violations = append(violations, badParameter(name, "%s", problem))
			}
		}
	}
	for name := range query {
		if !known[name] {
			violations = append(violations, badParameter(shown(name), "is not known here"))
		}
	}
	if len(violations) == 0 {
		return nil
	}
	slices.SortFunc(violations, func(a, b fault.Violation) int { return cmpText(a.Path, b.Path) })
	return &fault.Error{Code: fault.InvalidArgument, Message: violations[0].Message, Violations: violations}
}

func cmpText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func badParameter(name, format string, args ...any) fault.Violation {
	message := "the parameter `" + name + "` " + fmt.Sprintf(format, args...)
	return fault.Violation{Code: fault.InvalidArgument, Path: name, Message: message}
}

// shown is text of a request as an error repeats it: harmless and short.
func shown(s string) string {
	const most = 40
	q := strconv.QuoteToASCII(s[:min(len(s), most)])
	return q[1 : len(q)-1]
}

// setParameter stores a value, or says what is wrong with it.
func setParameter(field reflect.Value, value, enum string) (problem string) {
	switch field.Interface().(type) {
	case string:
		if enum != "" && !slices.Contains(splitComma(enum), value) {
			return "is not one of " + enum
		}
		field.SetString(value)
	case int:
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return "is no whole number of at least 1"
		}
		field.SetInt(int64(n))
	case time.Time:
		t, err := time.Parse(time.RFC3339, value)
		if err != nil {
			return "is no time as in 2006-01-02T15:04:05Z"
		}
		field.Set(reflect.ValueOf(t))
	default:
		panic(fmt.Sprintf("web: no parameter can be of type %s", field.Type()))
	}
	return ""
}
