package githubapp

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
)

// minKeyBits is the smallest RSA key that is taken; GitHub's have 2048.
const minKeyBits = 2048

// ParseKey reads an app's private key as GitHub hands it out: RSA in PEM, PKCS #1 or PKCS #8. Line breaks may be
// written as \n, as is usual in variables. Errors say what is wrong and hold nothing of the key.
func ParseKey(text string) (*rsa.PrivateKey, error) {
	if !strings.Contains(text, "\n") {
		text = strings.ReplaceAll(text, `\n`, "\n")
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("is no key in PEM, which begins with -----BEGIN RSA PRIVATE KEY-----")
	}
	var key *rsa.PrivateKey
	switch block.Type {
	case "RSA PRIVATE KEY":
		parsed, err := x509.ParsePKCS1PrivateKey(block.Bytes)
		if err != nil {
			return nil, errors.New("is no RSA key that can be read; take the file that GitHub gave, whole")
		}
		key = parsed
	case "PRIVATE KEY":
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		isRSA := false
		if key, isRSA = parsed.(*rsa.PrivateKey); err != nil || !isRSA {
			return nil, errors.New("is no RSA key that can be read; take the file that GitHub gave, whole")
		}
	default:
		return nil, errors.New("is not a private key but something else in PEM; GitHub gives the file when the key is made")
	}
	if key.N.BitLen() < minKeyBits {
		return nil, fmt.Errorf("is a key of %d bits; at least %d are needed", key.N.BitLen(), minKeyBits)
	}
	return key, nil
}
