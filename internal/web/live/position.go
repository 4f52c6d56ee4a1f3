package live

import (
	"slices"
	"strconv"
	"strings"
)

// topicVersion is the version of a topic.
type topicVersion struct {
	topic   string
	version int64
}

// position is a version for each topic; nil if it is not known.
type position []topicVersion

// String returns the position as the id of an event carries it.
func (p position) String() string {
	var words []string
	for _, m := range p {
		words = append(words, m.topic+":"+strconv.FormatInt(m.version, 10))
	}
	return strings.Join(words, ",")
}

// maxPosition bounds the text of a position, in bytes.
const maxPosition = 1000

// parsePosition reads the text that String writes. Any other text becomes a position without known topics, so that its
// client is notified of all of them; "" becomes nil.
func parsePosition(text string) position {
	if text == "" {
		return nil
	}
	p := position{}
	if len(text) > maxPosition {
		return p
	}
	for word := range strings.SplitSeq(text, ",") {
		name, number, _ := strings.Cut(word, ":")
		if version, err := strconv.ParseInt(number, 10, 64); err == nil {
			p = append(p, topicVersion{name, version})
		}
	}
	return p
}

// since lists the versions that are not in the earlier position.
func (p position) since(earlier position) (changed position) {
	for _, m := range p {
		if !slices.Contains(earlier, m) {
			changed = append(changed, m)
		}
	}
	return changed
}
