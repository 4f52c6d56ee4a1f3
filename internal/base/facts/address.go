package facts

import (
	"errors"
	"net/netip"
	"strings"
	"sync"

	"github.com/claudeops/claudeops/internal/base/textscan"
)

// addressBook knows the hosts that were named before a change, and asks about others once.
type addressBook struct {
	seen map[string]bool // whether a host is not to be named, again
	asks func(host string) bool
}

func newAddressBook(files []File, known func(host string) bool) *addressBook {
	b := &addressBook{seen: map[string]bool{}, asks: known}
	for _, f := range files {
		for _, host := range Hosts(f.Old) {
			b.seen[host] = true
		}
	}
	return b
}

// isNew says whether a host was not named before, nor in the change.
func (b *addressBook) isNew(host string) bool {
	if b.seen[host] {
		return false
	}
	b.seen[host] = true
	return b.asks == nil || !b.asks(host)
}

// read gives the new addresses of a line of a unit.
func (b *addressBook) read(u unit, line unitLine, plain string) []hit {
	var found []hit
	for _, a := range addressesIn(plain) {
		if b.isNew(a.host) {
			found = append(found, hit{Address, "Names an address that no other file names", u.where, line.number, line.number,
				a.text})
		}
	}
	return found
}

// address is a host as a line names it.
type address struct{ host, text string }

// Hosts gives the hosts that a text names, by addresses of the web, mailboxes, IP addresses and names of hosts, in
// lower case, each as often as it is named. Those of this machine are left out.
func Hosts(text string) []string {
	var hosts []string
	for _, line := range splitLines(text) {
		for _, a := range addressesIn(textscan.Undisguise(line)) {
			hosts = append(hosts, a.host)
		}
	}
	return hosts
}

// addressesIn gives the addresses of an undisguised line.
func addressesIn(line string) []address {
	var found []address
	ends := addressEnds()
	start, signs := 0, 0 // of the word, and how many of the signs it has without which no address is
	for i := 0; i <= len(line); i++ {
		if i < len(line) && !ends[line[i]] {
			if line[i] == '.' || line[i] == ':' {
				signs++
			}
			continue
		}
		if signs > 0 {
			text := line[start:i]
			for text != "" && isAddressStop(text[len(text)-1]) {
				if c := text[len(text)-1]; c == '.' || c == ':' {
					signs--
				}
				text = text[:len(text)-1]
			}
			if signs > 0 {
				if host := hostOf(text); host != "" && !isLocal(host) {
					found = append(found, address{host, text})
				}
			}
		}
		start, signs = i+1, 0
	}
	return found
}

// isAddressStop says whether a character at the end of an address belongs to the sentence.
func isAddressStop(c byte) bool {
	switch c {
	case '.', ',', ';', ':', '!', '?', '\'':
		return true
	}
	return false
}

// addressEnds are the characters that end an address.
var addressEnds = sync.OnceValue(func() *byteSet { //nolint:gochecknoglobals // made once, never changed
	return newByteSet("`\"'()<>[]{}|*,;").withSpace()
})

// hostOf gives the host that a word without space names, in lower case; "" if it names none.
func hostOf(text string) string {
	for text != "" && isAddressStop(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	text = strings.ToLower(text)
	rest := text
	url := false
	if at := strings.Index(text, "://"); at >= 0 {
		rest, url = text[at+3:], true
	}
	if end := strings.IndexAny(rest, "/?#\\"); end >= 0 {
		if !url && strings.IndexByte(rest[:end], '@') < 0 && !strings.HasPrefix(rest, "www.") {
			return ""
		}
		rest = rest[:end]
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = rest[at+1:]
	}
	if at := strings.LastIndexByte(rest, ':'); at >= 0 && strings.Count(rest, ":") == 1 {
		rest = rest[:at]
	}
	if _, err := parseIP(rest); err == nil {
		return rest
	}
	if !isHostName(rest) {
		return ""
	}
	if url || strings.Contains(text, "@") || strings.HasPrefix(rest, "www.") || isKnownDomain(rest) {
		return rest
	}
	return ""
}

// isMailbox says whether a word is somebody@host.
func isMailbox(text string) bool {
	name, host, ok := strings.Cut(text, "@")
	return ok && name != "" && !strings.ContainsAny(name, "/:") && isHostName(host)
}

// isHost says whether a word is an IP address, or a name of a host in a domain that is common.
func isHost(text string) bool {
	host, _, _ := strings.Cut(text, "/")
	if _, err := parseIP(host); err == nil {
		return true
	}
	return isHostName(host) && (strings.HasPrefix(host, "www.") || isKnownDomain(host))
}

// isHostName says whether a text has the form of a host's name with a domain.
func isHostName(text string) bool {
	dot := strings.LastIndexByte(text, '.')
	if dot < 1 || len(text)-dot < 3 {
		return false
	}
	for i := range len(text) {
		c := text[i]
		letter := c >= 'a' && c <= 'z'
		if !letter && (i > dot || c != '.' && c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return true
}

// isKnownDomain says whether a name without a scheme before it is that of a host, and not of a file or a field.
func isKnownDomain(host string) bool {
	switch host[strings.LastIndexByte(host, '.')+1:] {
	case "com", "net", "org", "io", "dev", "app", "xyz", "biz", "info", "ru", "cn", "top", "site", "online", "cloud",
		"ai", "co",
		"me", "tk", "onion", "eu", "de", "uk", "us", "live", "link", "click", "gg", "pw", "su", "example", "cc", "fr", "br",
		"jp":
		return true
	}
	return false
}

// isLocal says whether a host is this machine, or stands for any.
func isLocal(host string) bool {
	if ip, err := parseIP(host); err == nil {
		return ip.IsLoopback() || ip.IsUnspecified() || ip.IsMulticast()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || strings.HasSuffix(host, ".cluster.local") ||
		strings.HasSuffix(host, ".svc")
}

// parseIP reads an IP address. What surely is none costs little.
func parseIP(text string) (netip.Addr, error) {
	if text == "" || (text[0] < '0' || text[0] > '9') && strings.IndexByte(text, ':') < 0 {
		return netip.Addr{}, errNoIP
	}
	return netip.ParseAddr(text)
}

var errNoIP = errors.New("not an IP address")
