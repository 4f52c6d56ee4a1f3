package strictjson

import (
	"strconv"
	"strings"
)

// step is one step from a value to one within it: to a member by its name, or to an element by its index.
type step struct {
	name    string
	index   int
	element bool
}

// enter goes down a step; leave goes back. After an error leave is not called, so that the decoder still knows where it
// is.
func (d *decoder) enter(s step) { d.at = append(d.at, s) }
func (d *decoder) leave()       { d.at = d.at[:len(d.at)-1] }

// path returns the place of the decoder, such as files[2].content; "" at the whole. Names that were submitted are cut
// short.
func (d *decoder) path() string {
	var b strings.Builder
	for _, s := range d.at {
		switch {
		case s.element:
			b.WriteString("[" + strconv.Itoa(s.index) + "]")
		case b.Len() > 0:
			b.WriteString("." + clip(s.name, maxEcho))
		default:
			b.WriteString(clip(s.name, maxEcho))
		}
	}
	return b.String()
}

// quoted returns the path as a message names it.
func (d *decoder) quoted() string { return "`" + d.path() + "`" }

// subject names what the decoder is at in a message.
func (d *decoder) subject() string {
	if len(d.at) == 0 {
		return "the " + d.opts.What
	}
	return d.quoted()
}
