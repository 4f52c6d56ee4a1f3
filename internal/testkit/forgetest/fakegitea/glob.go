package fakegitea

import (
	"regexp"
	"strings"
)

// matches applies a branch pattern: * stays within a segment, ** does not, ? is one character of a segment.
func matches(pattern, branch string) bool {
	var expr strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch {
		case strings.HasPrefix(pattern[i:], "**"):
			expr.WriteString(".*")
			i++
		case pattern[i] == '*':
			expr.WriteString("[^/]*")
		case pattern[i] == '?':
			expr.WriteString("[^/]")
		default:
			expr.WriteString(regexp.QuoteMeta(pattern[i : i+1]))
		}
	}
	fits, err := regexp.MatchString("^"+expr.String()+"$", branch)
	return err == nil && fits
}
