package access

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"

	"github.com/claudeops/claudeops/internal/system/identity"
)

// What lets a provider be asked about a person is kept sealed with a key that is not in the records: who has the
// records alone can do nothing with it. It belongs to one person, whose every login, token and program is judged by
// what it brings.

func sealer(key []byte) (cipher.AEAD, error) {
	sum := sha256.Sum256(append([]byte("claudeops grant of a person\x00"), key...))
	block, err := aes.NewCipher(sum[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func seal(key []byte, of Account, g identity.Grant, random io.Reader) (string, error) {
	plain, err := json.Marshal(g)
	if err != nil {
		return "", err
	}
	c, err := sealer(key)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, c.NonceSize())
	if _, err := io.ReadFull(random, nonce); err != nil {
		return "", err
	}
	return base64.RawStdEncoding.EncodeToString(c.Seal(nonce, nonce, plain, accountData(of))), nil
}

func unseal(key []byte, of Account, sealed string) (g identity.Grant, err error) {
	raw, err := base64.RawStdEncoding.DecodeString(sealed)
	if err != nil {
		return g, err
	}
	c, err := sealer(key)
	if err != nil {
		return g, err
	}
	if len(raw) < c.NonceSize() {
		return g, errors.New("it is cut short")
	}
	plain, err := c.Open(nil, raw[:c.NonceSize()], raw[c.NonceSize():], accountData(of))
	if err != nil {
		return g, err
	}
	return g, json.Unmarshal(plain, &g)
}

// accountData ties what is sealed to its person.
func accountData(of Account) []byte { return []byte(of.Issuer + "\x00" + of.Subject) }
