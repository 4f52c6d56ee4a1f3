package views

import (
	"regexp"
	"strings"
	"sync"
	"time"
)

// plainForms are the forms in a message that programs read, and people should not have to.
type plainForms struct{ address, length, variable, bracketed *regexp.Regexp }

//nolint:gochecknoglobals // compiled when the first message needs them
var plain = sync.OnceValue(func() plainForms {
	return plainForms{
		address:   regexp.MustCompile(` ?\(file:///[^)\s]*\)| ?file:///\S+`),
		length:    regexp.MustCompile(`\b(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?s\b|\b\d+h\d+m\b`),
		bracketed: regexp.MustCompile(` \(CLAUDEOPS_[A-Z_]+\)`),
		variable:  regexp.MustCompile(`\b(CLAUDEOPS_[A-Z_]+)\b`),
	}
})

// Variables returns a message without the names of settings in brackets, and those names.
func Variables(message string) (without string, names []string) {
	for _, m := range plain().variable.FindAllStringSubmatch(message, -1) {
		names = append(names, m[1])
	}
	return plain().bracketed.ReplaceAllString(message, ""), names
}

// Plain returns a message of ours as people read it: without addresses of files on the server's machine, and with
// lengths of time such as 71h59m0s in words.
func Plain(message string) string {
	if !strings.Contains(message, "file:///") && !strings.ContainsAny(message, "0123456789") {
		return message
	}
	forms := plain()
	message = forms.address.ReplaceAllString(message, "")
	return forms.length.ReplaceAllStringFunc(message, func(text string) string {
		d, err := time.ParseDuration(text)
		if err != nil {
			return text
		}
		return Length(d)
	})
}
