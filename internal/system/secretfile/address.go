package secretfile

import (
	"net/url"
	"slices"
	"strings"
)

// InAddresses returns the secrets of addresses such as https://USER:TOKEN@HOST, one on a line, as git's credential
// store has them: the passwords, plain and as encoded in the address. A user name without a password is a token and
// counts too. Lines that are not addresses have none.
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
