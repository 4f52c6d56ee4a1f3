package files

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSecretsInAddresses(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"https://git.example.org", nil},
		{"https://bot:tok-1@git.example.org\nhttps://bot:tok-2@git.example.org:8443/path\n", []string{"tok-1", "tok-2"}},
		{"https://tok-alone@git.example.org", []string{"tok-alone"}},
		{"https://tok-alone:@git.example.org", []string{"tok-alone"}},
		{"https://bot:a%2Fb@git.example.org\r\n", []string{"a/b", "a%2Fb"}},
		{"http://user:pa:ss@proxy:3128", []string{"pa:ss", "pa%3Ass"}},
		{"no address\n:// @\nhttps://bot:tok-1@a\nhttps://bot:tok-1@b", []string{"tok-1"}},
	} {
		if diff := cmp.Diff(c.want, SecretsInAddresses(c.text)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
	}
}
