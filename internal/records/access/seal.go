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

// What lets a provider be asked about a person is kept sealed with the id in the cookie of the person's browser, of
// which the records have the hash alone: who has the records, or a backup, can do nothing with it.

func sealer(id string) (cipher.AEAD, error) {
	key := sha256.Sum256([]byte("claudeops grant of a login\x00" + id))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func seal(id string, g identity.Grant, random io.Reader) (string, error) {
	plain, err := json.Marshal(g)
	if err != nil {
		return "", err
	}
	c, err := sealer(id)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, c.NonceSize())
	if _, err := io.ReadFull(random, nonce); err != nil {
		return "", err
	}
	return base64.RawStdEncoding.EncodeToString(c.Seal(nonce, nonce, plain, nil)), nil
}

func unseal(id, sealed string) (g identity.Grant, err error) {
	raw, err := base64.RawStdEncoding.DecodeString(sealed)
	if err != nil {
		return g, err
	}
	c, err := sealer(id)
	if err != nil {
		return g, err
	}
	if len(raw) < c.NonceSize() {
		return g, errors.New("it is cut short")
	}
	plain, err := c.Open(nil, raw[:c.NonceSize()], raw[c.NonceSize():], nil)
	if err != nil {
		return g, err
	}
	return g, json.Unmarshal(plain, &g)
}
