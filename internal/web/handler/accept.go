package handler

import (
	"net/http"
	"strconv"
	"strings"
)

// PrefersHTML reports whether the client would rather have a page than JSON: it names text/html and values it no less
// than any form of JSON. Programs that accept anything get JSON.
func PrefersHTML(r *http.Request) bool {
	page, data := -1.0, -1.0
	for _, part := range strings.Split(strings.Join(r.Header.Values("Accept"), ","), ",") {
		kind, parameters, _ := strings.Cut(part, ";")
		q := quality(parameters)
		switch kind = strings.ToLower(strings.TrimSpace(kind)); {
		case kind == "text/html":
			page = max(page, q)
		case strings.HasSuffix(kind, "json"):
			data = max(data, q)
		}
	}
	return page > 0 && page >= data
}

// quality returns the weight among the parameters of an entry of Accept (RFC 9110, 12.4.2).
func quality(parameters string) float64 {
	for _, p := range strings.Split(parameters, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if !strings.EqualFold(name, "q") {
			continue
		}
		if q, err := strconv.ParseFloat(value, 64); err == nil && q >= 0 && q <= 1 {
			return q
		}
		return 0
	}
	return 1
}
