package githubapp

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
	"github.com/claudeops/claudeops/internal/system/transport"
)

// A JWT may be valid for ten minutes at most, from GitHub's point of view. It begins a minute ago for servers whose
// clock is behind ours (docs.github.com, "Generating a JSON Web Token (JWT) for a GitHub App").
const (
	jwtBackdated = time.Minute
	jwtLasts     = 9 * time.Minute
)

// Signer is the credential for requests in the name of the app itself.
type Signer struct {
	id  string
	key transport.Source
	now func() time.Time

	mu     sync.Mutex
	text   string // what parsed was read from
	parsed *rsa.PrivateKey
}

// NewSigner makes a Signer for the app of the ID, or client ID. key is its private key, see ParseKey; it may be
// replaced while the process runs. now is nil for time.Now.
func NewSigner(id string, key transport.Source, now func() time.Time) *Signer {
	if now == nil {
		now = time.Now
	}
	return &Signer{id: id, key: key, now: now}
}

// Token implements transport.Credential: a new JWT for each request. provider_disabled if the key cannot be read.
func (s *Signer) Token(context.Context, transport.Use) (string, error) {
	key, err := s.current(s.key.Value())
	if err != nil {
		return "", err
	}
	return sign(key, s.id, s.now())
}

// Refused implements transport.Credential: another try is worth it if the key was replaced.
func (s *Signer) Refused(transport.Use, string) bool {
	s.mu.Lock()
	before := s.text
	s.mu.Unlock()
	return s.key.Reread() != before
}

func (s *Signer) current(text string) (*rsa.PrivateKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parsed != nil && text == s.text {
		return s.parsed, nil
	}
	key, err := ParseKey(text)
	if err != nil {
		return nil, fault.New(fault.ProviderDisabled, "GITHUB_APP_PRIVATE_KEY %s", err)
	}
	s.text, s.parsed = text, key
	return key, nil
}

// sign makes a JWT (RFC 7519) with RS256.
func sign(key *rsa.PrivateKey, issuer string, now time.Time) (string, error) {
	claims, err := json.Marshal(struct {
		IssuedAt int64  `json:"iat"`
		Expires  int64  `json:"exp"`
		Issuer   string `json:"iss"`
	}{now.Add(-jwtBackdated).Unix(), now.Add(jwtLasts).Unix(), issuer})
	if err != nil {
		return "", fault.Wrap(err, fault.Internal, "a request in the name of the GitHub App could not be signed")
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"RS256","typ":"JWT"}`)) + "." + encode(claims)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", fault.Wrap(err, fault.Internal, "a request in the name of the GitHub App could not be signed")
	}
	return signed + "." + encode(signature), nil
}

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
		return nil, errors.New("is not a key in PEM format, which begins with -----BEGIN RSA PRIVATE KEY-----")
	}
	var key *rsa.PrivateKey
	switch block.Type {
	case "RSA PRIVATE KEY":
		parsed, err := x509.ParsePKCS1PrivateKey(block.Bytes)
		if err != nil {
			return nil, errors.New("is not an RSA key that can be read; take the file that GitHub gave, whole")
		}
		key = parsed
	case "PRIVATE KEY":
		parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		isRSA := false
		if key, isRSA = parsed.(*rsa.PrivateKey); err != nil || !isRSA {
			return nil, errors.New("is not an RSA key that can be read; take the file that GitHub gave, whole")
		}
	default:
		return nil, errors.New("is not a private key but something else in PEM; GitHub gives the file when the key is made")
	}
	if key.N.BitLen() < minKeyBits {
		return nil, fmt.Errorf("is a key of %d bits; at least %d are needed", key.N.BitLen(), minKeyBits)
	}
	return key, nil
}
