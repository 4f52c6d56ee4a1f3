package outgoing

import (
	"fmt"
	"slices"
	"strings"
)

// maxWarnings bounds the warnings about one text; maxQuoted bounds what each quotes of it, in bytes.
const (
	maxWarnings = 20
	maxQuoted   = 60
)

// warnings say what was changed in one text.
type warnings struct {
	where    string // "title" or "body"
	texts    []string
	overflow bool // some were left out
}

func (w *warnings) warn(format string, args ...any) {
	switch warning := fmt.Sprintf(format, args...); {
	case slices.Contains(w.texts, warning):
	case len(w.texts) == maxWarnings:
		w.overflow = true
	default:
		w.texts = append(w.texts, warning)
	}
}

func (w *warnings) list() []string {
	if w.overflow {
		return append(w.texts, fmt.Sprintf("there were more changes of this kind to the %s", w.where))
	}
	return w.texts
}

// quote returns a piece of the text for a warning.
func quote(text string) string {
	if len(text) > maxQuoted {
		text = strings.ToValidUTF8(text[:maxQuoted], "") + "..."
	}
	return fmt.Sprintf("%q", text)
}
