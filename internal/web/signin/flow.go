package signin

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/claudeops/claudeops/internal/base/fault"
)

// flows seals what a browser keeps while its person is at the provider, so that only flows that this server has begun
// are accepted, and each once: a forged cookie cannot cause a request to the provider. Other programs of a host that
// get the cookie, too, cannot read it.
type flows struct {
	now    func() time.Time
	random io.Reader
	local  []byte // the key where the provider has given no secret to this server

	mu   sync.Mutex
	used map[string]int64 // states of flows that came back, and until when they are remembered
}

func newFlows(now func() time.Time, random io.Reader) *flows {
	return &flows{now: now, random: random, local: []byte(rand.Text()), used: map[string]int64{}}
}

// sealer has a key that each process with the same secret has, so that a browser may come back to another one.
func (f *flows) sealer(secret string) (cipher.AEAD, error) {
	if secret == "" {
		secret = string(f.local)
	}
	key := sha256.Sum256([]byte("claudeops sign-in under way\x00" + secret))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

func (f *flows) seal(b begun, secret string) (string, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return "", err
	}
	c, err := f.sealer(secret)
	if err != nil {
		return "", err
	}
	nonce := make([]byte, c.NonceSize())
	if _, err := io.ReadFull(f.random, nonce); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(c.Seal(nonce, nonce, text, nil)), nil
}

func (f *flows) open(sealed, secret string) (b begun, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	c, cerr := f.sealer(secret)
	if err != nil || cerr != nil || len(raw) < c.NonceSize() {
		return b, false
	}
	text, err := c.Open(nil, raw[:c.NonceSize()], raw[c.NonceSize():], nil)
	return b, err == nil && json.Unmarshal(text, &b) == nil
}

// use takes a flow that came back; unauthenticated if it did before.
func (f *flows) use(b begun) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now().Unix()
	for state, until := range f.used {
		if now > until {
			delete(f.used, state)
		}
	}
	if _, again := f.used[b.Flow.State]; again {
		return fault.New(fault.Unauthenticated, "this sign-in came back already; begin again")
	}
	f.used[b.Flow.State] = b.Until
	return nil
}
