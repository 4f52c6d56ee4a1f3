package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of the webhook; the package's documentation says what they hold.
const (
	HeaderEvent     = "Claudeops-Event"
	HeaderDelivery  = "Claudeops-Delivery"
	HeaderTimestamp = "Claudeops-Timestamp"
	HeaderSignature = "Claudeops-Signature"
)

// Tolerance is how far the timestamp of a webhook may be from the receiver's clock.
const Tolerance = 5 * time.Minute

const signatureVersion = "v1="

// sign sets the timestamp and, if there is a secret, the signature.
func sign(header http.Header, secret string, now time.Time, body []byte) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	header.Set(HeaderTimestamp, timestamp)
	if secret != "" {
		header.Set(HeaderSignature, signatureVersion+hex.EncodeToString(mac(secret, timestamp, body)))
	}
}

func mac(secret, timestamp string, body []byte) []byte {
	h := hmac.New(sha256.New, []byte(secret))
	h.Write([]byte(timestamp + "."))
	h.Write(body)
	return h.Sum(nil)
}

// Verify is what a receiver of the webhook does before it believes body, the bytes that it received: the signature must
// be ours and the timestamp within Tolerance of now, so that an old delivery cannot be played again. An empty secret
// verifies nothing and is an error.
func Verify(secret string, header http.Header, body []byte, now time.Time) error {
	if secret == "" {
		return errors.New("no secret to verify with")
	}
	timestamp := header.Get(HeaderTimestamp)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return errors.New("the header " + HeaderTimestamp + " is missing or no number")
	}
	digits, ok := strings.CutPrefix(header.Get(HeaderSignature), signatureVersion)
	got, err := hex.DecodeString(digits)
	if !ok || err != nil {
		return errors.New("the header " + HeaderSignature + " is missing or has another form than v1=HEX")
	}
	if !hmac.Equal(got, mac(secret, timestamp, body)) {
		return errors.New("the signature is not that of the body and the timestamp")
	}
	if now.Add(-Tolerance).Unix() > seconds || now.Add(Tolerance).Unix() < seconds {
		return errors.New("the timestamp is too far from this clock")
	}
	return nil
}
