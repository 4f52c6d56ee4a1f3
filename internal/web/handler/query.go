package handler

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/claudeops/claudeops/internal/fault"
)

// DecodeQuery reads the query of a request into dst, a pointer to a struct whose fields of kind string, int and time.Time
// carry a tag `query:"name"`, and `enum:"a,b"` where only those are known. It refuses unknown, repeated and malformed
// parameters, all at once. Empty values count as absent.
func DecodeQuery(r *Request, dst any) error {
	query, err := url.ParseQuery(r.URL.RawQuery)
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
			violations = append(violations, BadParameter(name, "is given %d times", len(values)))
		case len(values) == 1 && values[0] != "":
			if problem := setParameter(target.Field(i), values[0], field.Tag.Get("enum")); problem != "" {
				violations = append(violations, BadParameter(name, "%s", problem))
			}
		}
	}
	for name := range query {
		if !known[name] {
			violations = append(violations, BadParameter(Quote(name), "is not known here"))
		}
	}
	slices.SortFunc(violations, func(a, b fault.Violation) int { return strings.Compare(a.Path, b.Path) })
	return Invalid(violations)
}

// BadParameter is the violation of a parameter of the query.
func BadParameter(name, format string, args ...any) fault.Violation {
	message := "the parameter `" + name + "` " + fmt.Sprintf(format, args...)
	return fault.Violation{Code: fault.InvalidArgument, Path: name, Message: message}
}

// Quote is text of a request as an error repeats it: harmless and short.
func Quote(s string) string {
	const most = 40
	q := strconv.QuoteToASCII(s[:min(len(s), most)])
	return q[1 : len(q)-1]
}

// setParameter stores a value, or says what is wrong with it.
func setParameter(field reflect.Value, value, enum string) (problem string) {
	switch field.Interface().(type) {
	case string:
		if enum != "" && !slices.Contains(strings.Split(enum, ","), value) {
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
		panic(fmt.Sprintf("handler: no parameter can be of type %s", field.Type()))
	}
	return ""
}
