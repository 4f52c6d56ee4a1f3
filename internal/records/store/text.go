package store

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// escape turns any bytes into valid UTF-8 without NUL, which every database stores as it is: backslashes are doubled,
// NUL and bytes that are not part of valid UTF-8 become \xHH. Different strings stay different; unescape takes it
// back.
func escape(s string) string {
	if utf8.ValidString(s) && !strings.ContainsAny(s, "\\\x00") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == 0 || r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

// unescape takes escape back. Text that escape cannot have written is returned as it is.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] != '\\':
			b.WriteByte(s[i])
		case strings.HasPrefix(s[i:], `\\`):
			b.WriteByte('\\')
			i++
		default:
			c, err := strconv.ParseUint(strings.TrimPrefix(s[i:min(len(s), i+4)], `\x`), 16, 8)
			if err != nil {
				return s
			}
			b.WriteByte(byte(c))
			i += 3
		}
	}
	return b.String()
}

// bound returns s if it has at most limit bytes. Otherwise it returns the first limit bytes, or up to three fewer so as
// not to split a character, and a mark with the length and the hash of the whole. The result is longer than limit, so
// nothing that was not cut can look like it, and different strings stay different.
func bound(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit
	for cut > limit-utf8.UTFMax+1 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s…[cut: %d bytes, sha256 %x]", s[:cut], len(s), sha256.Sum256([]byte(s)))
}

// boundList returns the list if it has at most limit entries. Otherwise it returns the first limit entries, and one
// more that mark makes of the number and the hash of the others.
func boundList[T any](list []T, limit int, parts func(T) []string, mark func(string) T) []T {
	if len(list) <= limit {
		return list
	}
	rest := list[limit:]
	h := sha256.New()
	for _, item := range rest {
		for _, part := range parts(item) {
			fmt.Fprintf(h, "%d:%s", len(part), part)
		}
	}
	note := fmt.Sprintf("…[cut: %d more, sha256 %x]", len(rest), h.Sum(nil))
	return append(append(make([]T, 0, limit+1), list[:limit]...), mark(note))
}
