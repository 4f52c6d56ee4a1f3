package secretfile

import (
	"net/url"
	"slices"
	"strings"
)

// InAddresses are the secrets of addresses such as https://USER:TOKEN@HOST, one on a line, as git's credential store
// has them: the passwords, as they are and as they are written in an address, and a user's name that stands alone,
// which is then a token. Lines that are no address have none.
func InAddresses(text string) (secrets []string) {
	for line := range strings.Lines(text) {
		u, err := url.Parse(strings.TrimSpace(line))
		if err != nil || u.User == nil {
			continue
		}
		secret, has := u.User.Password()
		_, written, _ := strings.Cut(u.User.String(), ":")
		if !has || secret == "" {
			secret, written = u.User.Username(), ""
		}
		for _, s := range []string{secret, written} {
			if s != "" && !slices.Contains(secrets, s) {
				secrets = append(secrets, s)
			}
		}
	}
	return secrets
}
