package content

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// The credentials below are made up at run time from pieces, so that this source holds nothing that a scanner finds.

const (
	upperBase32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	digits      = "0123456789"
	alnum       = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
)

// noise is n characters of alphabet that look random and are the same in every run.
func noise(alphabet string, n int, seed uint32) string {
	var b strings.Builder
	state := seed*2654435761 + 1
	for range n {
		state = state*1664525 + 1013904223
		b.WriteByte(alphabet[int(state>>16)%len(alphabet)])
	}
	return b.String()
}

func fakeAWSKeyID() string  { return "AK" + "IA" + noise(upperBase32, 16, 1) }
func fakeAWSSecret() string { return noise(alnum+"+/", 40, 2) }
func fakeGitHub() string    { return "gh" + "p_" + noise(alnum, 36, 3) }
func fakeGitHubFine() string {
	return "github" + "_pat_" + noise(alnum, 22, 4) + "_" + noise(alnum, 59, 5)
}
func fakeGitLab() string { return "gl" + "pat-" + noise(alnum, 20, 6) }
func fakeSlack() string {
	return "xox" + "b-" + noise(digits, 12, 7) + "-" + noise(digits, 12, 8) + "-" + noise(alnum, 24, 9)
}
func fakeAnthropic() string { return "sk-" + "ant-api03-" + noise(alnum, 93, 10) + "AA" }

func fakePrivateKey() string {
	var b strings.Builder
	fmt.Fprintf(&b, "-----%s RSA %s KEY-----\n", "BEGIN", "PRIVATE")
	for line := range uint32(8) {
		b.WriteString(noise(alnum+"+/", 64, 20+line) + "\n")
	}
	fmt.Fprintf(&b, "-----%s RSA %s KEY-----\n", "END", "PRIVATE")
	return b.String()
}

func fakeJWT() string {
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	return part(`{"alg":"HS256","typ":"JWT"}`) + "." + part(`{"sub":"1234567890","name":"Nobody"}`) + "." +
		noise(alnum+"-_", 43, 30)
}

// fakeToken is an own credential of 40 hexadecimal characters, as Gitea issues them.
func fakeToken() string { return noise("0123456789abcdef", 40, 40) }
